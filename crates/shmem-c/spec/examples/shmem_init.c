/* Every PE prints its number. A function that may be called before the
 * initialization tests first whether the library is in use. */
#include <shmem.h>
#include <stdio.h>

static void greet(void) {
    int is_initialized;
    shmem_query_initialized(&is_initialized);
    if (is_initialized)
        printf("PE %d of %d\n", shmem_my_pe(), shmem_n_pes());
}

int main(void) {
    shmem_init();
    greet();
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   PE 0 of 4
   PE 1 of 4
   PE 2 of 4
   PE 3 of 4 */
