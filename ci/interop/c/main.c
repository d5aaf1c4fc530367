/* A program in C that calls a function in Rust, which is in the same job. */
#include <shmem.h>
#include <stdio.h>

extern long sum_in_rust(long mine);

static long inbox;

int main(void)
{
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    const long sum = sum_in_rust(me + 1);
    shmem_long_p(&inbox, sum, (me + 1) % n);
    shmem_barrier_all();
    if (sum != n * (n + 1L) / 2 || inbox != sum) {
        printf("FAIL: PE %d has %ld and %ld\n", me, sum, inbox);
        shmem_global_exit(1);
    }
    if (me == 0)
        printf("n_pes %d\nPASS\n", n);
    shmem_finalize();
    return 0;
}
