/* 10 rows are divided among the PEs; each works on its own. */
#include <shmem.h>
#include <stdio.h>

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    int first = 10 * me / n, end = 10 * (me + 1) / n;
    printf("PE %d has the rows %d to %d\n", me, first, end - 1);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   PE 0 has the rows 0 to 1
   PE 1 has the rows 2 to 4
   PE 2 has the rows 5 to 6
   PE 3 has the rows 7 to 9 */
