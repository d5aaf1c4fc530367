/* The value of a non-blocking atomic operation is used before a quiet.
 * PEs: 2 */
#include "suite.h"

static long x[8];

static void run(int me, int n) {
    (void)me, (void)n;
    long old = 0;
    if (me == 0) {
        shmem_long_atomic_fetch_add_nbi(&old, x, 1, 1); /* RACE */
        ORDER(shmem_quiet());
        used = old; /* RACE */
        shmem_quiet();
    }
}
