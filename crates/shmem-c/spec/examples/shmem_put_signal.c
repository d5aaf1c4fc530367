/* PE 0 sends data, and PE 1 uses them as soon as they are there,
 * without a barrier. */
#include <shmem.h>
#include <stdio.h>

static double data[3];
static uint64_t has_data;

int main(void) {
    shmem_init();
    int me = shmem_my_pe();
    double source[3] = {0.5, 1.5, 2.5};
    if (me == 0)
        shmem_double_put_signal(data, source, 3, &has_data, 1,
                                SHMEM_SIGNAL_SET, 1);
    if (me == 1) {
        shmem_signal_wait_until(&has_data, SHMEM_CMP_EQ, 1);
        printf("%.1f %.1f %.1f\n", data[0], data[1], data[2]);
    }
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   0.5 1.5 2.5 */
