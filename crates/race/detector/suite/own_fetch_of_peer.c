/* An atomic operation on a word of another PE, which a fetch has seen.
 * PEs: 2 */
#include "suite.h"

static int x;

static void run(int me, int n) {
    (void)me, (void)n;
    if (me == 0) {
        shmem_int_atomic_set(&x, 5, 1); /* RACE */
        while (IF_CLEAN(1, 0) && shmem_int_atomic_fetch(&x, 1) != 5) {
        }
        used = shmem_int_g(&x, 1); /* RACE */
    }
}
