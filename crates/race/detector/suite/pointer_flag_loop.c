/* Values that a loop has stored are read after a flag that follows them was stored through a pointer,
 * without a wait for it.
 * PEs: 2 */
#include "suite.h"

static long x[64], flag;

static void run(int me, int n) {
    (void)n;
    if (me == 0) {
        for (int i = 0; i < 64; i++)
            x[i] = i; /* RACE */
        *(long *)shmem_ptr(&flag, 1) = 1;
    } else {
        long values[64];
        ORDER(shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1));
        shmem_long_get(values, x, 64, 0); /* RACE */
    }
}
