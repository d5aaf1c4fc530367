/* A quiet towards one PE completes nothing towards another one.
 * PEs: 3 */
#include "suite.h"

static long x[8];

static void run(int me, int n) {
    (void)me, (void)n;
    long one = 1;
    int target = IF_CLEAN(1, 2);
    if (me == 0) {
        shmem_long_put(x, &one, 1, 1); /* RACE */
        shmem_pe_quiet(&target, 1);
    }
    shmem_sync_all();
    if (me == 1)
        used = x[0]; /* RACE */
}
