/* Two teams that share a PE order the accesses of both by way of it.
 * PEs: 3 */
#include "suite.h"

static long x[8];

static void run(int me, int n) {
    (void)me, (void)n;
    shmem_team_t first, second;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 2, NULL, 0, &first);
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 1, 1, 2, NULL, 0, &second);
    if (me == 0)
        x[0] = 1; /* RACE */
    if (me < 2)
        ORDER(shmem_team_sync(first));
    if (me > 0)
        shmem_team_sync(second);
    if (me == 2)
        used = shmem_long_g(x, 0); /* RACE */
}
