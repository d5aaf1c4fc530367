/* A copy through shmem_ptr to a block of the heap.
 * PEs: 2 */
#include "suite.h"

static void run(int me, int n) {
    (void)me, (void)n;
    long *x = shmem_calloc(1024, sizeof *x), *there = shmem_ptr(x, 1);
    long mine[1024] = {0};
    if (me == 0 && there)
        memcpy(there, mine, sizeof mine); /* RACE */
    ORDER(shmem_barrier_all());
    if (me == 1)
        used = x[1000]; /* RACE */
    shmem_barrier_all();
    shmem_free(x);
}
