/* A broadcast orders a member after the root, not after other members.
 * PEs: 3 */
#include "suite.h"

static long x[8], y[8], z[8];

static void run(int me, int n) {
    (void)me, (void)n;
    if (me == 2)
        x[0] = 1; /* RACE */
    ORDER(shmem_sync_all());
    shmem_long_broadcast(SHMEM_TEAM_WORLD, y, z, 8, 0);
    if (me == 1)
        used = shmem_long_g(x, 2); /* RACE */
}
