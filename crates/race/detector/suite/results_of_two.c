/* The result of a broadcast goes to where a PE may still wait for that of a reduction.
 * PEs: 2 */
#include "suite.h"

static long x[8], y[8];

static void run(int me, int n) {
    (void)me, (void)n;
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, y, x, 8); /* RACE */
    ORDER(shmem_sync_all());
    shmem_long_broadcast(SHMEM_TEAM_WORLD, y, x, 8, 0); /* RACE */
}
