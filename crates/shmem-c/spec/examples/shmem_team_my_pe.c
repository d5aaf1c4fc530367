/* Those PEs that share memory choose one that prints for all of them.
 * */
#include <shmem.h>
#include <stdio.h>

int main(void) {
    shmem_init();
    int size = shmem_team_n_pes(SHMEM_TEAM_SHARED);
    if (shmem_team_my_pe(SHMEM_TEAM_SHARED) == 0)
        printf("%d PEs on the node of PE %d\n", size, shmem_my_pe());
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   4 PEs on the node of PE 0 */
