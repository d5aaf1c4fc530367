/* A block of an exchange of unequal blocks is changed by a put that nothing completes. A put between two blocks is right.
 * PEs: 2 */
#include "suite.h"
#include <shmemx.h>

static long x[8], y[8];

static void run(int me, int n) {
    const size_t sizes[] = {8, 24}, starts[] = {0, 8}, places[] = {0, 32};
    (void)n;
    shmemx_team_alltoallvmem(SHMEM_TEAM_WORLD, y, places, NULL, x, starts, sizes); /* RACE */
    if (me == 0)
        shmem_long_p(&y[3], 1, 1);
    ORDER(shmem_barrier_all());
    if (me == 0)
        shmem_long_p(&y[5], 1, 1); /* RACE */
}
