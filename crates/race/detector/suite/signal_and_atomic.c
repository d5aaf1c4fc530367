/* Signal operations and atomic operations do not exclude each other.
 * PEs: 3 */
#include "suite.h"

static uint64_t signal;

static void run(int me, int n) {
    (void)me, (void)n;
    if (me == 0)
        shmem_signal_add(&signal, 1, 1); /* RACE */
    ORDER(shmem_barrier_all());
    if (me == 2)
        shmem_uint64_atomic_add(&signal, 1, 1); /* RACE */
}
