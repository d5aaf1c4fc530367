/* Static data of a function.
 * PEs: 2 */
#include "suite.h"



static void run(int me, int n) {
    (void)me, (void)n;
    static int counts[4];
    if (me == 0)
        shmem_int_p(&counts[3], 1, 1); /* RACE */
    ORDER(shmem_barrier_all());
    if (me == 1)
        counts[3] = 2; /* RACE */
}
