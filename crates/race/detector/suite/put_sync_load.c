/* A sync synchronizes, but completes no put.
 * PEs: 2 */
#include "suite.h"

static long x[8];

static void run(int me, int n) {
    (void)me, (void)n;
    long one = 1;
    if (me == 0) {
        shmem_long_put(x, &one, 1, 1); /* RACE */
        ORDER(shmem_quiet());
    }
    shmem_sync_all();
    if (me == 1)
        used = x[0]; /* RACE */
}
