/* Each PE sends three numbers to its right neighbor. */
#include <shmem.h>
#include <stdio.h>

static long inbox[3];

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    long numbers[3] = {me, 10 * me, 100 * me};
    shmem_long_put(inbox, numbers, 3, (me + 1) % n);
    numbers[0] = -1;  /* the put has read it */
    shmem_barrier_all();  /* inbox is complete everywhere */
    printf("PE %d has %ld %ld %ld\n", me, inbox[0], inbox[1], inbox[2]);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   PE 0 has 3 30 300
   PE 1 has 0 0 0
   PE 2 has 1 10 100
   PE 3 has 2 20 200 */
