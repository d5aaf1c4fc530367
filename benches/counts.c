/* Calls one routine COUNT times on another PE, or on the PE itself, for counting instructions
 * under callgrind.
 *
 *     counts ROUTINE COUNT            as a job of one PE, without a launcher, or of two
 *     counts ROUTINE COUNT THREADS    for a ctx routine: in THREADS threads at once, each on its
 *                                     own private context
 *
 * The path to PE 0 of a job of one is the same as to any PE of the same node. In a job of two
 * nothing is in flight when the next call begins.
 */
#include <pthread.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* PE 0 calls; where it is alone nothing is to be completed. */
#define CALL(call) \
    for (long i = 0; i < count && shmem_my_pe() == 0; i++) { \
        call; \
        if (pe > 0) { \
            if (!threads) \
                shmem_quiet(); \
            shmem_ctx_quiet(ctx); \
        } \
    }

static const char *routine;
static long count;
static long *word;
static int threads;
static pthread_barrier_t all_exist;

static void *calls(void *unused)
{
    const int pe = shmem_n_pes() - 1;
    long local = 0;
    volatile long sink = 0;
    shmem_ctx_t ctx;
    (void)unused;
    /* A thread that begins after another has ended would get its number under valgrind. */
    if (threads)
        pthread_barrier_wait(&all_exist);
    if (shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx) != 0) {
        fprintf(stderr, "counts: there is no context\n");
        shmem_global_exit(1);
    }
    if (strcmp(routine, "shmem_long_p") == 0) {
        CALL(shmem_long_p(word, i, pe));
    } else if (strcmp(routine, "shmem_long_g") == 0) {
        CALL(sink = shmem_long_g(word, pe));
    } else if (strcmp(routine, "shmem_long_atomic_fetch_add") == 0) {
        CALL(sink = shmem_long_atomic_fetch_add(word, 1, pe));
    } else if (strcmp(routine, "shmem_putmem") == 0) {
        CALL(shmem_putmem(word, &local, sizeof local, pe));
    } else if (strcmp(routine, "shmem_putmem_nbi") == 0) {
        CALL(shmem_putmem_nbi(word, &local, sizeof local, pe));
    } else if (strcmp(routine, "shmem_getmem") == 0) {
        CALL(shmem_getmem(&local, word, sizeof local, pe));
    } else if (strcmp(routine, "shmem_ctx_long_atomic_fetch_add") == 0) {
        CALL(sink = shmem_ctx_long_atomic_fetch_add(ctx, word, 1, pe));
    } else if (strcmp(routine, "shmem_ctx_putmem") == 0) {
        CALL(shmem_ctx_putmem(ctx, word, &local, sizeof local, pe));
    } else if (strcmp(routine, "shmem_ctx_putmem_nbi") == 0) {
        CALL(shmem_ctx_putmem_nbi(ctx, word, &local, sizeof local, pe));
    } else if (strcmp(routine, "shmem_ctx_getmem") == 0) {
        CALL(shmem_ctx_getmem(ctx, &local, word, sizeof local, pe));
    } else if (strcmp(routine, "shmem_barrier_all") == 0) {
        CALL(shmem_barrier_all());
    } else {
        fprintf(stderr, "counts: it knows no routine %s\n", routine);
        shmem_global_exit(2);
    }
    shmem_ctx_destroy(ctx);
    (void)sink;
    return NULL;
}

int main(int argc, char **argv)
{
    enum { MOST = 16 };
    pthread_t thread[MOST];
    int provided;
    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: counts ROUTINE COUNT [THREADS]\n");
        return 2;
    }
    routine = argv[1];
    count = atol(argv[2]);
    threads = argc == 4 ? atoi(argv[3]) : 0;
    if (threads < 0 || threads > MOST)
        return 2;
    shmem_init_thread(threads ? SHMEM_THREAD_MULTIPLE : SHMEM_THREAD_SINGLE, &provided);
    word = shmem_calloc(1, sizeof *word);
    if (threads && pthread_barrier_init(&all_exist, NULL, threads) != 0)
        return 1;
    for (int i = 0; i < threads; i++)
        if (pthread_create(&thread[i], NULL, calls, NULL) != 0)
            return 1;
    for (int i = 0; i < threads; i++)
        pthread_join(thread[i], NULL);
    if (!threads)
        calls(NULL);
    shmem_free(word);
    shmem_finalize();
    return 0;
}
