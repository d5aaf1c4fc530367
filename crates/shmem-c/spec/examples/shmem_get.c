/* PE 0 reads what every PE has computed. */
#include <shmem.h>
#include <stdio.h>

static double results[2];

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    results[0] = me;
    results[1] = me / 2.0;
    shmem_barrier_all();  /* all results are there */
    for (int pe = 0; me == 0 && pe < n; pe++) {
        double copy[2];
        shmem_double_get(copy, results, 2, pe);
        printf("PE %d: %.1f and %.1f\n", pe, copy[0], copy[1]);
    }
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   PE 0: 0.0 and 0.0
   PE 1: 1.0 and 0.5
   PE 2: 2.0 and 1.0
   PE 3: 3.0 and 1.5 */
