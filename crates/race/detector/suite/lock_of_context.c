/* Giving up a lock completes the default context alone.
 * PEs: 2 */
#include "suite.h"

static long x[8], lock;

static void run(int me, int n) {
    (void)me, (void)n;
    long mine = me;
    shmem_ctx_t ctx;
    shmem_ctx_create(0, &ctx);
    shmem_set_lock(&lock);
    shmem_ctx_long_put(ctx, x, &mine, 1, 0); /* RACE with itself */
    ORDER(shmem_ctx_quiet(ctx));
    shmem_clear_lock(&lock);
    shmem_ctx_destroy(ctx);
}
