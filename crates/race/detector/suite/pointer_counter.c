/* A counter of one PE that the others increment through shmem_ptr by atomic operations of C.
 * PEs: 3 */
#include "suite.h"

static atomic_long count;
static long x[8];

static void run(int me, int n) {
    (void)me, (void)n;
    atomic_long *there = shmem_ptr(&count, 0);
    long *all = shmem_ptr(x, 0);
    if (me > 0 && there) {
        all[me] = me; /* RACE */
        atomic_fetch_add(there, 1);
    }
    if (me == 0) {
        while (IF_CLEAN(1, 0) && atomic_load(&count) != n - 1) {
        }
        used = x[1]; /* RACE */
    }
}
