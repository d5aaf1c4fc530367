/* Times a fetching atomic operation of PE 0 on a word of PE 1: first while PE 1 waits in the library, then while it computes
 * and calls nothing. It runs on 2 PEs and prints `NAME nanoseconds` for the median, the 99th percentile and the maximum.
 */
#define _GNU_SOURCE
#include "timing.h"

enum { WARM_UP = 200, COUNT = 4000 };

static long word;
static volatile long stop;

static int ascending(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

static void time_all(const char *who)
{
    static double times[COUNT];
    for (int i = 0; i < WARM_UP; i++)
        shmem_long_atomic_fetch_add(&word, 1, 1);
    for (int i = 0; i < COUNT; i++) {
        const double start = now();
        shmem_long_atomic_fetch_add(&word, 1, 1);
        times[i] = now() - start;
    }
    qsort(times, COUNT, sizeof *times, ascending);
    const char *const names[] = {"median", "p99", "max"};
    const int places[] = {COUNT / 2, COUNT * 99 / 100, COUNT - 1};
    for (int i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s_%s", who, names[i]);
        report(name, times[places[i]]);
    }
}

int main(void)
{
    shmem_init();
    if (shmem_n_pes() != 2)
        give_up("it takes 2 PEs");
    for (int computes = 0; computes < 2; computes++) {
        stop = 0;
        shmem_barrier_all();
        if (shmem_my_pe() == 0) {
            time_all(computes ? "computes" : "waits");
            shmem_long_p((long *)&stop, 1, 1);
            shmem_quiet();
        } else if (computes) {
            while (!stop)
                continue;
        } else {
            shmem_long_wait_until((long *)&stop, SHMEM_CMP_EQ, 1);
        }
        shmem_barrier_all();
    }
    shmem_finalize();
    return 0;
}
