/* The sum of the numbers of the PEs, in the old form of Cray. */
#include <shmem.h>
#include <shmemx.h>
#include <stdio.h>

static int source, dest, pWrk[SHMEM_REDUCE_MIN_WRKDATA_SIZE];
static long pSync[SHMEM_REDUCE_SYNC_SIZE];

int main(void) {
    shmem_init();
    source = shmem_my_pe();
    shmemx_team_int_sum_to_all(SHMEM_TEAM_WORLD, &dest, &source, 1, pWrk, pSync);
    printf("PE %d: %d\n", shmem_my_pe(), dest);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   PE 0: 6
   PE 1: 6
   PE 2: 6
   PE 3: 6 */
