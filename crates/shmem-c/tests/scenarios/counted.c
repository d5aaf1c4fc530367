/* Known numbers of operations with known sizes: on the next PE, one on this PE, and seven on a
 * context. With an argument, a lock is acquired and released twice instead. */
#include "../programs/check.h"
#include <shmemx.h>

static int in_static_data;
static long lock;

static void counters_are(shmem_ctx_t ctx, uint64_t writes, uint64_t reads) {
    if (getenv("SHMEM_STATS") == NULL)
        writes = reads = 0;
    uint64_t issued_write, issued_read, completed_write, completed_read, target = 1;
    shmemx_pcntr_get_issued_write(ctx, &issued_write);
    shmemx_pcntr_get_issued_read(ctx, &issued_read);
    shmemx_pcntr_get_completed_write(ctx, &completed_write);
    shmemx_pcntr_get_completed_read(ctx, &completed_read);
    shmemx_pcntr_get_completed_target(&target);
    CHECK(issued_write == writes && completed_write == writes, 0, "%lu writes, %lu complete, not %lu",
          (unsigned long)issued_write, (unsigned long)completed_write, (unsigned long)writes);
    CHECK(issued_read == reads && completed_read == reads, 0, "%lu reads, %lu complete, not %lu",
          (unsigned long)issued_read, (unsigned long)completed_read, (unsigned long)reads);
    shmemx_pcntr_t all;
    shmemx_pcntr_get_all(ctx, &all);
    CHECK(all.pending_put == writes && all.completed_put == writes && all.pending_get == reads &&
              all.completed_get == reads && all.target == target && target == 0,
          0, "all counters at once differ");
}

static void operations(int right) {
    enum { LONGS = 64 };
    long own[LONGS] = {0}, *there = shmem_malloc(LONGS * sizeof *there);
    uint64_t *signals = (uint64_t *)&there[LONGS - 3];
    for (int i = 0; i < LONGS; i++)
        there[i] = 0;
    shmem_barrier_all();

    for (int i = 0; i < 3; i++)
        shmem_putmem(there, own, 100, right);
    shmem_int_put(&in_static_data, (int *)own, 1, right);
    shmem_putmem(there, own, 8, check_me);
    shmem_long_put_nbi(there, own, 5, right);
    shmem_long_put_nbi(there, own, 5, right);
    for (int i = 0; i < 4; i++)
        shmem_long_p(there, 1, right);
    shmem_int_iput((int *)there, (int *)own, 2, 2, 6, right);
    shmem_long_put_signal(there, own, 2, &signals[0], 1, SHMEM_SIGNAL_SET, right);
    shmem_long_put_signal_nbi(there, own, 2, &signals[1], 1, SHMEM_SIGNAL_SET, right);

    shmem_getmem(own, there, 64, right);
    shmem_getmem(own, there, 64, right);
    shmem_long_get_nbi(own, there, 1, right);
    for (int i = 0; i < 3; i++)
        shmem_long_g(there, right);
    shmem_int_iget((int *)own, (int *)there, 1, 3, 6, right);

    long fetched;
    for (int i = 0; i < 5; i++)
        shmem_long_atomic_add(&there[40], 1, right);
    shmemx_signal_add(&signals[2], 1, right);
    shmem_long_atomic_fetch_inc(&there[40], right);
    shmem_long_atomic_compare_swap(&there[41], 0, 0, right);
    shmem_long_atomic_fetch_add_nbi(&fetched, &there[40], 1, right);

    shmem_ctx_t ctx;
    CHECK(shmem_ctx_create(SHMEM_CTX_SERIALIZED, &ctx) == 0, 0, "no context");
    for (int i = 0; i < 7; i++)
        shmem_ctx_putmem_nbi(ctx, &there[20], own, 10, right);
    shmem_fence();
    shmem_ctx_fence(ctx);
    shmem_quiet();
    shmem_quiet();
    shmem_ctx_quiet(ctx);
    const int pes[] = {right, check_me};
    shmem_pe_quiet(pes, 2);
    shmem_ctx_pe_quiet(ctx, pes, 1);
    shmemx_flush();
    shmemx_ctx_flush(ctx);
    shmemx_ctx_pe_flush(ctx, pes, 2);
    shmemx_local_complete();
    counters_are(SHMEM_CTX_DEFAULT, 20, 10);
    counters_are(ctx, 7, 0);
    shmem_ctx_destroy(ctx);

    shmem_signal_wait_until(&signals[0], SHMEM_CMP_EQ, 1);
    shmem_long_wait_until(&there[40], SHMEM_CMP_EQ, 7);
    CHECK(shmem_ptr(there, check_me) == there, 0, "shmem_ptr does not know this PE");
    shmem_barrier_all();
    shmem_barrier_all();
    shmem_free(there);
}

int main(int argc, char **argv) {
    (void)argv;
    check_begin();
    if (argc > 1) {
        for (int i = 0; i < 2; i++) {
            shmem_set_lock(&lock);
            shmem_clear_lock(&lock);
        }
        shmem_barrier_all();
    } else {
        operations((check_me + 1) % check_n);
    }
    if (check_me == 0)
        printf("PASS\n");
    shmem_finalize();
    return 0;
}
