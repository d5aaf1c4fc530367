/* The source of a non-blocking put is moved by realloc before the put is complete. A block that stays where it is may grow.
 * PEs: 2 */
#include "suite.h"

static long x[8];

static void run(int me, int n) {
    (void)me, (void)n;
    if (me == 0) {
        long *source = calloc(8, sizeof *source);
        shmem_long_put_nbi(x, source, 8, 1); /* RACE */
        source = realloc(source, 64);
        ORDER(shmem_quiet());
        /* The block after it is in use, so that it cannot grow. */
        void *next = malloc(64);
        source = realloc(source, 1 << 20); /* RACE */
        shmem_quiet();
        free(source);
        free(next);
    }
}
