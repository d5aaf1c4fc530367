/* A put is not atomic.
 * PEs: 3 */
#include "suite.h"

static long x[8];

static void run(int me, int n) {
    (void)me, (void)n;
    if (me == 0)
        shmem_long_atomic_fetch_inc(x, 1); /* RACE */
    ORDER(shmem_barrier_all());
    if (me == 2)
        shmem_long_p(x, 1, 1); /* RACE */
}
