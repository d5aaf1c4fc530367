/* A g does not wait for a p of the same PE to the same word.
 * PEs: 2 */
#include "suite.h"

static long x[8];

static void run(int me, int n) {
    (void)me, (void)n;
    if (me == 0) {
        shmem_long_p(x, 1, 1); /* RACE */
        ORDER(shmem_quiet());
        used = shmem_long_g(x, 1); /* RACE */
    }
}
