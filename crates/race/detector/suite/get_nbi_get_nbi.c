/* Two non-blocking gets have the same destination.
 * PEs: 2 */
#include "suite.h"

static long x[8];

static void run(int me, int n) {
    (void)me, (void)n;
    long dest = 0;
    if (me == 0) {
        shmem_long_get_nbi(&dest, x, 1, 1); /* RACE */
        ORDER(shmem_quiet());
        shmem_long_get_nbi(&dest, &x[1], 1, 1); /* RACE */
        shmem_quiet();
    }
}
