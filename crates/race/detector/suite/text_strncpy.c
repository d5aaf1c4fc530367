/* A constant text is copied by strncpy to where a put arrives.
 * PEs: 2
 * FLAGS: -O2 -D_GNU_SOURCE -D_FORTIFY_SOURCE=2 */
#include "suite.h"

static long x[8];

static void run(int me, int n) {
    (void)me, (void)n;
    long word = 1;
    char *there = (char *)x;
    if (me == 0)
        shmem_long_put(x, &word, 1, 1); /* RACE */
    ORDER(shmem_barrier_all());
    if (me == 1)
        strncpy(there, "a text", 22); /* RACE */
}
