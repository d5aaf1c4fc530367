/* A fence orders the puts to one PE, not puts to several PEs.
 * PEs: 3 */
#include "suite.h"

static long x[8], flag;

static void run(int me, int n) {
    (void)me, (void)n;
    long one = 1;
    if (me == 0) {
        shmem_long_put(x, &one, 1, 1); /* RACE */
        shmem_fence();
        ORDER(shmem_quiet());
        shmem_long_atomic_set(&flag, 1, 2);
    }
    if (me == 2) {
        shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1);
        used = shmem_long_g(x, 1); /* RACE */
    }
}
