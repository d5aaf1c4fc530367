/* The data are used before the wait for their flag.
 * PEs: 2 */
#include "suite.h"

static long x[8], flag;

static void run(int me, int n) {
    (void)me, (void)n;
    long one = 1;
    if (me == 0) {
        shmem_long_put(x, &one, 1, 1); /* RACE */
        shmem_fence();
        shmem_long_atomic_set(&flag, 1, 1);
    }
    if (me == 1) {
        ORDER(shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1));
        used = x[0]; /* RACE */
        shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1);
    }
}
