/* All PEs call barriers until the job is ended from outside. */
#include <shmem.h>
#include <stdio.h>

int main(void) {
    shmem_init();
    if (shmem_my_pe() == 0)
        printf("n_pes %d\n", shmem_n_pes()), fflush(stdout);
    for (;;)
        shmem_barrier_all();
}
