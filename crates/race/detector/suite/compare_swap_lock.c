/* A lock made of compare and swap, given up before the put is complete.
 * PEs: 2 */
#include "suite.h"

static long x[8];
static int flags[4];

static void run(int me, int n) {
    (void)me, (void)n;
    long one = 1;
    for (int turn = 0; turn < 3; turn++) {
        while (shmem_int_atomic_compare_swap(flags, 0, 1, 0) != 0) {
        }
        shmem_long_put(x, &one, 1, 0); /* RACE with itself */
        ORDER(shmem_quiet());
        shmem_int_atomic_swap(flags, 0, 0);
    }
}
