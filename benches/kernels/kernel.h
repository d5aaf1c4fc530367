/* Common code of the kernels: the amount of work, a sum over all PEs, and the output, which is the
 * time of the measured loop and the memory of a PE.
 *
 * Like timing.h it calls only routines of OpenSHMEM 1.4, so that most kernels run with any library.
 */
#ifndef RUSHMEM_BENCHES_KERNEL_H
#define RUSHMEM_BENCHES_KERNEL_H

#define _GNU_SOURCE
#include "../timing.h"

enum { MOST_WORDS = 1 << 10 /* of a reduction */ };

/* Divides the amount of a kernel's work by the program's argument, if there is one. Jobs over a
 * network do less work, since an operation takes microseconds there instead of nanoseconds. */
static inline long share_of(long amount, int argc, char **argv)
{
    const long divisor = argc > 1 ? strtol(argv[1], NULL, 10) : 1;
    if (divisor < 1 || amount % divisor != 0)
        give_up("the argument does not divide the amount of work");
    return amount / divisor;
}

/* Sums symmetric arrays over all PEs. */
static inline void sum_of_all(long *dest, const long *source, int nelems)
{
    static long work[MOST_WORDS / 2 + 1 > SHMEM_REDUCE_MIN_WRKDATA_SIZE
                         ? MOST_WORDS / 2 + 1
                         : SHMEM_REDUCE_MIN_WRKDATA_SIZE];
    static long sync[2][SHMEM_REDUCE_SYNC_SIZE];
    static int calls;
    if (nelems > MOST_WORDS)
        give_up("a sum is too long");
    if (calls == 0) {
        for (int i = 0; i < SHMEM_REDUCE_SYNC_SIZE; i++)
            sync[0][i] = sync[1][i] = SHMEM_SYNC_VALUE;
    }
    /* After this, all PEs have returned from the previous sum, which used the same work array. */
    shmem_barrier_all();
    shmem_long_sum_to_all(dest, (long *)source, nelems, 0, 0, shmem_n_pes(), work, sync[calls++ % 2]);
}

/* Returns the proportional memory of this process in bytes: a shared page counts in parts. */
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

/* Prints the time and the memory of PE 0. All PEs call it. */
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
