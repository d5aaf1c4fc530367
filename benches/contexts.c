/* Threads that issue operations on contexts. For 1, 2, 4, .. threads of PE 0, each with a context
 * of its own or all with the default context, it prints the CPU time of an operation and of the
 * quiet after all of them, how often a thread waited in the kernel, for instance for a lock, and
 * how many operations per second all threads completed.
 *
 *     oshcc -O2 -pthread benches/contexts.c -o contexts && oshrun -n 2 ./contexts 8
 *
 * A single case, for example to count its instructions with callgrind:
 *
 *     contexts THREADS p|inc own|default OPERATIONS
 */
#define _GNU_SOURCE
#include "timing.h"
#include <pthread.h>
#include <stdint.h>
#include <sys/resource.h>

enum { MOST_THREADS = 64, STRIDE = 16 };

static int operations_of_thread = 100000;

struct thread {
    pthread_t id;
    shmem_ctx_t ctx;
    uint64_t *word;
    int is_amo;
    double issue_time, quiet_time;
    double start, end;
    long waits;
};

static double processor_time(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static void *issue(void *argument)
{
    struct thread *thread = argument;
    struct rusage before, after;
    getrusage(RUSAGE_THREAD, &before);
    thread->start = now();
    const double start = processor_time();
    for (int i = 0; i < operations_of_thread; i++)
        if (thread->is_amo)
            shmem_ctx_uint64_atomic_inc(thread->ctx, thread->word, 1);
        else
            shmem_ctx_uint64_p(thread->ctx, thread->word, i, 1);
    const double issued = processor_time();
    shmem_ctx_quiet(thread->ctx);
    thread->quiet_time = processor_time() - issued;
    thread->issue_time = issued - start;
    thread->end = now();
    getrusage(RUSAGE_THREAD, &after);
    thread->waits = after.ru_nvcsw - before.ru_nvcsw;
    return NULL;
}

static void measure(uint64_t *words, int n, int is_private, int is_amo)
{
    struct thread threads[MOST_THREADS];
    double issue_time = 0, quiet_time = 0, start = 0, end = 0;
    long waits = 0;
    for (int i = 0; i < n; i++) {
        threads[i] = (struct thread){ .ctx = SHMEM_CTX_DEFAULT, .word = words + i * STRIDE, .is_amo = is_amo };
        if (is_private && shmem_ctx_create(SHMEM_CTX_SERIALIZED, &threads[i].ctx) != 0)
            give_up("there are no more contexts");
    }
    for (int i = 0; i < n; i++)
        if (pthread_create(&threads[i].id, NULL, issue, threads + i) != 0)
            give_up("it cannot start a thread");
    for (int i = 0; i < n; i++) {
        pthread_join(threads[i].id, NULL);
        issue_time += threads[i].issue_time / n;
        quiet_time += threads[i].quiet_time / n;
        waits += threads[i].waits;
        start = i == 0 || threads[i].start < start ? threads[i].start : start;
        end = threads[i].end > end ? threads[i].end : end;
        if (is_private)
            shmem_ctx_destroy(threads[i].ctx);
    }
    printf("%s, %d threads, %s: %.1f ns of a processor each, and %.0f us for a quiet; %.2f waits in 1000; %.1f M/s\n",
           is_amo ? "atomic_inc" : "p", n, is_private ? "a context each" : "the default context",
           issue_time / operations_of_thread, quiet_time / 1e3, waits * 1e3 / n / operations_of_thread,
           1e3 * n * operations_of_thread / (end - start));
}

int main(int argc, char **argv)
{
    const int most = argc > 1 ? atoi(argv[1]) : 8;
    int provided;
    if (shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) != 0 || provided != SHMEM_THREAD_MULTIPLE)
        give_up("the library has no SHMEM_THREAD_MULTIPLE");
    if (most < 1 || most > MOST_THREADS)
        give_up("the number of threads is not 1 to 64");
    uint64_t *words = symmetric(MOST_THREADS * STRIDE * sizeof *words);
    shmem_barrier_all();
    if (argc == 5) {
        operations_of_thread = atoi(argv[4]);
        if (shmem_my_pe() == 0)
            measure(words, most, strcmp(argv[3], "own") == 0, strcmp(argv[2], "inc") == 0);
    }
    for (int is_amo = 0; is_amo < 2 && argc < 5; is_amo++)
        for (int is_private = 1; is_private >= 0; is_private--)
            for (int n = 1; n <= most && shmem_my_pe() == 0; n *= 2)
                measure(words, n, is_private, is_amo);
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
