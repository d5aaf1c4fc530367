/* PE 0 writes to the log of the program how PEs reach each other, and
 * on the screen whether they all share memory. */
#include <shmem.h>
#include <shmemx.h>
#include <stdio.h>
#include <string.h>

int main(void) {
    shmem_init();
    const char *transport = shmemx_transport();
    if (shmem_my_pe() == 0) {
        fprintf(stderr, "PEs use %s\n", transport);
        int shared = strncmp(transport, "shared memory:", 14) == 0;
        printf("%s\n", shared == (shmem_team_n_pes(SHMEM_TEAM_SHARED) == 4) ? "as expected" : "?");
    }
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   as expected */
