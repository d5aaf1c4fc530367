/* A barrier completes the default context alone.
 * PEs: 2 */
#include "suite.h"

static long x[8];

static void run(int me, int n) {
    (void)me, (void)n;
    long one = 1;
    shmem_ctx_t ctx;
    shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx);
    if (me == 0) {
        shmem_ctx_long_put(ctx, x, &one, 1, 1); /* RACE */
        ORDER(shmem_ctx_quiet(ctx));
    }
    shmem_barrier_all();
    if (me == 1)
        used = x[0]; /* RACE */
    shmem_ctx_destroy(ctx);
}
