/* A function returns while a put from its stack is in flight.
 * PEs: 2 */
#include "suite.h"

static long x[8];

__attribute__((noinline)) static void issue(void) {
    volatile long local[8] = {1};
    shmem_long_put_nbi(x, (long *)local, 8, 1); /* RACE */
    ORDER(shmem_quiet());
}

__attribute__((noinline)) static void overwrite(void) {
    volatile long other[8] __attribute__((unused));
    for (int i = 0; i < 8; i++)
        other[i] = i; /* RACE */
}

static void run(int me, int n) {
    (void)me, (void)n;
    if (me == 0) {
        issue();
        overwrite();
        shmem_quiet();
    }
}
