/* In each step a PE sends to its neighbor and then uses what it has
 * received. The second barrier keeps the next put from arriving before
 * the use. */
#include <shmem.h>
#include <stdio.h>

static int inbox;

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    int value = me;
    for (int step = 0; step < 3; step++) {
        shmem_int_p(&inbox, value, (me + 1) % n);
        shmem_barrier_all();  /* everyone has received */
        value = inbox + 1;
        shmem_barrier_all();  /* everyone has used it */
    }
    printf("PE %d: %d\n", me, value);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   PE 0: 4
   PE 1: 5
   PE 2: 6
   PE 3: 3 */
