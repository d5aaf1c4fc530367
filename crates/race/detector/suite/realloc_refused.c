/* A reallocation is refused, so the block stays, and a put to it is in flight.
 * PEs: 2 */
#include "suite.h"



static void run(int me, int n) {
    (void)me, (void)n;
    long one = 1, *block = shmem_malloc(64);
    shmem_ctx_t ctx;
    shmem_ctx_create(0, &ctx);
    if (me == 0)
        shmem_ctx_long_put(ctx, block, &one, 1, 1); /* RACE */
    if (shmem_realloc(block, 1 << 30))
        abort();
    ORDER(shmem_ctx_quiet(ctx));
    ORDER(shmem_barrier_all());
    if (me == 1)
        used = block[0]; /* RACE */
    shmem_ctx_quiet(ctx);
    shmem_free(block);
    shmem_ctx_destroy(ctx);
}
