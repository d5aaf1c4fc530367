/* The largest error and the sum of the energies of all PEs, known to
 * each of them. */
#include <shmem.h>
#include <stdio.h>

static double error, energies[2], largest, sums[2];

int main(void) {
    shmem_init();
    int me = shmem_my_pe();
    error = 1.0 / (me + 1);
    energies[0] = me;
    energies[1] = 2 * me;
    shmem_double_max_reduce(SHMEM_TEAM_WORLD, &largest, &error, 1);
    shmem_double_sum_reduce(SHMEM_TEAM_WORLD, sums, energies, 2);
    printf("PE %d: %.1f, %.0f %.0f\n", me, largest, sums[0], sums[1]);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   PE 0: 1.0, 6 12
   PE 1: 1.0, 6 12
   PE 2: 1.0, 6 12
   PE 3: 1.0, 6 12 */
