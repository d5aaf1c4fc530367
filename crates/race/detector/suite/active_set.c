/* A barrier of an active set is none for a PE outside.
 * PEs: 3 */
#include "suite.h"

static long x[8], psync[SHMEM_BARRIER_SYNC_SIZE];

static void run(int me, int n) {
    (void)me, (void)n;
    long one = 1;
    if (me == 2)
        shmem_long_put(x, &one, 1, 1); /* RACE */
    if (me < 2)
        shmem_barrier(0, 0, 2, psync);
    ORDER(shmem_barrier_all());
    if (me == 1)
        used = x[0]; /* RACE */
}
