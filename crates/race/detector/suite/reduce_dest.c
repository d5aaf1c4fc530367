/* A PE puts to where another one gets the result of a reduction.
 * PEs: 2 */
#include "suite.h"

static long x[8], y[8];

static void run(int me, int n) {
    (void)me, (void)n;
    long one = 1;
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, y, x, 8); /* RACE */
    ORDER(shmem_barrier_all());
    if (me == 1)
        shmem_long_put(&y[7], &one, 1, 0); /* RACE */
}
