/* What the kernels print: the time of the loop that is measured, and the memory of a PE. */
#ifndef RUSHMEM_BENCHES_KERNEL_H
#define RUSHMEM_BENCHES_KERNEL_H

#define _GNU_SOURCE
#include "../timing.h"

/* The proportional share of this process, in bytes: what PEs share is divided by their number. */
static inline double proportional_memory(void)
{
    FILE *const file = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    double found = -1;
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "Pss:", 4) == 0)
            found = 1024. * strtol(line + 4, NULL, 10);
    if (found < 0)
        give_up("/proc/self/smaps_rollup cannot be read");
    fclose(file);
    return found;
}

/* Called by all PEs; PE 0 prints its own. */
static inline void report_kernel(double time)
{
    const double memory = proportional_memory();
    shmem_barrier_all();
    if (shmem_my_pe() == 0) {
        report("time", time);
        report("memory", memory);
    }
}

#endif
