/* Times how long a lock takes from one PE to the next when all of them want it all the time.
 *
 * Any number of PEs; prints `lock_N nanoseconds` for N of them. Only routines of OpenSHMEM 1.4 are called,
 * so that it is built as it stands by any implementation. Where every PE can have a processor it gets one.
 */
#define _GNU_SOURCE
#include "timing.h"

enum { TURNS_OF_TWO = 20 * 1000, TURNS_OF_MANY = 200 };

static long *lock;

static void turns(int me, long count)
{
    (void)me;
    for (long i = 0; i < count; i++) {
        shmem_set_lock(lock);
        shmem_clear_lock(lock);
    }
}

int main(void)
{
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    if (n <= sysconf(_SC_NPROCESSORS_ONLN))
        run_on_processor(me);
    lock = symmetric(LINE);
    shmem_barrier_all();
    turns(me, 10);
    const double round = each_round(turns, n > 2 ? TURNS_OF_MANY : TURNS_OF_TWO);
    if (me == 0) {
        char name[32];
        snprintf(name, sizeof name, "lock_%d", n);
        report(name, round / n);
    }
    shmem_free(lock);
    shmem_finalize();
    return 0;
}
