/* A put of several pages, and a store within.
 * PEs: 2 */
#include "suite.h"

enum { N = 4096 };
static long many[N], from[N];

static void run(int me, int n) {
    (void)me, (void)n;
    if (me == 0)
        shmem_long_put(many, from, N, 1); /* RACE */
    ORDER(shmem_barrier_all());
    if (me == 1)
        many[N / 2 + 3] = 1; /* RACE */
}
