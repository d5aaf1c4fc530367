/* Contexts of the world and of SHMEM_TEAM_SHARED are of two atomicity domains.
 * PEs: 3 */
#include "suite.h"

static long x[8];

static void run(int me, int n) {
    (void)me, (void)n;
    shmem_ctx_t world, shared;
    shmem_team_create_ctx(SHMEM_TEAM_WORLD, 0, &world);
    shmem_team_create_ctx(SHMEM_TEAM_SHARED, 0, &shared);
    if (me == 0)
        shmem_ctx_long_atomic_add(world, x, 1, 1); /* RACE */
    if (me == 2)
        shmem_ctx_long_atomic_add(IF_CLEAN(world, shared), x, 1, 1); /* RACE */
    shmem_ctx_destroy(world);
    shmem_ctx_destroy(shared);
}
