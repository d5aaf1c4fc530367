/* A PE takes a number from each PE without waiting for one after the
 * other. */
#include <shmem.h>
#include <stdio.h>

static long counter = 40;

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    long taken[64];
    shmem_barrier_all();
    if (me == 0) {
        for (int i = 0; i < n; i++)
            shmem_long_atomic_fetch_add_nbi(&taken[i], &counter, i, i);
        shmem_quiet();  /* taken is there */
        printf("took %ld and %ld\n", taken[0], taken[n - 1]);
    }
    shmem_barrier_all();
    printf("PE %d: %ld\n", me, counter);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   took 40 and 40
   PE 0: 40
   PE 1: 41
   PE 2: 42
   PE 3: 43 */
