/* A wait that has reached its limit has seen nothing, though the word had changed by then.
 * PEs: 2 */
#include "suite.h"
#include "timed.h"

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
        until_changed(&flag);
        for (int i = 0; i < 3; i++)
            if (shmemx_long_wait_until_timed(&flag, SHMEM_CMP_EQ, 2, i * 1e-4) != SHMEMX_TIMED_OUT)
                abort();
        ORDER(shmemx_long_wait_until_timed(&flag, SHMEM_CMP_EQ, 1, 100));
        used = x[0]; /* RACE */
    }
}
