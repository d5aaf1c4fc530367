/* A sync of a team says nothing of other PEs.
 * PEs: 3 */
#include "suite.h"

static long x[8];

static void run(int me, int n) {
    (void)me, (void)n;
    shmem_team_t team;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 2, NULL, 0, &team);
    long one = 1;
    if (me == 2) {
        shmem_long_put(x, &one, 1, 1); /* RACE */
        shmem_quiet();
    }
    if (me < 2)
        shmem_team_sync(team);
    ORDER(shmem_sync_all());
    if (me == 1)
        used = x[0]; /* RACE */
}
