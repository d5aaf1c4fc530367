/* A store of the owner is not atomic.
 * PEs: 2 */
#include "suite.h"

static long x[8];

static void run(int me, int n) {
    (void)me, (void)n;
    if (me == 0)
        shmem_long_atomic_add(x, 1, 1); /* RACE */
    if (me == 1)
        IF_CLEAN(shmem_long_atomic_set(x, 1, 1), x[0] = 1); /* RACE */
}
