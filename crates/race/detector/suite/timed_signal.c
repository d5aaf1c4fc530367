/* A wait for a signal that has reached its limit has not seen the data of the signal.
 * PEs: 2 */
#include "suite.h"
#include "timed.h"

static long x[8];
static uint64_t signal;

static void run(int me, int n) {
    (void)me, (void)n;
    long one = 1;
    if (me == 0)
        shmem_long_put_signal(x, &one, 1, &signal, 1, SHMEM_SIGNAL_ADD, 1); /* RACE */
    if (me == 1) {
        uint64_t value = 0;
        until_changed(&signal);
        for (int i = 0; i < 3; i++)
            if (shmemx_signal_wait_until_timed(&signal, SHMEM_CMP_GE, 2, &value, i * 1e-4) != SHMEMX_TIMED_OUT)
                abort();
        ORDER(shmemx_signal_wait_until_timed(&signal, SHMEM_CMP_GE, 1, &value, 100));
        used = x[0]; /* RACE */
    }
}
