/* PE 2 finds what all PEs search for, and ends the job. The others
 * would wait in the barrier forever. */
#include <shmem.h>
#include <stdio.h>

int main(void) {
    shmem_init();
    int me = shmem_my_pe();
    if (me == 2) {
        printf("PE %d has found it\n", me);
        fflush(stdout);
        shmem_global_exit(0);
    }
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   PE 2 has found it */
