/* A thousand teams at once, of random subsets of the world, with collectives on each in random
 * order.
 *
 *     teams_thousand [SEED]     other teams
 */
#include "../programs/splits.h"

enum { TEAMS = 1000, ROUNDS = 2 };

static struct members teams[TEAMS];
static int order[TEAMS];
static uint64_t seed = 1;
static long *sums, *words; /* symmetric: a word, and check_n words, for each team and round */
static long *given;

static uint64_t draw(int i) { return check_mix(seed * 1000037 + (uint64_t)i); }

static void shuffle(uint64_t bits) {
    for (int i = 0; i < TEAMS; i++)
        order[i] = i;
    for (int i = TEAMS; i-- > 1;) {
        int other = (int)((bits = check_mix(bits)) % (uint64_t)(i + 1)), kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
}

static long value(int round, int id, int pe) { return VALUE(long, seed + (uint64_t)((round * TEAMS + id) * 4096 + pe)) >> 16; }

/* Every second member contributes a word, so that the lengths of a collect differ. */
static void use(int round, int id) {
    struct members m = teams[id];
    int me = members_me(m), place = round * TEAMS + id, n_words = 0;
    if (me < 0)
        return;
    long due = 0, *got = &words[place * check_n];
    *given = value(round, id, check_me);
    CHECK(shmem_long_sum_reduce(m.team, &sums[place], given, 1) == 0, 53, "sum_reduce failed");
    CHECK(shmem_long_collect(m.team, got, given, (size_t)(me + id) % 2) == 0, 53, "collect failed");
    *given = 0;
    for (int i = 0; i < m.size; i++) {
        due += value(round, id, m.world[i]);
        if ((i + id) % 2) {
            CHECK(got[n_words] == value(round, id, m.world[i]), 56, "round %d of team %d: word %d differs", round, id, n_words);
            n_words++;
        }
    }
    CHECK(sums[place] == due, 60, "round %d of team %d: the sum is %ld, not %ld", round, id, sums[place], due);
    CHECK(n_words == check_n || got[n_words] == -1, 56, "round %d of team %d: a word too many", round, id);
}

int main(int argc, char **argv) {
    if (argc > 1)
        seed = strtoull(argv[1], NULL, 10);
    check_begin();
    members_begin();
    size_t places = (size_t)(ROUNDS * TEAMS);
    sums = check_malloc(places * sizeof *sums);
    words = check_malloc(places * (size_t)check_n * sizeof *words);
    given = check_malloc(sizeof *given);
    memset(words, -1, places * (size_t)check_n * sizeof *words);
    shmem_barrier_all();
    struct members world = members_world();
    for (int i = 0; i < TEAMS; i++) {
        teams[i] = split_strided(world, draw(i));
        CHECK((teams[i].team != SHMEM_TEAM_INVALID) == (members_me(teams[i]) >= 0), 1, "team %d: handle and membership differ", i);
    }
    for (int round = 0; round < ROUNDS; round++) {
        shuffle(draw(-1 - round));
        for (int i = 0; i < TEAMS; i++)
            use(round, order[i]);
    }
    shuffle(draw(-1 - ROUNDS));
    for (int i = 0; i < TEAMS; i++)
        members_destroy(teams[order[i]]);
    struct members all = members_split(world, 0, 1, check_n);
    members_check(all, 13, "a team after a thousand");
    members_destroy(all);
    members_free(world);
    shmem_free(given);
    shmem_free(words);
    shmem_free(sums);
    members_end();
    return check_end();
}
