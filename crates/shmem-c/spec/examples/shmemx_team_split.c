/* Teams of the PEs with even and with odd numbers, in each of which
 * the last PE of the world is the first. */
#include <shmem.h>
#include <shmemx.h>
#include <stdio.h>

int main(void) {
    shmem_init();
    int me = shmem_my_pe();
    shmem_team_t team;
    shmemx_team_split(SHMEM_TEAM_WORLD, me % 2, -me, &team);
    printf("PE %d is number %d of %d\n", me, shmemx_team_my_pe(team), shmemx_team_n_pes(team));
    shmemx_team_destroy(&team);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   PE 0 is number 1 of 2
   PE 1 is number 1 of 2
   PE 2 is number 0 of 2
   PE 3 is number 0 of 2 */
