/* shmemx_flush: the source of a put may be overwritten after it, though the put is not complete. Each
 * of two threads puts on a context of its own, overwrites the source, and then completes the put, over
 * two initializations. A put that a flush has not awaited brings the new bytes.
 */
#include "check.h"
#include <pthread.h>
#include <shmemx.h>

/* The longest puts, in the first rounds, do not fit into the buffers of sockets. */
enum { THREADS = 2, USUAL_ROUNDS = 500, LONG_ROUNDS = 16, LONGEST = 1 << 19 };

enum way { FLUSH, PE_FLUSH, FLUSH_OF_DEFAULT, LOCAL_COMPLETE, WAYS };

static long dest[THREADS][LONGEST];
static uint64_t sent[THREADS];
static pthread_barrier_t together;
static int rounds = USUAL_ROUNDS;

static void flush(enum way way, shmem_ctx_t ctx, int pe) {
    switch (way) {
    case FLUSH: shmemx_ctx_flush(ctx); break;
    case PE_FLUSH: shmemx_ctx_pe_flush(ctx, &pe, 1); break;
    case FLUSH_OF_DEFAULT: shmemx_flush(); break;
    default: shmemx_local_complete(); break;
    }
}

/* Lets one thread of each PE take part in a barrier of the PEs. */
static void meet(void) {
    if (pthread_barrier_wait(&together) == PTHREAD_BARRIER_SERIAL_THREAD)
        shmem_barrier_all();
    pthread_barrier_wait(&together);
}

static void *puts_and_overwrites(void *argument) {
    const int thread = *(int *)argument, right = (check_me + 1) % check_n, left = (check_me + check_n - 1) % check_n;
    shmem_ctx_t of_thread;
    /* A thread without a context of its own would share the default one, which is allowed, too. */
    const int has_own = shmem_ctx_create(SHMEM_CTX_SERIALIZED, &of_thread) == 0;
    long *source = malloc(LONGEST * sizeof *source);

    for (int round = 0; round < rounds; round++) {
        const enum way way = (enum way)(round % WAYS);
        /* local_complete visits the contexts of all threads, which are not in use at a barrier alone. */
        const int is_alone = way != LOCAL_COMPLETE;
        const shmem_ctx_t ctx = way == FLUSH_OF_DEFAULT || !has_own ? SHMEM_CTX_DEFAULT : of_thread;
        const size_t n = round < LONG_ROUNDS ? LONGEST : (size_t)(1 + round % 3000 * 379 % 3000);

        for (size_t i = 0; i < n; i++)
            source[i] = VALUE(long, round * 1000000L + (long)i + check_me);
        if (round / WAYS % 2)
            shmem_ctx_long_put_nbi(ctx, dest[thread], source, n, right);
        else
            shmem_ctx_long_put_signal_nbi(ctx, dest[thread], source, n, &sent[thread], 1, SHMEM_SIGNAL_ADD, right);
        if (!is_alone)
            meet();
        if (is_alone || thread == 0)
            flush(way, ctx, right);
        if (!is_alone)
            meet();
        memset(source, 0xEE, n * sizeof *source);

        shmem_ctx_quiet(ctx);
        meet();
        size_t wrong = 0;
        for (size_t i = 0; i < n; i++)
            wrong += dest[thread][i] != VALUE(long, round * 1000000L + (long)i + left);
        CHECK(wrong == 0, 0, "round %d, way %d: %zu of %zu elements are not those before the flush", round, way, wrong, n);
        meet();
    }

    free(source);
    if (has_own)
        shmem_ctx_destroy(of_thread);
    return NULL;
}

static void run(void) {
    pthread_t threads[THREADS];
    int numbers[THREADS];
    pthread_barrier_init(&together, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, puts_and_overwrites, &numbers[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&together);

    /* Nothing to wait for: no PE, and no context. */
    shmemx_ctx_pe_flush(SHMEM_CTX_DEFAULT, NULL, 0);
    shmemx_ctx_flush(SHMEM_CTX_INVALID);
    shmemx_ctx_pe_flush(SHMEM_CTX_INVALID, &check_me, 1);
}

/* flush [ROUNDS] */
int main(int argc, char **argv) {
    int provided;
    if (argc > 1)
        rounds = atoi(argv[1]);
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    check_start();
    run();
    shmem_finalize();

    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    run();
    return check_end();
}
