/* A broadcast that does not block orders a member after the root, not after other members.
 * PEs: 3 */
#include "suite.h"
#include <shmemx.h>

static long x[8], y[8], z[8];

static void run(int me, int n) {
    (void)n;
    shmemx_req_t request = SHMEMX_REQ_NULL;
    if (me == 2)
        x[0] = 1; /* RACE */
    ORDER(shmem_sync_all());
    shmemx_long_broadcast_nb(SHMEM_TEAM_WORLD, y, z, 8, 0, &request);
    shmemx_req_wait(&request);
    if (me == 1)
        used = shmem_long_g(x, 2); /* RACE */
}
