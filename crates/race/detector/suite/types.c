/* Atomic operations on two types do not exclude each other.
 * PEs: 3 */
#include "suite.h"

static long x[8];

static void run(int me, int n) {
    (void)me, (void)n;
    if (me == 0)
        shmem_long_atomic_add(x, 1, 1); /* RACE */
    if (me == 2)
        IF_CLEAN(shmem_long_atomic_add(x, 1, 1), shmem_int_atomic_add((int *)x, 1, 1)); /* RACE */
}
