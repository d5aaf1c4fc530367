/* A quiet completes its own context alone.
 * PEs: 2 */
#include "suite.h"

static long x[8];

static void run(int me, int n) {
    (void)me, (void)n;
    long source = 1;
    shmem_ctx_t ctx;
    shmem_ctx_create(0, &ctx);
    if (me == 0) {
        shmem_ctx_long_put_nbi(ctx, x, &source, 1, 1); /* RACE */
        shmem_quiet();
        ORDER(shmem_ctx_quiet(ctx));
        source = 2; /* RACE */
    }
    shmem_ctx_destroy(ctx);
}
