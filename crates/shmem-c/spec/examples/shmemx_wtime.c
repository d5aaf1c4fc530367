/* The time that a barrier takes. */
#include <shmem.h>
#include <shmemx.h>
#include <stdio.h>

int main(void) {
    shmem_init();
    double start = shmemx_wtime();
    shmem_barrier_all();
    double seconds = shmemx_wtime() - start;
    if (shmem_my_pe() == 0)
        printf("%s\n", seconds > 0 && seconds < 100 ? "a barrier takes some time" : "?");
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   a barrier takes some time */
