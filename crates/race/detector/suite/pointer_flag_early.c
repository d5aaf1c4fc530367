/* A flag is stored through a pointer before the data, which are in the memory of the PE that stores.
 * PEs: 2 */
#include "suite.h"

static long x, flag;

static void run(int me, int n) {
    (void)n;
    if (me == 0) {
        volatile long *there = shmem_ptr(&flag, 1);
        ORDER(x = 1; shmem_fence());
        *there = 1;
        shmem_fence();
#ifndef CLEAN
        x = 1; /* RACE */
        shmem_quiet();
#endif
    } else {
        shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1);
        used = shmem_long_g(&x, 0); /* RACE */
    }
}
