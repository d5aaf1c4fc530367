/* A block is freed while a put on a context is in flight to it.
 * PEs: 2 */
#include "suite.h"



static void run(int me, int n) {
    (void)me, (void)n;
    long one = 1, *block = shmem_malloc(64);
    shmem_ctx_t ctx;
    shmem_ctx_create(0, &ctx);
    if (me == 0) {
        shmem_ctx_long_put(ctx, block, &one, 1, 1); /* RACE */
        ORDER(shmem_ctx_quiet(ctx));
    }
    shmem_free(block); /* RACE */
    shmem_ctx_destroy(ctx);
}
