/* Blocks at a distance: a store between the blocks is none to a block.
 * PEs: 2 */
#include "suite.h"

static long x[8];

static void run(int me, int n) {
    (void)me, (void)n;
    long from[4] = {1, 2, 3, 4};
    if (me == 0)
        shmem_long_ibput(x, from, 4, 2, 2, 2, 1); /* RACE */
    if (me == 1)
        x[IF_CLEAN(3, 5)] = 1; /* RACE */
}
