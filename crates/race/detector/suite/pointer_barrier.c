/* A store through shmem_ptr, and a store of the owner.
 * PEs: 2 */
#include "suite.h"

static long x[8];

static void run(int me, int n) {
    (void)me, (void)n;
    long *there = shmem_ptr(x, 1);
    if (me == 0 && there)
        there[2] = 1; /* RACE */
    ORDER(shmem_barrier_all());
    if (me == 1)
        x[2] = 2; /* RACE */
}
