/* PEs take tasks of unequal length from one queue, a few at a time, under a lock, and add their
 * results to a sum on PE 0. The time is that of the tasks and of the lock.
 */
#include "kernel.h"

enum { TASKS = 1 << 14, AT_A_TIME = 4, LONGEST = 1 << 12 };

static long lock;             /* symmetric */
static long first_task;       /* symmetric: on PE 0, the first task that no PE has taken */
static unsigned long results; /* symmetric: on PE 0, the sum of the results */

static unsigned long result_of(long task)
{
    unsigned long mixed = (unsigned long)(task + 1) * 0x9e3779b97f4a7c15ul;
    for (long left = (long)(mixed >> 32) % LONGEST; left > 0; left--)
        mixed = (mixed ^ (mixed >> 31)) * 0xbf58476d1ce4e5b9ul;
    return mixed;
}

static long take(void)
{
    shmem_set_lock(&lock);
    const long first = shmem_long_g(&first_task, 0);
    shmem_long_p(&first_task, first + AT_A_TIME, 0);
    shmem_quiet(); /* Open MPI 4.1 needs it, although the standard does not require it */
    shmem_clear_lock(&lock);
    return first;
}

int main(void)
{
    shmem_init();
    shmem_barrier_all();

    const double start = now();
    unsigned long own = 0;
    for (long first = take(); first < TASKS; first = take())
        for (long task = first; task < first + AT_A_TIME; task++)
            own += result_of(task);
    shmem_ulong_atomic_add(&results, own, 0);
    shmem_quiet();
    shmem_barrier_all();
    const double time = now() - start;

    if (shmem_my_pe() == 0) {
        unsigned long expected = 0;
        for (long task = 0; task < TASKS; task++)
            expected += result_of(task);
        if (results != expected)
            give_up("a task was done twice or never");
    }
    report_kernel(time);
    shmem_finalize();
    return 0;
}
