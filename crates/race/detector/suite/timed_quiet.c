/* A quiet with a limit that was kept completes operations as a quiet does.
 * PEs: 2 */
#include "suite.h"
#include "timed.h"

static long x[8];

static void run(int me, int n) {
    (void)me, (void)n;
    long source = 1;
    if (me == 0) {
        shmem_long_put_nbi(x, &source, 1, 1); /* RACE */
        ORDER(while (shmemx_quiet_timed(1e-3) == SHMEMX_TIMED_OUT));
        source = 2; /* RACE */
    }
}
