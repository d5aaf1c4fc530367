/* A store through the pointer of shmem_ptr.
 * PEs: 3 */
#include "suite.h"

static long x[8];

static void run(int me, int n) {
    (void)me, (void)n;
    long *there = shmem_ptr(x, 1);
    if (me == 0 && there)
        there[2] = 1; /* RACE */
    ORDER(shmem_barrier_all());
    if (me == 2)
        used = shmem_long_g(&x[2], 1); /* RACE */
}
