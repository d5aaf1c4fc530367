/* A flag is stored through a pointer before the data, and both are in the memory of the PE that waits.
 * PEs: 2 */
#include "suite.h"

static long x, flag;

static void run(int me, int n) {
    (void)n;
    if (me == 0) {
        volatile long *first = shmem_ptr(IF_CLEAN(&x, &flag), 1);
        volatile long *second = shmem_ptr(IF_CLEAN(&flag, &x), 1);
        *first = 1;
        ORDER(shmem_fence());
        *second = 1; /* RACE */
    } else {
        shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1);
        used = x; /* RACE */
    }
}
