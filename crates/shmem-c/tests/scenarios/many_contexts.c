/* More contexts than endpoints of a network. Each PE has CONTEXTS contexts at once. Then THREADS
 * threads create contexts one after the other, private and serialized. Whatever endpoints contexts
 * share, the operations of each complete.
 */
#include <pthread.h>

#include "../programs/check.h"

enum { CONTEXTS = 60, THREADS = 8, LIVES = 4, ROUNDS = 20, NBYTES = 3000 };

static char area[THREADS][NBYTES];
static long counters[THREADS], together;

static void many_at_once(int to) {
    shmem_ctx_t contexts[CONTEXTS];
    for (int i = 0; i < CONTEXTS; i++) {
        CHECK(!shmem_ctx_create(0, &contexts[i]), 20, "context %d was refused", i);
        shmem_ctx_long_atomic_add(contexts[i], &together, 1, to);
    }
    for (int i = 0; i < CONTEXTS; i++)
        shmem_ctx_destroy(contexts[i]);
    shmem_barrier_all();
    CHECK(together == CONTEXTS, 20, "the contexts of a PE have added %ld", together);
}

static void *use_contexts(void *argument) {
    const int thread = (int)(intptr_t)argument, to = (check_me + 1) % check_n;
    char local[NBYTES], back[NBYTES];
    for (int life = 0; life < LIVES; life++) {
        shmem_ctx_t ctx;
        const long options = life % 2 ? SHMEM_CTX_PRIVATE : SHMEM_CTX_SERIALIZED;
        CHECK(!shmem_ctx_create(options, &ctx), 20, "a context of thread %d was refused", thread);
        for (int round = 0; round < ROUNDS; round++) {
            memset(local, thread * ROUNDS + round + life, NBYTES);
            shmem_ctx_putmem_nbi(ctx, area[thread], local, NBYTES, to);
            shmem_ctx_quiet(ctx);
            shmem_ctx_getmem(ctx, back, area[thread], NBYTES, to);
            CHECK(!memcmp(back, local, NBYTES), 20, "thread %d gets other bytes than it put", thread);
            shmem_ctx_long_atomic_inc(ctx, &counters[thread], to);
        }
        shmem_ctx_destroy(ctx);
    }
    return NULL;
}

int main(void) {
    int provided;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    check_start();
    many_at_once((check_me + 1) % check_n);
    pthread_t threads[THREADS];
    for (intptr_t thread = 0; thread < THREADS; thread++)
        pthread_create(&threads[thread], NULL, use_contexts, (void *)thread);
    for (int thread = 0; thread < THREADS; thread++)
        pthread_join(threads[thread], NULL);
    shmem_barrier_all();
    for (int thread = 0; thread < THREADS; thread++)
        CHECK(counters[thread] == LIVES * ROUNDS, 20, "thread %d has counted %ld", thread, counters[thread]);
    return check_end();
}
