/* A PE frees the slot of a team and uses it at once for a team with another PE, while the last
 * member of the first team may still be in its last collective. PE 0 has the maximum number of
 * teams, so there is no other slot. */
#include "../programs/members.h"

enum { MOST = 1100, REST = 8, WORDS = 2 };

static struct members before[MOST], after[MOST];
static long *sums, *given; /* symmetric: separate destinations for each team */

static long value(int team, int pe, int i) { return VALUE(long, (team * 64 + pe) * WORDS + i) >> 8; }

static void use(struct members m, int team) {
    long *got = &sums[team * WORDS];
    for (int i = 0; i < WORDS; i++)
        given[i] = value(team, check_me, i);
    CHECK(shmem_long_sum_reduce(m.team, got, given, WORDS) == 0, 53, "sum_reduce failed");
    for (int i = 0; i < WORDS; i++) {
        long due = value(team, m.world[0], i) + value(team, m.world[m.size - 1], i);
        CHECK(got[i] == due, 13, "team %d: word %d is %ld, not %ld", team, i, got[i], due);
    }
}

/* Teams of the PEs 0 and 1, until no more can be created. */
static int fill(struct members world) {
    int made = 0, status = 0;
    while (status == 0 && made < MOST) {
        before[made] = members_strided(world, 0, 1, 2);
        status = shmem_team_split_strided(world.team, 0, 1, 2, NULL, 0, &before[made].team);
        if (status)
            members_free(before[made]);
        else
            made++;
    }
    return made;
}

int main(void) {
    check_begin();
    struct members world = members_world();
    sums = check_malloc(2 * MOST * WORDS * sizeof *sums);
    given = check_malloc(WORDS * sizeof *given);
    if (check_n > 2) {
        struct members pair = members_split(world, 0, 2, 2);
        int made = fill(world);
        shmem_barrier_all();
        for (int i = 0; i < made - REST; i++) {
            if (check_me < 2)
                use(before[i], i);
            members_destroy(before[i]);
            if (members_me(pair) >= 0) {
                after[i] = members_split(pair, 0, 1, 2);
                use(after[i], MOST + i);
            }
        }
        shmem_barrier_all();
        for (int i = 0; i < made; i++)
            if (i >= made - REST)
                members_destroy(before[i]);
            else if (members_me(pair) >= 0)
                members_destroy(after[i]);
        members_destroy(pair);
    }
    shmem_free(given);
    shmem_free(sums);
    members_free(world);
    return check_end();
}
