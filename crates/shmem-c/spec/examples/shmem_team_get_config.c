/* A library asks how many contexts a team that it was given has been
 * made for. */
#include <shmem.h>
#include <stdio.h>

static void use(shmem_team_t team) {
    shmem_team_config_t config;
    long mask = SHMEM_TEAM_NUM_CONTEXTS;
    if (shmem_team_get_config(team, mask, &config) == 0)
        printf("room for %d contexts\n", config.num_contexts);
}

int main(void) {
    shmem_init();
    int n = shmem_n_pes();
    shmem_team_config_t config = {.num_contexts = 2};
    shmem_team_t half;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n / 2, &config,
                             SHMEM_TEAM_NUM_CONTEXTS, &half);
    if (shmem_team_my_pe(half) == 0)
        use(half);
    shmem_team_destroy(half);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   room for 2 contexts */
