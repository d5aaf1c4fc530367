/* The source of a non-blocking put is changed, and no flush has waited for it.
 * PEs: 2 */
#include <shmemx.h>

#include "suite.h"

static long x[8];

static void run(int me, int n) {
    (void)me, (void)n;
    long source = 1;
    if (me == 0) {
        shmem_long_put_nbi(x, &source, 1, 1); /* RACE */
        ORDER(shmemx_flush());
        source = 2; /* RACE */
        shmem_quiet();
    }
}
