/* PE 0 reads from all PEs at once instead of one after the other. */
#include <shmem.h>
#include <stdio.h>

static long value;

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    value = 5 * me;
    shmem_barrier_all();
    long copies[64];
    if (me == 0) {
        for (int pe = 0; pe < n; pe++)
            shmem_long_get_nbi(&copies[pe], &value, 1, pe);
        shmem_quiet();  /* a fence would not bring them */
        printf("%ld to %ld\n", copies[0], copies[n - 1]);
    }
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   0 to 15 */
