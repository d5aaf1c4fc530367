/* A scan orders a member after the members before it, not after those behind it.
 * PEs: 3 */
#include "suite.h"

static long x[8], y[8], z[8];

static void run(int me, int n) {
    (void)me, (void)n;
    if (me == 2)
        used = shmem_long_g(x, 0); /* RACE */
    ORDER(shmem_barrier_all());
    shmem_long_sum_exscan(SHMEM_TEAM_WORLD, y, z, 1);
    if (me == 0)
        x[0] = 1; /* RACE */
}
