/* The sources of puts on two contexts are changed, and a flush has waited for one context alone.
 * PEs: 2 */
#include <shmemx.h>

#include "suite.h"

static long x[8];

static void run(int me, int n) {
    (void)me, (void)n;
    long first = 1, second = 1;
    shmem_ctx_t ctx;
    shmem_ctx_create(0, &ctx);
    if (me == 0) {
        shmem_long_put_nbi(x, &first, 1, 1);
        shmem_ctx_long_put_nbi(ctx, &x[1], &second, 1, 1); /* RACE */
        shmemx_flush();
        ORDER(shmemx_local_complete());
        first = second = 2; /* RACE */
        shmem_quiet();
    }
    shmem_ctx_destroy(ctx);
}
