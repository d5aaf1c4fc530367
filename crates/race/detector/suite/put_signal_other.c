/* The signal of another put with a signal is waited for.
 * PEs: 2 */
#include "suite.h"

static long x[8];
static uint64_t signals[2];

static void run(int me, int n) {
    (void)me, (void)n;
    long one = 1;
    if (me == 0) {
        shmem_long_put_signal(x, &one, 1, &signals[0], 1, SHMEM_SIGNAL_SET, 1); /* RACE */
        shmem_long_put_signal(&x[1], &one, 1, &signals[1], 1, SHMEM_SIGNAL_SET, 1);
    }
    if (me == 1) {
        shmem_signal_wait_until(&signals[IF_CLEAN(0, 1)], SHMEM_CMP_EQ, 1);
        used = x[0]; /* RACE */
    }
}
