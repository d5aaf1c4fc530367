/* Every PE writes its number into the place of PE 0 that belongs to it.
 * */
#include <shmem.h>
#include <stdio.h>

static int present[64];

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    shmem_int_p(&present[me], me + 1, 0);
    shmem_barrier_all();
    for (int pe = 0; me == 0 && pe < n; pe++)
        printf("PE %d has written %d\n", pe, present[pe]);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   PE 0 has written 1
   PE 1 has written 2
   PE 2 has written 3
   PE 3 has written 4 */
