/* The data of a put with a signal are used without a wait for the signal.
 * PEs: 2 */
#include "suite.h"

static long x[8];
static uint64_t signal;

static void run(int me, int n) {
    (void)me, (void)n;
    long one = 1;
    if (me == 0)
        shmem_long_put_signal(x, &one, 1, &signal, 1, SHMEM_SIGNAL_SET, 1); /* RACE */
    if (me == 1) {
        ORDER(shmem_signal_wait_until(&signal, SHMEM_CMP_EQ, 1));
        used = x[0]; /* RACE */
    }
}
