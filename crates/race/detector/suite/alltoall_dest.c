/* A block of an exchange is changed by a put that nothing completes.
 * PEs: 2 */
#include "suite.h"

static long x[8], y[8];

static void run(int me, int n) {
    (void)me, (void)n;
    long one = 1;
    shmem_long_alltoall(SHMEM_TEAM_WORLD, y, x, 2); /* RACE */
    ORDER(shmem_barrier_all());
    if (me == 0)
        shmem_long_p(&y[3], one, 1); /* RACE */
}
