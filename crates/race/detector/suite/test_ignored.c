/* What shmem_test returns must be looked at.
 * PEs: 2 */
#include "suite.h"

static long x[8];
static int flags[4];

static void run(int me, int n) {
    (void)me, (void)n;
    long one = 1;
    if (me == 0) {
        shmem_long_put(x, &one, 1, 1); /* RACE */
        if (IF_CLEAN(0, 1))
            shmem_int_wait_until(&flags[1], SHMEM_CMP_EQ, 1);
        shmem_fence();
        shmem_int_atomic_set(flags, 1, 1);
    }
    if (me == 1) {
        while (!shmem_int_test(flags, SHMEM_CMP_EQ, 1) && IF_CLEAN(1, 0)) {
        }
        used = x[0]; /* RACE */
        shmem_int_atomic_set(&flags[1], 1, 0);
    }
}
