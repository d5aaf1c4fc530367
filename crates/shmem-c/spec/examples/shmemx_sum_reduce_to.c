/* The sum of all PEs on PE 2 alone, and the sum of each column on the PE of its number. */
#include <shmem.h>
#include <shmemx.h>
#include <stdio.h>

static long row[4], total, column;

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    for (int i = 0; i < n; i++)
        row[i] = 10 * me + i;
    shmem_barrier_all();
    shmemx_long_sum_reduce_scatter(SHMEM_TEAM_WORLD, &column, row, 1);
    shmemx_long_sum_reduce_to(SHMEM_TEAM_WORLD, &total, row, 1, 2);
    printf("PE %d: column %ld, total %ld\n", me, column, total);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   PE 0: column 60, total 0
   PE 1: column 64, total 0
   PE 2: column 68, total 60
   PE 3: column 72, total 0 */
