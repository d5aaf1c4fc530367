/* Two puts of one PE to the same bytes: the order of their delivery is not that of the calls.
 * PEs: 2 */
#include "suite.h"

static long x[8];

static void run(int me, int n) {
    (void)me, (void)n;
    long a = 1, b = 2;
    if (me == 0) {
        shmem_long_put(x, &a, 1, 1); /* RACE */
        ORDER(shmem_fence());
        shmem_long_put(x, &b, 1, 1); /* RACE */
    }
}
