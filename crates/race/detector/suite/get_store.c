/* A PE stores what another one gets.
 * PEs: 2 */
#include "suite.h"

static long x[8];

static void run(int me, int n) {
    (void)me, (void)n;
    if (me == 0)
        x[0] = 1; /* RACE */
    ORDER(shmem_barrier_all());
    if (me == 1)
        used = shmem_long_g(x, 0); /* RACE */
}
