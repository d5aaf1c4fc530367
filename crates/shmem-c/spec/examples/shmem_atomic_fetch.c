/* PE 0 sets a limit on all PEs while they may read it. */
#include <shmem.h>
#include <stdio.h>

static long limit = 100;

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    for (int pe = 0; me == 0 && pe < n; pe++)
        shmem_long_atomic_set(&limit, 50, pe);
    shmem_barrier_all();
    int next = (me + 1) % n;
    printf("PE %d: %ld\n", me, shmem_long_atomic_fetch(&limit, next));
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   PE 0: 50
   PE 1: 50
   PE 2: 50
   PE 3: 50 */
