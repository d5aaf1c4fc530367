/* Broadcasts on several teams in a different order on each PE, and by roots that run far ahead of
 * the receivers. In a broadcast, a member waits only for its data, which a member closer to the
 * root sends. With SHMEM_CHECK=1, members wait for each other in every call, so the order is the
 * same on all PEs.
 *
 *     broadcasts_crossed [SEED]     other orders
 */
#include "splits.h"

enum { ROUNDS = 20, WORDS = 5, NEIGHBORS = 3, AHEAD_TEAMS = 12, AHEAD_ROUNDS = 100, LONG = 3000, AHEAD_WORDS = AHEAD_ROUNDS * WORDS + LONG };

static uint64_t seed = 1, pace;
static long *source, *dest;
static int is_checked;

static long word(int team, int round, int i) { return VALUE(long, seed + (uint64_t)((team * 1000 + round) * 4096 + i)); }

/* The number of the next team with remaining calls. Each PE has its own order. */
static int draw(const int *left, int n) {
    pace = check_mix(pace);
    int at = is_checked ? 0 : (int)(pace % (uint64_t)n);
    for (int i = 0; i < n; i++)
        if (left[(at + i) % n])
            return (at + i) % n;
    return -1;
}

static void broadcast(struct members m, int team, int round, long *to, size_t count) {
    struct buffers buffers = {.pace = pace};
    if (members_me(m) == 0)
        for (size_t i = 0; i < count; i++)
            source[i] = word(team, round, (int)i);
    pause_randomly(&buffers);
    CHECK(shmem_long_broadcast(m.team, to, source, count, 0) == 0, 53, "broadcast failed");
    if (members_me(m) == 0)
        memset(source, 0x55, count * sizeof *source);
    for (size_t i = 0; i < count; i++)
        if (to[i] != word(team, round, (int)i)) {
            CHECK(0, 55, "team %d, round %d: word %zu is %#lx", team, round, i, to[i]);
            break;
        }
}

/* Each PE is first the root on its teams with some neighbors, and then receives on theirs. */
static void crossed_pairs(struct members world) {
    int n = NEIGHBORS * check_n;
    struct members *pairs = malloc((size_t)n * sizeof *pairs);
    int *left[2] = {calloc((size_t)n, sizeof(int)), calloc((size_t)n, sizeof(int))};
    for (int k = 0; k < n; k++) {
        int from = k % check_n, to = (from + 1 + k / check_n) % check_n;
        pairs[k] = from == to ? members_split(world, from, 1, 1) : members_split(world, from, to - from, 2);
        int me = members_me(pairs[k]);
        if (me >= 0)
            left[is_checked ? 0 : me][k] = ROUNDS;
    }
    memset(dest, -1, (size_t)n * ROUNDS * WORDS * sizeof *dest);
    shmem_barrier_all();
    for (int side = 0; side < 2; side++)
        for (int k; (k = draw(left[side], n)) >= 0;) {
            int round = ROUNDS - left[side][k]--;
            broadcast(pairs[k], k, round, &dest[(k * ROUNDS + round) * WORDS], WORDS);
        }
    shmem_barrier_all();
    for (int k = 0; k < n; k++)
        members_destroy(pairs[k]);
    free(left[0]);
    free(left[1]);
    free(pairs);
}

/* Teams in ascending order; the first member is far ahead of slow members. */
static void ahead(struct members world) {
    struct members teams[AHEAD_TEAMS];
    int left[AHEAD_TEAMS];
    for (int k = 0; k < AHEAD_TEAMS; k++) {
        int start = k % 2 ? (int)(check_mix(seed + (uint64_t)k) % (uint64_t)check_n) : 0, stride = 1 + k % 3;
        teams[k] = members_split(world, start, stride, 1 + (check_n - 1 - start) / stride);
        left[k] = members_me(teams[k]) >= 0 ? AHEAD_ROUNDS : 0;
    }
    shmem_barrier_all();
    if (check_me)
        usleep(check_me * 1000);
    for (int k; (k = draw(left, AHEAD_TEAMS)) >= 0;) {
        int round = AHEAD_ROUNDS - left[k]--;
        /* The last broadcast of each team is long. */
        broadcast(teams[k], NEIGHBORS * check_n + k, round, &dest[k * AHEAD_WORDS + round * WORDS], left[k] ? WORDS : LONG);
        if (check_me % 3 == 2 && round % 32 == 31)
            usleep(500);
    }
    shmem_barrier_all();
    for (int k = 0; k < AHEAD_TEAMS; k++)
        members_destroy(teams[k]);
}

int main(int argc, char **argv) {
    if (argc > 1)
        seed = strtoull(argv[1], NULL, 10);
    check_begin();
    is_checked = getenv("SHMEM_CHECK") != NULL;
    pace = check_mix(seed + (uint64_t)check_me);
    size_t pairs = (size_t)(NEIGHBORS * check_n) * ROUNDS * WORDS, far = AHEAD_TEAMS * AHEAD_WORDS;
    source = check_malloc(LONG * sizeof *source);
    dest = check_malloc((pairs > far ? pairs : far) * sizeof *dest);
    struct members world = members_world();
    crossed_pairs(world);
    ahead(world);
    members_free(world);
    shmem_free(dest);
    shmem_free(source);
    return check_end();
}
