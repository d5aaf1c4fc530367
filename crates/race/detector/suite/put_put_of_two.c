/* Two PEs put to the same bytes of a third one.
 * PEs: 3 */
#include "suite.h"

static long x[8];

static void run(int me, int n) {
    (void)me, (void)n;
    long mine = me;
    if (me == 0)
        shmem_long_put(x, &mine, 1, 1); /* RACE */
    ORDER(shmem_barrier_all());
    if (me == 2)
        shmem_long_put(x, &mine, 1, 1); /* RACE */
}
