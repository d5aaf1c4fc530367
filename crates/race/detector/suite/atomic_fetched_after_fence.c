/* A word that was added to before a flag is loaded without a wait for the flag. With the wait, the load comes
 * after a fetch by which the other PE has seen the sum, which orders no less than the fence did.
 * PEs: 2 */
#include "suite.h"
#include <unistd.h>

static long x, flag;

static void run(int me, int n) {
    (void)n;
    if (me == 0) {
        shmem_long_atomic_add(&x, 1, 1); /* RACE */
        shmem_fence();
        shmem_long_p(&flag, 1, 1);
        used = shmem_long_atomic_fetch(&x, 1);
    } else {
        ORDER(shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1));
        usleep(10000);
        used = x; /* RACE */
    }
}
