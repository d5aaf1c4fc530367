/* The source of a non-blocking put is freed before the put is complete.
 * PEs: 2 */
#include "suite.h"

static long x[8];

static void run(int me, int n) {
    (void)me, (void)n;
    if (me == 0) {
        long *source = malloc(64);
        source[1] = 1;
        shmem_long_put_nbi(x, source, 8, 1); /* RACE */
        ORDER(shmem_quiet());
        free(source); /* RACE */
        shmem_quiet();
    }
}
