/* An atomic operation on an own word, which a fetch has seen.
 * PEs: 2 */
#include "suite.h"

static int x;

static void run(int me, int n) {
    (void)me, (void)n;
    if (me == 0) {
        shmem_int_atomic_set(&x, 5, 0); /* RACE */
        while (IF_CLEAN(1, 0) && shmem_int_atomic_fetch(&x, 0) != 5) {
        }
        used = x; /* RACE */
    }
}
