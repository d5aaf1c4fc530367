/* A block is freed while a put on a context is on its way to it, which shmemx_reclaim completes.
 * PEs: 2 */
#include <shmemx.h>

#include "suite.h"

static void run(int me, int n) {
    (void)n;
    static long source = 1;
    long *block = shmem_malloc(64);
    shmem_ctx_t ctx;
    shmem_ctx_create(0, &ctx);
    if (me == 0)
        shmem_ctx_long_put_nbi(ctx, block, &source, 1, 1); /* RACE */
    if (IF_CLEAN(1, 0)) {
        shmemx_release(block);
        shmemx_reclaim();
    } else {
        shmem_free(block); /* RACE */
    }
    shmem_ctx_destroy(ctx);
}
