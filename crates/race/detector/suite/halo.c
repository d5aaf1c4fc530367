/* A ring that reuses its buffer in the next round.
 * PEs: 3 */
#include "suite.h"

static long x[8];

static void run(int me, int n) {
    (void)me, (void)n;
    long mine = me;
    int right = (me + 1) % n;
    for (int round = 0; round < 4; round++) {
        shmem_long_put(x, &mine, 1, right); /* RACE */
        shmem_barrier_all();
        mine += x[0]; /* RACE */
        ORDER(shmem_barrier_all());
    }
}
