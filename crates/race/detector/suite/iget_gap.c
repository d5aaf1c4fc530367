/* A strided get reads every second element.
 * PEs: 2 */
#include "suite.h"

static long x[8];

static void run(int me, int n) {
    (void)me, (void)n;
    long to[4];
    if (me == 0)
        shmem_long_iget(to, x, 1, 2, 4, 1); /* RACE */
    if (me == 1)
        x[IF_CLEAN(5, 6)] = 1; /* RACE */
}
