/* A word that shmem_wait_until_any has not named was not seen.
 * PEs: 3 */
#include "suite.h"

static long x[8];
static int flags[4];

static void run(int me, int n) {
    (void)me, (void)n;
    long one = 1;
    if (me > 0) {
        shmem_long_put(&x[me], &one, 1, 0); /* RACE */
        shmem_fence();
        if (me == 2)
            shmem_int_wait_until(&flags[3], SHMEM_CMP_EQ, 1);
        shmem_int_atomic_set(&flags[me], 1, 0);
    }
    if (me == 0) {
        used = x[1 + shmem_int_wait_until_any(&flags[1], 2, NULL, SHMEM_CMP_EQ, 1)];
        ORDER(shmem_int_p(&flags[3], 1, 2));
        ORDER(shmem_int_wait_until(&flags[2], SHMEM_CMP_EQ, 1));
        used = x[2]; /* RACE */
        shmem_int_p(&flags[3], 1, 2);
    }
}
