/* Two PEs store into the memory of a third one through shmem_ptr.
 * PEs: 3 */
#include "suite.h"

static long x[8];

static void run(int me, int n) {
    (void)me, (void)n;
    long *there = shmem_ptr(x, 1);
    if (me == 0 && there)
        there[2] = 1; /* RACE */
    ORDER(shmem_barrier_all());
    if (me == 2 && there)
        there[2] = 2; /* RACE */
}
