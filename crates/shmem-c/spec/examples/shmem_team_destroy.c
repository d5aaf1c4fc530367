/* Teams for one phase of a program are destroyed when it is over, by
 * all of their members in the same order. */
#include <shmem.h>
#include <stdio.h>

static int value = 1, total;

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    for (int phase = 1; phase <= 2; phase++) {
        shmem_team_t team;
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, phase, n / phase,
                                 NULL, 0, &team);
        if (team != SHMEM_TEAM_INVALID)
            shmem_int_sum_reduce(team, &total, &value, 1);
        if (me == 0)
            printf("phase %d: %d PEs\n", phase, total);
        shmem_team_destroy(team);
    }
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   phase 1: 4 PEs
   phase 2: 2 PEs */
