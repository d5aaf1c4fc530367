/* A block that an exchange of unequal blocks reads is written by another PE.
 * PEs: 2 */
#include "suite.h"
#include <shmemx.h>

static long x[8], y[8];

static void run(int me, int n) {
    const size_t sizes[] = {8, 16}, starts[] = {0, 24}, places[] = {0, 32};
    (void)n;
    if (me == 1)
        shmem_long_p(&x[4], 1, 0); /* RACE */
    ORDER(shmem_barrier_all());
    shmemx_team_alltoallvmem(SHMEM_TEAM_WORLD, y, places, NULL, x, starts, sizes); /* RACE */
}
