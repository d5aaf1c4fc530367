/* A strided put leaves the elements between alone; a store to one of those that it writes races.
 * PEs: 2 */
#include "suite.h"

static long x[8];

static void run(int me, int n) {
    (void)me, (void)n;
    long from[4] = {1, 2, 3, 4};
    if (me == 0)
        shmem_long_iput(x, from, 2, 1, 4, 1); /* RACE */
    if (me == 1)
        x[IF_CLEAN(3, 4)] = 1; /* RACE */
}
