/* Teams: split_strided compared with a model, errors, configurations, translation, destruction,
 * overlap, SHARED. */
#include "members.h"

/* Predefined handles are constants. */
static const shmem_team_t predefined[] = {SHMEM_TEAM_WORLD, SHMEM_TEAM_SHARED, SHMEM_TEAM_INVALID};

static int valid(int parent_size, int start, int stride, int size) {
    if (size < 1 || start < 0 || start >= parent_size)
        return 0;
    if (size == 1)
        return 1;
    long long last = start + (size - 1LL) * stride;
    return stride != 0 && last >= 0 && last < parent_size;
}

/* All PEs of the parent call; the result depends only on the triplet. */
static void split(struct members parent, const char *whose, int start, int stride, int size) {
    char what[100];
    snprintf(what, sizeof what, "%s(%d, %d, %d)", whose, start, stride, size);
    shmem_team_t team = SHMEM_TEAM_WORLD;
    int status = shmem_team_split_strided(parent.team, start, stride, size, NULL, 0, &team);
    if (!valid(parent.size, start, stride, size)) {
        CHECK(status != 0, size > 1 && stride == 0 ? 3 : 4, "%s: a bad triplet gave 0", what);
        CHECK(team == SHMEM_TEAM_INVALID, 4, "%s: a bad triplet gave a handle", what);
        return;
    }
    CHECK(status == 0, 1, "%s gave %d", what, status);
    struct members child = members_strided(parent, start, stride, size);
    child.team = team;
    members_check(child, stride < 0 ? 2 : 1, what);
    shmem_team_destroy(team);
    members_free(child);
}

static void splits_of(struct members parent, const char *whose) {
    if (members_me(parent) < 0)
        return;
    int n = parent.size;
    const int starts[] = {0, 1, n / 2, n - 1}, strides[] = {1, -1, 2, -2, 3, 0}, sizes[] = {1, 2, n / 2, n};
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < 6; b++)
            for (int c = 0; c < 4; c++)
                split(parent, whose, starts[a], strides[b], sizes[c]);
    split(parent, whose, -1, 1, 1);
    split(parent, whose, n, 1, 1);
    split(parent, whose, n, -1, 2);
    split(parent, whose, 0, 1, n + 1);
    split(parent, whose, n - 1, -1, n + 1);
    split(parent, whose, 0, 1, 0);
    split(parent, whose, 0, 1, -1);
    split(parent, whose, 0, n, 2);
    split(parent, whose, 0, 0, 2);
    split(parent, whose, 0, 1 << 30, 4);
    split(parent, whose, n - 1, -(1 << 30), 4);
    split(parent, whose, 0, 7, 1);
}

/* INVALID as parent or source: there is no communication, so a single PE may call. */
static void invalid_handles(void) {
    shmem_team_t team = SHMEM_TEAM_WORLD;
    shmem_team_config_t config = {.num_contexts = 4711};
    if (check_me == check_n - 1) {
        CHECK(shmem_team_split_strided(SHMEM_TEAM_INVALID, 0, 1, 1, NULL, 0, &team) != 0, 5, "INVALID parent gave 0");
        CHECK(team == SHMEM_TEAM_INVALID, 5, "INVALID parent gave a handle");
        CHECK(shmem_team_get_config(SHMEM_TEAM_INVALID, SHMEM_TEAM_NUM_CONTEXTS, &config) != 0, 11, "INVALID gave 0");
        CHECK(config.num_contexts == 4711, 11, "INVALID wrote the config");
    }
    CHECK(shmem_team_my_pe(SHMEM_TEAM_INVALID) == -1, 12, "my_pe of INVALID");
    CHECK(shmem_team_n_pes(SHMEM_TEAM_INVALID) == -1, 12, "n_pes of INVALID");
    CHECK(shmem_team_translate_pe(SHMEM_TEAM_INVALID, 0, SHMEM_TEAM_WORLD) == -1, 12, "translate from INVALID");
    CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, 0, SHMEM_TEAM_INVALID) == -1, 12, "translate to INVALID");
    CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, check_n, SHMEM_TEAM_WORLD) == -1, 12, "translate of a PE that is not");
    CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, -1, SHMEM_TEAM_WORLD) == -1, 12, "translate of PE -1");
    shmem_team_destroy(SHMEM_TEAM_INVALID);
    CHECK(predefined[0] != predefined[2], 18, "WORLD equals INVALID");
    CHECK(predefined[0] == SHMEM_TEAM_WORLD && predefined[1] == SHMEM_TEAM_SHARED, 18, "handles as initializers");
    CHECK(shmem_team_my_pe(predefined[0]) == check_me && shmem_team_n_pes(predefined[0]) == check_n, 18, "WORLD");
}

static void configurations(void) {
    shmem_team_config_t config = {.num_contexts = 3}, got = {.num_contexts = 4711};
    shmem_team_t team;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, check_n, &config, SHMEM_TEAM_NUM_CONTEXTS, &team) == 0, 10,
          "a split with 3 contexts reserved");
    CHECK(shmem_team_get_config(team, 0, NULL) == 0 && shmem_team_get_config(team, 0, &got) == 0, 11, "mask 0");
    CHECK(got.num_contexts == 4711, 11, "get_config with mask 0 wrote");
    CHECK(shmem_team_get_config(team, SHMEM_TEAM_NUM_CONTEXTS, &got) == 0 && got.num_contexts >= 0 && got.num_contexts != 4711,
          11, "get_config gave num_contexts %d", got.num_contexts);
    CHECK(shmem_team_get_config(SHMEM_TEAM_WORLD, SHMEM_TEAM_NUM_CONTEXTS, &got) == 0, 11, "get_config of WORLD");
    shmem_team_destroy(team);
    config.num_contexts = -12345;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, check_n, &config, 0, &team) == 0, 10,
          "a config whose field the mask does not name counts");
    shmem_team_destroy(team);
}

/* A child is used at once, split again, and outlives its parent. Each level halves the team until
 * one PE is left. */
static void splits_of_splits(void) {
    struct members level = members_world();
    for (int depth = 0; level.size > 1; depth++) {
        int half = (level.size + 1) / 2, me = members_me(level);
        struct members low = members_split(level, half - 1, -1, half);
        struct members high = members_split(level, half, 1, level.size - half);
        if (depth)
            shmem_team_destroy(level.team);
        members_check(low, 9, "low half");
        members_check(high, 9, "high half");
        members_free(level);
        level = me < half ? low : high;
        members_free(me < half ? high : low);
    }
    if (level.team != SHMEM_TEAM_WORLD)
        shmem_team_destroy(level.team);
    members_free(level);
}

/* Teams that share PEs, with their collectives alternately and no barrier between them. */
static void overlap(void) {
    if (check_n < 3)
        return;
    struct members world = members_world();
    struct members a = members_split(world, 0, 1, check_n - 1), b = members_split(world, check_n - 1, -1, check_n - 1);
    enum { TURNS = 100 };
    long *sums = check_malloc(3 * TURNS * sizeof *sums), *mine = check_malloc(sizeof *mine);
    long due_a = 0, due_b = 0;
    for (int pe = 0; pe < check_n; pe++)
        due_a += pe < check_n - 1 ? pe + 1 : 0, due_b += pe > 0 ? pe + 1 : 0;
    *mine = check_me + 1;
    shmem_barrier_all();
    for (int i = 0; i < TURNS; i++) {
        if (a.team != SHMEM_TEAM_INVALID)
            shmem_long_sum_reduce(a.team, &sums[i], mine, 1);
        if (b.team != SHMEM_TEAM_INVALID)
            shmem_long_sum_reduce(b.team, &sums[TURNS + i], mine, 1);
        if (i % 7 == 0)
            shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sums[2 * TURNS + i], mine, 1);
        CHECK(a.team == SHMEM_TEAM_INVALID || sums[i] == due_a, 19, "turn %d of the first team: %ld", i, sums[i]);
        CHECK(b.team == SHMEM_TEAM_INVALID || sums[TURNS + i] == due_b, 19, "turn %d of the second: %ld", i, sums[TURNS + i]);
        CHECK(i % 7 || sums[2 * TURNS + i] == (long)check_n * (check_n + 1) / 2, 19, "turn %d of WORLD", i);
    }
    members_check(a, 19, "first of two overlapping teams");
    members_check(b, 19, "second of two overlapping teams");
    members_destroy(b);
    members_destroy(a);
    shmem_barrier_all();
    shmem_free(mine);
    shmem_free(sums);
    members_free(world);
}

/* The memory of all members of SHARED can be loaded and stored. */
static void shared(void) {
    int me = shmem_team_my_pe(SHMEM_TEAM_SHARED), n = shmem_team_n_pes(SHMEM_TEAM_SHARED);
    CHECK(me >= 0 && me < n && n <= check_n, 17, "PE %d of %d", me, n);
    CHECK(shmem_team_translate_pe(SHMEM_TEAM_WORLD, check_me, SHMEM_TEAM_SHARED) == me, 17, "self is not in it");
    for (int i = 0; i < n; i++) {
        int pe = shmem_team_translate_pe(SHMEM_TEAM_SHARED, i, SHMEM_TEAM_WORLD);
        CHECK(pe >= 0 && shmem_ptr(members_source, pe) != NULL, 17, "PE %d of SHARED cannot be loaded from", i);
        CHECK(shmem_team_ptr(SHMEM_TEAM_SHARED, members_source, i) == shmem_ptr(members_source, pe), 33, "team_ptr of %d", i);
    }
    members_source[0] = 1;
    CHECK(shmem_int_sum_reduce(SHMEM_TEAM_SHARED, members_dest, members_source, 1) == 0 && *members_dest == n, 17,
          "a sum over SHARED gave %d", *members_dest);
    shmem_barrier_all();
}

/* Destroying a team destroys its shareable contexts. */
static void destroyed_with_contexts(void) {
    for (int i = 0; i < 20; i++) {
        shmem_team_t team;
        shmem_ctx_t contexts[3];
        CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, check_n - 1, -1, check_n, NULL, 0, &team) == 0, 13, "split %d", i);
        for (int k = 0; k < 3; k++)
            CHECK(shmem_team_create_ctx(team, k == 2 ? SHMEM_CTX_SERIALIZED : 0, &contexts[k]) == 0, 13, "turn %d", i);
        shmem_ctx_int_p(contexts[0], &members_dest[0], i, check_n - 1 - (check_me + 1) % check_n);
        shmem_ctx_quiet(contexts[0]);
        shmem_ctx_destroy(contexts[1]);
        shmem_team_sync(team);
        CHECK(members_dest[0] == i, 14, "turn %d: what came through the team's context is %d", i, members_dest[0]);
        shmem_team_sync(team);
        shmem_team_destroy(team);
    }
}

int main(void) {
    check_begin();
    members_begin();
    struct shapes shapes = shapes_begin();
    members_check(shapes.world, 18, "WORLD");
    splits_of(shapes.world, "WORLD");
    splits_of(shapes.reversed, "reversed");
    splits_of(shapes.odd, "odd");
    shapes_end(shapes);
    invalid_handles();
    configurations();
    splits_of_splits();
    overlap();
    shared();
    destroyed_with_contexts();
    members_end();
    return check_end();
}
