/* Times barriers, max-reductions, broadcasts and collections over all PEs.
 *
 * It runs on any number of PEs and prints `NAME_N nanoseconds` for N of them. It calls only routines of OpenSHMEM 1.4 on
 * active sets, so any implementation can build it unchanged. `bare_max_large` is the memory traffic that a reduction of 1 MiB
 * cannot avoid, where PEs share memory: every PE copies its share of everybody's source to everybody's destination.
 */
#define _GNU_SOURCE
#include "timing.h"

enum { MEDIUM = 1024, LARGE = 128 * 1024 };

static long psync[2][SHMEM_REDUCE_SYNC_SIZE];
static long collect_sync[2][SHMEM_COLLECT_SYNC_SIZE];
static long broadcast_sync[2][SHMEM_BCAST_SYNC_SIZE];
static long work[LARGE / 2 + SHMEM_REDUCE_MIN_WRKDATA_SIZE + 1];
static long *source, *dest;
static int nelems;

static void fill(long *words, int count)
{
    for (int i = 0; i < count; i++)
        words[i] = SHMEM_SYNC_VALUE;
}

static void barriers(int me, long count)
{
    (void)me;
    for (long i = 0; i < count; i++)
        shmem_barrier_all();
}

static void reductions(int me, long count)
{
    (void)me;
    for (long i = 0; i < count; i++)
        shmem_long_max_to_all(dest, source, nelems, 0, 0, shmem_n_pes(), work, psync[i % 2]);
}

static void broadcasts(int me, long count)
{
    (void)me;
    for (long i = 0; i < count; i++) {
        shmem_broadcast64(dest, source, 1, 0, 0, 0, shmem_n_pes(), broadcast_sync[i % 2]);
        shmem_barrier_all();
    }
}

static void collections(int me, long count)
{
    (void)me;
    for (long i = 0; i < count; i++) {
        shmem_fcollect64(dest, source, 1, 0, 0, shmem_n_pes(), collect_sync[i % 2]);
        shmem_barrier_all();
    }
}

static void copies(int me, long count)
{
    const int n = shmem_n_pes(), share = LARGE / n, first = me * share;
    for (long i = 0; i < count; i++) {
        for (int pe = 0; pe < n; pe++) {
            long *from = shmem_ptr(source, pe), *to = shmem_ptr(dest, pe);
            memcpy(to + first, from + first, share * sizeof *to);
        }
    }
}

/* Prints the time of a round of N PEs. */
static void time_of(const char *name, void (*rounds)(int me, long count), long count)
{
    char full[64];
    each_round(rounds, count / 10 + 1);
    const double round = each_round(rounds, count);
    snprintf(full, sizeof full, "%s_%d", name, shmem_n_pes());
    if (shmem_my_pe() == 0)
        report(full, round);
}

static void time_reductions(const char *name, int length, long count)
{
    nelems = length;
    time_of(name, reductions, count);
    for (int i = 0; i < length; i++)
        if (dest[i] != i + shmem_n_pes() - 1)
            give_up("a maximum is wrong");
}

int main(void)
{
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    if (n <= sysconf(_SC_NPROCESSORS_ONLN))
        run_on_processor(me);
    for (int i = 0; i < 2; i++) {
        fill(psync[i], SHMEM_REDUCE_SYNC_SIZE);
        fill(collect_sync[i], SHMEM_COLLECT_SYNC_SIZE);
        fill(broadcast_sync[i], SHMEM_BCAST_SYNC_SIZE);
    }
    source = symmetric(LARGE * sizeof *source);
    dest = symmetric(LARGE * sizeof *dest);
    for (int i = 0; i < LARGE; i++)
        source[i] = i + me;
    const int maps_all = shmem_ptr(dest, n - 1) != NULL && shmem_ptr(dest, 0) != NULL;
    const long count = maps_all && n == 2 ? 20000 : 1000;
    time_of("barrier", barriers, count);
    time_reductions("max", 1, count);
    time_reductions("max_medium", MEDIUM, count / 2);
    time_reductions("max_large", LARGE, count / 50);
    time_of("broadcast", broadcasts, count);
    time_of("fcollect", collections, count);
    if (maps_all)
        time_of("bare_max_large", copies, count / 50);
    shmem_free(dest);
    shmem_free(source);
    shmem_finalize();
    return 0;
}
