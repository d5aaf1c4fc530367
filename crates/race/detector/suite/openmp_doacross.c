/* An iteration of a loop gets into a word, and the next one stores to it, after waiting for it or at any time.
 * PEs: 2
 * FLAGS: -fopenmp */
#include "suite.h"

static long x[8], to;

static void run(int me, int n) {
    if (me != 0)
        return;
#pragma omp parallel for num_threads(2) schedule(static, 1) ordered(1)
    for (int i = 0; i < 2; i++) {
#ifdef CLEAN
#pragma omp ordered depend(sink : i - 1)
#endif
        if (i == 0)
            shmem_long_get(&to, x, 1, n - 1); /* RACE */
        else
            to = 1; /* RACE */
#pragma omp ordered depend(source)
    }
}
