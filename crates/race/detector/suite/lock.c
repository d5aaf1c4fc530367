/* Two PEs put to the same bytes, with a lock or without.
 * PEs: 2 */
#include "suite.h"

static long x[8], lock;

static void run(int me, int n) {
    (void)me, (void)n;
    long mine = me;
    ORDER(shmem_set_lock(&lock));
    shmem_long_put(x, &mine, 1, 0); /* RACE with itself */
    ORDER(shmem_clear_lock(&lock));
    (void)lock;
}
