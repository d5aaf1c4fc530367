/* Common code of the timed programs of this folder: the clock, the processor of a PE, symmetric memory.
 *
 * It calls only routines of OpenSHMEM 1.4. A source defines _GNU_SOURCE before it includes anything.
 */
#ifndef RUSHMEM_BENCHES_TIMING_H
#define RUSHMEM_BENCHES_TIMING_H

#include <errno.h>
#include <sched.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Words that are timed are so far apart that they share neither a cache line nor a pair of lines. */
enum { LINE = 128 };

static inline double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

/* Ends the whole job with a message. */
static inline void give_up(const char *why)
{
    fprintf(stderr, "%s: PE %d: %s\n", program_invocation_short_name, shmem_my_pe(), why);
    shmem_global_exit(1);
    exit(1);
}

/* Moves the caller to the index-th processor that the job may use. */
static inline void run_on_processor(int index)
{
    const long processors = sysconf(_SC_NPROCESSORS_CONF);
    for (int processor = 0; processor < processors && processor < CPU_SETSIZE; processor++) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(processor, &set);
        if (sched_setaffinity(0, sizeof set, &set) == 0 && index-- == 0)
            return;
    }
    give_up("there are fewer processors than PEs");
}

/* The number of this PE in a job of two, each on a processor of its own. */
static inline int one_of_two(void)
{
    if (shmem_n_pes() != 2)
        give_up("it measures between 2 PEs, neither fewer nor more");
    run_on_processor(shmem_my_pe());
    return shmem_my_pe();
}

/* Zeroed symmetric memory that starts a page. */
static inline void *symmetric(size_t bytes)
{
    void *made = shmem_align(4096, bytes);
    if (made == NULL)
        give_up("the symmetric heap is too small");
    memset(made, 0, bytes);
    return made;
}

/* One line of the result. Times are in nanoseconds. */
static inline void report(const char *name, double value)
{
    printf("%s %.3f\n", name, value);
    fflush(stdout);
}

/* The time of one operation. Doubles the number of operations until they take `enough`; the last loop counts. */
static inline double each(void (*loop)(long count), double enough)
{
    for (long count = 64;; count *= 2) {
        const double start = now();
        loop(count);
        const double lasted = now() - start;
        if (lasted >= enough)
            return lasted / count;
    }
}

/* The time of one of `count` rounds, in which both PEs take part. */
static inline double each_round(void (*rounds)(int me, long count), long count)
{
    shmem_barrier_all();
    const double start = now();
    rounds(shmem_my_pe(), count);
    const double lasted = now() - start;
    shmem_barrier_all();
    return lasted / count;
}

#endif
