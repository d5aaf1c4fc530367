/* A PE that polls its signal by shmem_signal_fetch.
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
        while (IF_CLEAN(1, 0) && shmem_signal_fetch(&signal) != 1) {
        }
        used = x[0]; /* RACE */
    }
}
