/* A flush of the puts to one PE does not wait for the source of a put to another one.
 * PEs: 3 */
#include <shmemx.h>

#include "suite.h"

static long x[8];

static void run(int me, int n) {
    (void)me, (void)n;
    long source = 1;
    if (me == 0) {
        int pes[2] = {2, 1};
        shmem_long_put_nbi(x, &source, 1, 1); /* RACE */
        shmemx_ctx_pe_flush(SHMEM_CTX_DEFAULT, pes, 1);
        ORDER(shmemx_ctx_pe_flush(SHMEM_CTX_DEFAULT, pes, 2));
        source = 2; /* RACE */
        shmem_quiet();
    }
}
