/* Contexts of SHMEM_TEAM_SHARED and of a team split from it are of one atomicity domain, those of the world of another.
 * PEs: 3 */
#include "suite.h"

static long x[8];

static void run(int me, int n) {
    shmem_team_t team;
    shmem_team_split_strided(SHMEM_TEAM_SHARED, 0, 1, n, NULL, 0, &team);
    shmem_ctx_t world, shared, split;
    shmem_team_create_ctx(SHMEM_TEAM_WORLD, 0, &world);
    shmem_team_create_ctx(SHMEM_TEAM_SHARED, 0, &shared);
    shmem_team_create_ctx(team, 0, &split);
    if (me == 0)
        shmem_ctx_long_atomic_add(IF_CLEAN(shared, world), x, 1, 1); /* RACE */
    if (me == 2)
        shmem_ctx_long_atomic_add(split, x, 1, 1); /* RACE */
    shmem_ctx_destroy(world);
    shmem_ctx_destroy(shared);
    shmem_ctx_destroy(split);
    shmem_team_destroy(team);
}
