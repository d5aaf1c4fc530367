/* The first PE of a team of odd PEs finds the number that its neighbor
 * has in the job, to put there. */
#include <shmem.h>
#include <stdio.h>

static int inbox;

int main(void) {
    shmem_init();
    int n = shmem_n_pes();
    shmem_team_t odd;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 1, 2, n / 2, NULL, 0,
                             &odd);
    if (shmem_team_my_pe(odd) == 0) {
        int pe = shmem_team_translate_pe(odd, 1, SHMEM_TEAM_WORLD);
        shmem_int_p(&inbox, 17, pe);
    }
    shmem_barrier_all();
    if (inbox)
        printf("PE %d has %d\n", shmem_my_pe(), inbox);
    shmem_team_destroy(odd);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   PE 3 has 17 */
