/* The destination of a non-blocking get, which is loaded by one access of 16 bytes, is used before a
 * quiet.
 * PEs: 2 */
#include "suite.h"

static __int128 x;

static void run(int me, int n) {
    (void)me, (void)n;
    __int128 dest = 0;
    if (me == 0) {
        shmem_getmem_nbi(&dest, &x, sizeof dest, 1); /* RACE */
        ORDER(shmem_quiet());
        used = dest != 0; /* RACE */
        shmem_quiet();
    }
}
