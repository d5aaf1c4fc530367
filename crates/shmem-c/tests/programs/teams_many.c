/* Many teams: cycles of creation and destruction, then as many as possible, by both splits. After a
 * failure everything still works. */
#include "members.h"

static int limit = 600;

/* All PEs must have the same result. */
static void agreed(int failed, int point, const char *what) {
    members_source[0] = failed;
    shmem_team_sync(SHMEM_TEAM_WORLD);
    shmem_int_sum_reduce(SHMEM_TEAM_WORLD, members_dest, members_source, 1);
    CHECK(*members_dest == 0 || *members_dest == check_n, point, "%s failed on %d of %d PEs", what, *members_dest, check_n);
    shmem_team_sync(SHMEM_TEAM_WORLD);
}

static void cycles(void) {
    for (int i = 0; i < 300; i++) {
        shmem_team_t team;
        int size = 1 + i % check_n, status = shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, size, NULL, 0, &team);
        CHECK(status == 0, 13, "split %d of 300 gave %d", i, status);
        CHECK((team != SHMEM_TEAM_INVALID) == (check_me < size), 1, "split %d: handle and membership differ", i);
        if (team != SHMEM_TEAM_INVALID && i % 10 == 0)
            shmem_team_sync(team);
        shmem_team_destroy(team);
    }
}

static void until_it_fails(int two_dimensional) {
    shmem_team_t *teams = malloc(2 * limit * sizeof *teams);
    int made = 0, status = 0;
    while (made < limit && status == 0) {
        shmem_team_t *pair = &teams[2 * made];
        pair[0] = pair[1] = SHMEM_TEAM_WORLD;
        if (two_dimensional)
            status = shmem_team_split_2d(SHMEM_TEAM_WORLD, 2, NULL, 0, &pair[0], NULL, 0, &pair[1]);
        else
            status = shmem_team_split_strided(SHMEM_TEAM_WORLD, check_n - 1, -1, check_n, NULL, 0, &pair[0]);
        if (status) {
            CHECK(pair[0] == SHMEM_TEAM_INVALID, 6, "split %d failed and gave a handle", made);
            CHECK(!two_dimensional || pair[1] == SHMEM_TEAM_INVALID, 6, "split_2d %d failed and gave a second handle", made);
        } else {
            made++;
        }
        if (status || made % 100 == 0)
            agreed(status != 0, 6, two_dimensional ? "split_2d" : "split_strided");
    }
    for (int i = 0; i < made; i++) {
        CHECK(shmem_team_n_pes(teams[2 * i]) > 0, 13, "team %d of %d was lost", i, made);
        if (i == 0 || i == made - 1)
            shmem_team_sync(teams[2 * i]);
    }
    for (int i = 0; i < made; i++) {
        int victim = i % 2 ? made - 1 - i / 2 : i / 2;
        shmem_team_destroy(teams[2 * victim]);
        if (two_dimensional)
            shmem_team_destroy(teams[2 * victim + 1]);
    }
    free(teams);
    struct members world = members_world(), all = members_split(world, 0, 1, check_n);
    members_check(all, 13, "team after many");
    members_destroy(all);
    members_free(world);
}

int main(int argc, char **argv) {
    if (argc > 1)
        limit = atoi(argv[1]);
    check_begin();
    members_begin();
    cycles();
    until_it_fails(0);
    until_it_fails(1);
    members_end();
    return check_end();
}
