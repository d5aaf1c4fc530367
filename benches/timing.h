/* Common code of the programs of this directory, which measure what shmem-perf cannot: the clock,
 * binding to processors, symmetric memory, and output.
 *
 * It calls only routines of OpenSHMEM 1.4. A source must define _GNU_SOURCE before its first
 * include.
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

static inline double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

/* Prints a message and ends the whole job. */
static inline void give_up(const char *why)
{
    fprintf(stderr, "%s: PE %d: %s\n", program_invocation_short_name, shmem_my_pe(), why);
    shmem_global_exit(1);
    exit(1);
}

/* Binds the caller to the index-th processor that the kernel lets it use. */
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

/* Allocates zeroed symmetric memory at the start of a page. All PEs call it. */
static inline void *symmetric(size_t bytes)
{
    void *made = shmem_align(4096, bytes);
    if (made == NULL)
        give_up("the symmetric heap is too small");
    memset(made, 0, bytes);
    return made;
}

/* Prints one line of the result. Times are in nanoseconds. */
static inline void report(const char *name, double value)
{
    printf("%s %.3f\n", name, value);
    fflush(stdout);
}

#endif
