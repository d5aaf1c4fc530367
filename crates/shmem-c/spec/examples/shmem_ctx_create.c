/* Results are sent on a context of their own, so that a wait for them
 * does not wait for other operations. */
#include <shmem.h>
#include <stdio.h>

static long results[64], halo;

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    shmem_ctx_t ctx;
    if (shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx) != 0)
        ctx = SHMEM_CTX_DEFAULT;  /* slower, but right */
    long mine = 100 + me;
    shmem_ctx_long_put_nbi(ctx, &results[me], &mine, 1, 0);
    shmem_long_p(&halo, me, (me + 1) % n);  /* goes on meanwhile */
    shmem_ctx_quiet(ctx);  /* completes results, not halo */
    if (ctx != SHMEM_CTX_DEFAULT)
        shmem_ctx_destroy(ctx);
    shmem_barrier_all();
    if (me == 0)
        printf("result %ld, halo %ld\n", results[n - 1], halo);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   result 103, halo 3 */
