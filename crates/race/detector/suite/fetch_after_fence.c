/* An atomic fetch does not complete a put before it, unless a fence is between the two.
 * PEs: 2 */
#include "suite.h"

static long x, word;

static void run(int me, int n) {
    (void)n;
    long one = 1;
    if (me == 0) {
        shmem_long_put(&x, &one, 1, 1); /* RACE */
        ORDER(shmem_fence());
        used = shmem_long_atomic_fetch(&word, 1);
    }
    shmem_sync_all();
    if (me == 1)
        used = x; /* RACE */
}
