/* A critical section with a store through shmem_ptr.
 * PEs: 2 */
#include "suite.h"

static long lock, x[8];

static void run(int me, int n) {
    (void)me, (void)n;
    long *there = shmem_ptr(x, 1);
    ORDER(shmem_set_lock(&lock));
    if (me == 0 && there)
        there[2] = 1; /* RACE */
    if (me == 1)
        used = x[2]; /* RACE */
    ORDER(shmem_clear_lock(&lock));
    (void)lock;
}
