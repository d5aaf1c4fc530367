/* A flush does not complete a put at its target.
 * PEs: 2 */
#include <shmemx.h>

#include "suite.h"

static long x, y;

static void run(int me, int n) {
    (void)n;
    if (me == 0) {
        shmem_long_put_nbi(&x, &y, 1, 1); /* RACE */
        shmemx_flush();
        ORDER(shmem_quiet());
    }
    shmem_sync_all();
    if (me == 1)
        used = x; /* RACE */
}
