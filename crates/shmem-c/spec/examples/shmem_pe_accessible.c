/* A function that gets any address and PE tests whether it can put
 * there. */
#include <shmem.h>
#include <stdio.h>

static long is_symmetric;

static void try(const char *name, void *address, int pe) {
    if (!shmem_pe_accessible(pe))
        printf("there is no PE %d\n", pe);
    else if (!shmem_addr_accessible(address, pe))
        printf("%s is not symmetric\n", name);
    else
        printf("%s of PE %d can be written\n", name, pe);
}

int main(void) {
    shmem_init();
    int me = shmem_my_pe();
    long is_local = 0;
    if (me == 0) {
        try("is_symmetric", &is_symmetric, 1);
        try("is_local", &is_local, 1);
        try("is_symmetric", &is_symmetric, shmem_n_pes());
    }
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   is_symmetric of PE 1 can be written
   is_local is not symmetric
   there is no PE 4 */
