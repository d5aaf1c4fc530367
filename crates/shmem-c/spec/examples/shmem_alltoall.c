/* Each PE has two numbers for each PE: a transposition of blocks. */
#include <shmem.h>
#include <stdio.h>

static int source[2 * 64], dest[2 * 64];

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    for (int pe = 0; pe < n; pe++) {
        source[2 * pe] = me;
        source[2 * pe + 1] = pe;
    }
    shmem_barrier_all();  /* dest is ready on all PEs */
    shmem_int_alltoall(SHMEM_TEAM_WORLD, dest, source, 2);
    int *last = &dest[2 * (n - 1)];
    printf("PE %d: from PE %d, for PE %d\n", me, last[0], last[1]);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   PE 0: from PE 3, for PE 0
   PE 1: from PE 3, for PE 1
   PE 2: from PE 3, for PE 2
   PE 3: from PE 3, for PE 3 */
