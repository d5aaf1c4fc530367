/* A wait for values that are there already sees nothing of the writer.
 * PEs: 3 */
#include "suite.h"

static long x[8];
static int flags[4];

static void run(int me, int n) {
    (void)me, (void)n;
    long one = 1;
    int values[2] = {IF_CLEAN(1, 0), IF_CLEAN(1, 0)};
    if (me > 0) {
        shmem_long_put(&x[me], &one, 1, 0); /* RACE */
        shmem_fence();
        shmem_int_atomic_set(&flags[me], 1, 0);
    }
    if (me == 0) {
        ORDER(shmem_int_wait_until_all_vector(&flags[1], 2, NULL, SHMEM_CMP_EQ, values));
        (void)values;
        used = x[1]; /* RACE */
    }
}
