/* Waits with a limit by several threads at once: of words, of quiet on contexts of their own and on the shared one, and of
 * requests on teams of their own. */
#include "check.h"
#include <pthread.h>
#include <shmemx.h>

enum { THREADS = 3, ROUNDS = 300, LONGS = 64 };

static long words[THREADS], ones[THREADS], sums[THREADS];
static long *areas;
static int right;
static shmem_team_t teams[THREADS];

static void *run(void *argument) {
    const int t = (int)(intptr_t)argument;
    long source[LONGS];
    shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;
    if (t > 0 && shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx) != 0)
        ctx = SHMEM_CTX_DEFAULT;
    long *area = areas + t * LONGS;
    for (long round = 1; round <= ROUNDS; round++) {
        for (int i = 0; i < LONGS; i++)
            source[i] = round * 1000 + i;
        shmem_ctx_putmem_nbi(ctx, area, source, sizeof source, right);
        while (shmemx_ctx_quiet_timed(ctx, round % 3 * 1e-6) == SHMEMX_TIMED_OUT)
            ;
        shmem_ctx_long_p(ctx, &words[t], round, right);
        while (shmemx_long_wait_until_timed(&words[t], SHMEM_CMP_GE, round, round % 5 * 2e-5) == SHMEMX_TIMED_OUT)
            ;
        CHECK(words[t] == round && area[LONGS - 1] == round * 1000 + LONGS - 1, 0, "thread %d has %ld in round %ld", t,
              area[LONGS - 1], round);

        shmemx_req_t req;
        sums[t] = 0;
        shmemx_long_sum_reduce_nb(teams[t], &sums[t], &ones[t], 1, &req);
        while (shmemx_req_wait_timed(&req, round % 2 * 1e-4) == SHMEMX_TIMED_OUT)
            ;
        CHECK(sums[t] == check_n, 0, "thread %d has the sum %ld", t, sums[t]);
    }
    if (ctx != SHMEM_CTX_DEFAULT)
        shmem_ctx_destroy(ctx);
    return NULL;
}

int main(void) {
    int provided;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    check_start();
    right = (check_me + 1) % check_n;
    areas = (long *)shmem_calloc(THREADS * LONGS, sizeof(long));
    for (int t = 0; t < THREADS; t++) {
        ones[t] = 1;
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, check_n, NULL, 0, &teams[t]);
    }
    shmem_barrier_all();

    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS; t++)
        pthread_create(&threads[t], NULL, run, (void *)(intptr_t)t);
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    shmem_barrier_all();
    shmem_free(areas);
    return check_end();
}
