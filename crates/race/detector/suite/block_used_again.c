/* A block of the heap that was freed is allocated again.
 * PEs: 2 */
#include "suite.h"



static void run(int me, int n) {
    (void)me, (void)n;
    long one = 1, *block = shmem_malloc(64);
    if (me == 0)
        shmem_long_put(block, &one, 1, 1);
    shmem_free(block);
    block = shmem_malloc(64);
    if (me == 1)
        block[0] = 2; /* RACE */
    ORDER(shmem_barrier_all());
    if (me == 0)
        shmem_long_put(block, &one, 1, 1); /* RACE */
    shmem_free(block);
}
