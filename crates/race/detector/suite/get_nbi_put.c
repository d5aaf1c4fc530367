/* A non-blocking get and a put of the same bytes: a fence does not order gets.
 * PEs: 2 */
#include "suite.h"

static long x[8];

static void run(int me, int n) {
    (void)me, (void)n;
    long dest = 0, one = 1;
    if (me == 0) {
        shmem_long_get_nbi(&dest, x, 1, 1); /* RACE */
        shmem_fence();
        ORDER(shmem_quiet());
        shmem_long_put(x, &one, 1, 1); /* RACE */
        shmem_quiet();
    }
}
