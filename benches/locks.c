/* Times how long a lock takes to go from one PE to the next when all of them want it all the time.
 *
 * It runs on any number of PEs and prints `lock_N nanoseconds` for N of them: the time divided by the number of times
 * that the lock went to a PE that did not hold it before. It calls only routines of OpenSHMEM 1.4, so any implementation
 * can build it unchanged. Each PE gets a processor of its own where there are enough; otherwise the holder yields, so
 * that the others ask for the lock while it is held.
 */
#define _GNU_SOURCE
#include "timing.h"

enum { TURNS_OF_TWO = 20 * 1000, TURNS_OF_MANY = 200 };

static long *lock;
static long *holder; /* on PE 0, protected by the lock: the last holder */
static long *handed; /* on PE 0: how often the holder changed */
static int oversubscribed;

static void turns(int me, long count)
{
    long from_others = 0;
    for (long i = 0; i < count; i++) {
        shmem_set_lock(lock);
        if (shmem_long_g(holder, 0) != me) {
            shmem_long_p(holder, me, 0);
            from_others++;
        }
        if (oversubscribed)
            sched_yield();
        shmem_clear_lock(lock);
    }
    shmem_long_atomic_add(handed, from_others, 0);
}

int main(void)
{
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    oversubscribed = n > sysconf(_SC_NPROCESSORS_ONLN);
    if (!oversubscribed)
        run_on_processor(me);
    char *words = symmetric(3 * LINE);
    lock = (long *)words;
    holder = (long *)(words + LINE);
    handed = (long *)(words + 2 * LINE);
    shmem_barrier_all();
    turns(me, 10);
    shmem_barrier_all();
    *handed = 0;
    const long count = n > 2 ? TURNS_OF_MANY : TURNS_OF_TWO;
    const double round = each_round(turns, count);
    if (me == 0 && *handed > 0) {
        char name[32];
        snprintf(name, sizeof name, "lock_%d", n);
        report(name, round * count / *handed);
    }
    shmem_free(words);
    shmem_finalize();
    return 0;
}
