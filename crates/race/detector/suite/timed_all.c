/* A wait for all words of a set that has reached its limit has seen none of them, though one had its value.
 * PEs: 3 */
#include "suite.h"
#include "timed.h"

static long x[8], flags[4];

static void run(int me, int n) {
    (void)me, (void)n;
    const long early[2] = {1, 2}, values[2] = {1, 1};
    long one = 1;
    if (me == 1) {
        shmem_long_put(x, &one, 1, 0); /* RACE */
        shmem_fence();
    }
    if (me > 0)
        shmem_long_atomic_set(&flags[me], 1, 0);
    if (me == 0) {
        until_changed(&flags[1]);
        for (int i = 0; i < 3; i++)
            if (shmemx_long_wait_until_all_vector_timed(&flags[1], 2, NULL, SHMEM_CMP_EQ, early, i * 1e-4) !=
                    SHMEMX_TIMED_OUT ||
                shmemx_long_wait_until_all_timed(&flags[1], 2, NULL, SHMEM_CMP_EQ, 2, i * 1e-4) != SHMEMX_TIMED_OUT)
                abort();
        ORDER(shmemx_long_wait_until_all_vector_timed(&flags[1], 2, NULL, SHMEM_CMP_EQ, values, 100));
        (void)values;
        used = x[0]; /* RACE */
    }
}
