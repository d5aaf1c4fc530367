/* Times how long a lock takes from one PE to the next when all of them want it all the time.
 *
 * Any number of PEs; prints `lock_N nanoseconds` for N of them: the time divided by how often the lock went to
 * another PE than had it before. Only routines of OpenSHMEM 1.4 are called, so that it is built as it stands
 * by any implementation. Where every PE can have a processor it gets one; where not, the holder lets the
 * others run, so that they want the lock while it is taken.
 */
#define _GNU_SOURCE
#include "timing.h"

enum { TURNS_OF_TWO = 20 * 1000, TURNS_OF_MANY = 200 };

static long *lock;
static long *holder; /* on PE 0, under the lock: who had it last */
static long *handed; /* on PE 0: how often it was another */
static int crowded;

static void turns(int me, long count)
{
    long from_others = 0;
    for (long i = 0; i < count; i++) {
        shmem_set_lock(lock);
        if (shmem_long_g(holder, 0) != me) {
            shmem_long_p(holder, me, 0);
            from_others++;
        }
        if (crowded)
            sched_yield();
        shmem_clear_lock(lock);
    }
    shmem_long_atomic_add(handed, from_others, 0);
}

int main(void)
{
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    crowded = n > sysconf(_SC_NPROCESSORS_ONLN);
    if (!crowded)
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
