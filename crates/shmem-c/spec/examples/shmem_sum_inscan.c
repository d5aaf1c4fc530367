/* Each PE has a number of particles, and learns where its own begin in
 * a common file. */
#include <shmem.h>
#include <stdio.h>

static long particles, first;

int main(void) {
    shmem_init();
    int me = shmem_my_pe();
    particles = 10 + me;
    shmem_long_sum_exscan(SHMEM_TEAM_WORLD, &first, &particles, 1);
    printf("PE %d: %ld to %ld\n", me, first, first + particles - 1);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   PE 0: 0 to 9
   PE 1: 10 to 20
   PE 2: 21 to 32
   PE 3: 33 to 45 */
