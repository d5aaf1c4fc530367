/* Waits for any and for some words that have reached their limits have seen none; with success, those that they name.
 * PEs: 2 */
#include "suite.h"
#include "timed.h"

static long x[8], flags[4];

static void run(int me, int n) {
    (void)me, (void)n;
    long one = 1;
    if (me == 0) {
        shmem_long_put(x, &one, 1, 1); /* RACE */
        shmem_fence();
        shmem_long_atomic_set(&flags[1], 1, 1);
        shmem_long_put(&x[1], &one, 1, 1);
        shmem_fence();
        shmem_long_atomic_set(&flags[2], 1, 1);
    }
    if (me == 1) {
        size_t index, found[3], n_found;
        until_changed(&flags[1]);
        for (int i = 0; i < 3; i++)
            if (shmemx_long_wait_until_any_timed(flags, 3, NULL, SHMEM_CMP_EQ, 2, &index, i * 1e-4) !=
                    SHMEMX_TIMED_OUT ||
                shmemx_long_wait_until_some_timed(flags, 3, found, NULL, SHMEM_CMP_EQ, 2, &n_found, i * 1e-4) !=
                    SHMEMX_TIMED_OUT)
                abort();
        ORDER(shmemx_long_wait_until_any_timed(&flags[1], 1, NULL, SHMEM_CMP_EQ, 1, &index, 100));
        used = x[0]; /* RACE */

        shmemx_long_wait_until_some_timed(&flags[2], 1, found, NULL, SHMEM_CMP_EQ, 1, &n_found, 100);
        used = x[1];
    }
}
