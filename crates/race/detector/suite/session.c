/* Operations of a session are complete at the quiet.
 * PEs: 2 */
#include "suite.h"

static long many[64];

static void run(int me, int n) {
    (void)me, (void)n;
    long from[64];
    shmem_ctx_t ctx;
    shmem_ctx_create(0, &ctx);
    shmem_ctx_session_start(ctx, SHMEM_CTX_SESSION_BATCH, NULL, 0);
    if (me == 0)
        for (int i = 0; i < 64; i++)
            shmem_ctx_long_put_nbi(ctx, &many[i], &from[i], 1, 1); /* RACE */
    shmem_ctx_session_stop(ctx);
    ORDER(shmem_ctx_quiet(ctx));
    shmem_sync_all();
    if (me == 1)
        used = many[63]; /* RACE */
    shmem_ctx_destroy(ctx);
}
