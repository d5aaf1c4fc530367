/* One PE, whichever comes first, becomes the owner of a file. */
#include <shmem.h>
#include <stdio.h>

static int owner = -1;

int main(void) {
    shmem_init();
    int me = shmem_my_pe();
    int before = shmem_int_atomic_compare_swap(&owner, -1, me, 0);
    shmem_barrier_all();
    if (before == -1 && shmem_int_g(&owner, 0) == me)
        printf("there is one owner\n");
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   there is one owner */
