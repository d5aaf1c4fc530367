/* A signal that a fence separates from stores through shmem_ptr.
 * PEs: 2 */
#include "suite.h"

static long x[8], y;
static uint64_t signal;

static void run(int me, int n) {
    (void)me, (void)n;
    long one = 1, *there = shmem_ptr(x, 1);
    if (me == 0 && there) {
        there[2] = 1; /* RACE */
        shmem_fence();
        shmem_long_put_signal(&y, &one, 1, &signal, 1, SHMEM_SIGNAL_SET, 1);
    }
    if (me == 1) {
        ORDER(shmem_signal_wait_until(&signal, SHMEM_CMP_EQ, 1));
        used = x[2]; /* RACE */
    }
}
