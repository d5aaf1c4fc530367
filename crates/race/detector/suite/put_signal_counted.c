/* A count of signals is waited for that the signal of a later put may have reached, since no fence orders the puts.
 * PEs: 2 */
#include "suite.h"

static long x[2];
static uint64_t count;

static void run(int me, int n) {
    (void)n;
    long one = 1;
    if (me == 0) {
        shmem_long_put_signal(&x[0], &one, 1, &count, 1, SHMEM_SIGNAL_ADD, 1); /* RACE */
        ORDER(shmem_fence());
        shmem_long_put_signal(&x[1], &one, 1, &count, 1, SHMEM_SIGNAL_ADD, 1);
    }
    shmem_sync_all();
    if (me == 1) {
        shmem_signal_wait_until(&count, SHMEM_CMP_GE, 1);
        used = x[0]; /* RACE */
        shmem_signal_wait_until(&count, SHMEM_CMP_GE, 2);
        used = x[1];
    }
}
