/* The even PEs add up their numbers. All PEs take part in the split,
 * the members alone in the sum. */
#include <shmem.h>
#include <stdio.h>

static int number, sum;

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    shmem_team_t even;
    number = me;
    int size = (n + 1) / 2;
    if (shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, size, NULL, 0,
                                 &even) != 0)
        shmem_global_exit(1);
    if (even != SHMEM_TEAM_INVALID) {
        shmem_int_sum_reduce(even, &sum, &number, 1);
        int number_there = shmem_team_my_pe(even);
        printf("PE %d is number %d: %d\n", me, number_there, sum);
        shmem_team_destroy(even);
    }
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   PE 0 is number 0: 2
   PE 2 is number 1: 2 */
