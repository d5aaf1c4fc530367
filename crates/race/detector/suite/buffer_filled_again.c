/* A buffer is filled again before the put that reads it is complete.
 * PEs: 2 */
#include "suite.h"

static long x[3][64], buffer[64];

static void run(int me, int n) {
    (void)n;
    if (me == 0)
        for (int turn = 0; turn < 3; turn++) {
            for (int i = 0; i < 64; i++)
                buffer[i] = i; /* RACE */
            shmem_long_put_nbi(x[turn], buffer, 64, 1); /* RACE */
            ORDER(shmem_quiet());
        }
}
