/* A word that its status excludes is not waited for.
 * PEs: 3 */
#include "suite.h"

static long x[8];
static int flags[4];

static void run(int me, int n) {
    (void)me, (void)n;
    long one = 1;
    int status[2] = {0, IF_CLEAN(0, 1)};
    if (me > 0) {
        shmem_long_put(&x[me], &one, 1, 0); /* RACE */
        shmem_fence();
        shmem_int_atomic_set(&flags[me], 1, 0);
    }
    if (me == 0) {
        shmem_int_wait_until_all(&flags[1], 2, status, SHMEM_CMP_EQ, 1);
        used = x[1];
        used = x[2]; /* RACE */
    }
}
