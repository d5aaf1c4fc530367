/* A buffer is freed and used again while a get to it is in flight, which is one race.
 * PEs: 2 */
#include "suite.h"

static long x[8];

static void run(int me, int n) {
    (void)me, (void)n;
    if (me == 0) {
        long *buffer = malloc(64);
        /* Not into the first words, where the allocator keeps its own data of a free block. */
        shmem_long_get_nbi(buffer + 4, x, 4, 1); /* RACE */
        ORDER(shmem_quiet());
        free(buffer); /* RACE */
        long *again = malloc(64);
        again[5] = 1;
        shmem_quiet();
        free(again);
    }
}
