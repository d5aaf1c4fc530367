/* A flag that a PE polls by atomic fetches; data of a third PE need a quiet first.
 * PEs: 3 */
#include "suite.h"

static long x[8];
static int flags[4];

static void run(int me, int n) {
    (void)me, (void)n;
    long one = 1;
    if (me == 0) {
        shmem_long_put(x, &one, 1, 1); /* RACE */
        ORDER(shmem_quiet());
        shmem_int_atomic_set(flags, 1, 2);
    }
    if (me == 1) {
        while (shmem_int_atomic_fetch(flags, 2) != 1) {
        }
        used = x[0]; /* RACE */
    }
}
