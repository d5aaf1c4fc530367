/* A relaxed atomic store through shmem_ptr, for which the other PE waits by OpenSHMEM, or without waiting.
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
        shmem_fence();
        __atomic_store_n(raised, 1, __ATOMIC_RELAXED);
    }
    if (me == 1) {
        ORDER(shmem_int_wait_until(&flag, SHMEM_CMP_EQ, 1));
        used = x[2]; /* RACE */
    }
}
