/* The destination of a non-blocking get is used before a quiet.
 * PEs: 2 */
#include "suite.h"

static long x[8];

static void run(int me, int n) {
    (void)me, (void)n;
    long dest = 0;
    if (me == 0) {
        shmem_long_get_nbi(&dest, x, 1, 1); /* RACE */
        ORDER(shmem_quiet());
        used = dest; /* RACE */
        shmem_quiet();
    }
}
