/* A vector of C++ is resized before a put from it is complete, so that its old elements are deleted.
 * PEs: 2 */
#include "suite.h"
#include <vector>

static long x[64];

static void run(int me, int) {
    if (me != 0)
        return;
    std::vector<long> from(64);
    shmem_long_put_nbi(x, from.data(), 64, 1); /* RACE */
    ORDER(shmem_quiet());
    from.resize(5000); /* RACE */
    shmem_quiet();
}
