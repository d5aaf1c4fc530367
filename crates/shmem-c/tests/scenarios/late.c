/* PE 1 computes before a barrier and before a signal, and so is late. */
#include <shmem.h>
#include <stdint.h>
#include <unistd.h>

static long data;
static uint64_t sig;

static void compute(void) {
    usleep(100000);
}

int main(void) {
    shmem_init();
    int me = shmem_my_pe();
    if (me == 1)
        compute();
    shmem_barrier_all();
    if (me == 1) {
        compute();
        shmem_long_put_signal(&data, &data, 1, &sig, 1, SHMEM_SIGNAL_SET, 0);
    } else if (me == 0)
        shmem_signal_wait_until(&sig, SHMEM_CMP_EQ, 1);
    shmem_finalize();
    return 0;
}
