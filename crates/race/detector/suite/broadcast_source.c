/* The source of a broadcast is written by another PE.
 * PEs: 2 */
#include "suite.h"

static long x[8], y[8];

static void run(int me, int n) {
    (void)me, (void)n;
    long one = 1;
    if (me == 1)
        shmem_long_put(x, &one, 1, 0); /* RACE */
    ORDER(shmem_barrier_all());
    shmem_long_broadcast(SHMEM_TEAM_WORLD, y, x, 8, 0); /* RACE */
}
