/* Two PEs put to the same word, with a lock that shmem_test_lock takes, or without.
 * PEs: 2 */
#include "suite.h"

static long x[8], lock;

static void run(int me, int n) {
    (void)me, (void)n;
    while (IF_CLEAN(shmem_test_lock(&lock), 0)) {
    }
    shmem_long_p(x, 1, 0); /* RACE with itself */
    ORDER(shmem_clear_lock(&lock));
    (void)lock;
}
