/* A fence or quiet of OpenSHMEM orders stores through shmem_ptr before a relaxed atomic store.
 * PEs: 2 */
#include "suite.h"

static long x[8];
static int flag;

static void run(int me, int n) {
    (void)me, (void)n;
    long *there = shmem_ptr(x, 1);
    int *raised = shmem_ptr(&flag, 1);
    if (me == 0 && there) {
        shmem_quiet();
        there[2] = 1; /* RACE */
        ORDER(shmem_fence());
        __atomic_store_n(raised, 1, __ATOMIC_RELAXED);
    }
    if (me == 1) {
        while (__atomic_load_n(&flag, __ATOMIC_ACQUIRE) == 0) {
        }
        used = x[2]; /* RACE */
    }
}
