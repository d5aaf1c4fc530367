/* A PE puts data, and then a flag; the fence keeps the flag from
 * arriving before the data. */
#include <shmem.h>
#include <stdio.h>

static double data[3];
static int flag;

int main(void) {
    shmem_init();
    int me = shmem_my_pe();
    double source[3] = {0.5, 1.5, 2.5};
    if (me == 0) {
        shmem_double_put(data, source, 3, 1);
        shmem_fence();
        shmem_int_atomic_set(&flag, 1, 1);
    }
    if (me == 1) {
        shmem_int_wait_until(&flag, SHMEM_CMP_EQ, 1);
        printf("%.1f %.1f %.1f\n", data[0], data[1], data[2]);
    }
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   0.5 1.5 2.5 */
