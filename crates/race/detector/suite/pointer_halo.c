/* A halo that neighbors store through shmem_ptr, between syncs: these complete stores.
 * PEs: 3 */
#include "suite.h"

static long x[8];

static void run(int me, int n) {
    (void)me, (void)n;
    long *there = shmem_ptr(x, (me + 1) % n);
    for (int round = 0; round < 4 && there; round++) {
        there[0] = me + round; /* RACE */
        shmem_sync_all();
        used = x[0]; /* RACE */
        ORDER(shmem_sync_all());
    }
}
