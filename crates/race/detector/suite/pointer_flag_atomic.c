/* A flag that is stored through shmem_ptr and loaded by atomic operations of C.
 * PEs: 2 */
#include "suite.h"

static long x[8];
static int flag;

static void run(int me, int n) {
    (void)me, (void)n;
    long *there = shmem_ptr(x, 1);
    int *raised = shmem_ptr(&flag, 1);
    if (me == 0 && there) {
        there[2] = 1; /* RACE */
        __atomic_store_n(raised, 1, __ATOMIC_RELEASE);
    }
    if (me == 1) {
        while (IF_CLEAN(1, 0) && __atomic_load_n(&flag, __ATOMIC_ACQUIRE) == 0) {
        }
        used = x[2]; /* RACE */
    }
}
