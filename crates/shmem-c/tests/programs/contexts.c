/* Contexts: creation and its failures, options, PE numbers of a team, destruction, sessions. */
#include "members.h"

enum { WORDS = 100, MANY = 100 };

static long *data;
static int left, right;

static const long options[] = {0, SHMEM_CTX_SERIALIZED, SHMEM_CTX_PRIVATE, SHMEM_CTX_NOSTORE,
                               SHMEM_CTX_SERIALIZED | SHMEM_CTX_NOSTORE, SHMEM_CTX_PRIVATE | SHMEM_CTX_NOSTORE,
                               SHMEM_CTX_PRIVATE | SHMEM_CTX_SERIALIZED | SHMEM_CTX_NOSTORE};
enum { OPTIONS = sizeof options / sizeof *options };

static void fill(long *words, long first) {
    for (int i = 0; i < WORDS; i++)
        words[i] = first + i;
}

static int filled(const long *words, long first) {
    for (int i = 0; i < WORDS; i++)
        if (words[i] != first + i)
            return 0;
    return 1;
}

/* Every combination of options transfers data, with one context and with several. */
static void every_option(void) {
    shmem_ctx_t contexts[OPTIONS];
    long from[OPTIONS][WORDS], *to = check_malloc(OPTIONS * WORDS * sizeof *to);
    for (int k = 0; k < OPTIONS; k++) {
        contexts[k] = SHMEM_CTX_INVALID;
        CHECK(shmem_ctx_create(options[k], &contexts[k]) == 0, 22, "options %#lx are refused", (unsigned long)options[k]);
        CHECK(contexts[k] != SHMEM_CTX_INVALID && contexts[k] != SHMEM_CTX_DEFAULT, 22, "options %#lx gave no context",
              (unsigned long)options[k]);
        fill(from[k], 1000L * check_me + 100000L * k);
        shmem_ctx_long_put_nbi(contexts[k], &to[k * WORDS], from[k], WORDS, right);
    }
    for (int k = 0; k < OPTIONS; k++)
        shmem_ctx_quiet(contexts[k]);
    shmem_barrier_all();
    for (int k = 0; k < OPTIONS; k++) {
        CHECK(filled(&to[k * WORDS], 1000L * left + 100000L * k), 22, "options %#lx", (unsigned long)options[k]);
        shmem_ctx_destroy(contexts[k]);
    }
    shmem_barrier_all();
    shmem_free(to);
}

/* Only one PE creates, uses and destroys contexts. */
static void not_collective(void) {
    data[0] = 0;
    shmem_barrier_all();
    if (check_me == check_n / 2) {
        shmem_ctx_t ctx, of_team;
        CHECK(shmem_ctx_create(0, &ctx) == 0 && shmem_team_create_ctx(SHMEM_TEAM_WORLD, 0, &of_team) == 0, 20, "alone");
        shmem_ctx_long_atomic_add(ctx, &data[0], 3, 0);
        shmem_ctx_long_atomic_add(of_team, &data[0], 4, 0);
        shmem_ctx_quiet(ctx);
        shmem_ctx_quiet(of_team);
        shmem_ctx_destroy(of_team);
        shmem_ctx_destroy(ctx);
    }
    shmem_barrier_all();
    CHECK(check_me != 0 || data[0] == 7, 20, "what one PE's contexts did is %ld", data[0]);
    shmem_barrier_all();
}

static void failures(void) {
    shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;
    shmem_team_t team = SHMEM_TEAM_WORLD;
    CHECK(shmem_team_create_ctx(SHMEM_TEAM_INVALID, 0, &ctx) != 0, 20, "a context of INVALID gave 0");
    CHECK(ctx == SHMEM_CTX_INVALID, 20, "a context of INVALID gave a handle");
    CHECK(shmem_ctx_get_team(SHMEM_CTX_INVALID, &team) != 0, 25, "the team of INVALID gave 0");
    CHECK(team == SHMEM_TEAM_INVALID, 25, "the team of INVALID is a team");
    shmem_ctx_destroy(SHMEM_CTX_INVALID);
    shmem_ctx_quiet(SHMEM_CTX_INVALID);
    shmem_ctx_fence(SHMEM_CTX_INVALID);
    shmem_ctx_pe_quiet(SHMEM_CTX_INVALID, &right, 1);
}

/* Many contexts at once: each that was created works; a failure gives INVALID and does no harm. */
static void many(void) {
    shmem_ctx_t contexts[MANY];
    int made = 0;
    memset(data, 0, MANY * sizeof *data);
    shmem_barrier_all();
    for (int i = 0; i < MANY; i++) {
        contexts[i] = SHMEM_CTX_DEFAULT;
        int status = shmem_ctx_create(options[i % OPTIONS], &contexts[i]);
        CHECK((status == 0) == (contexts[i] != SHMEM_CTX_INVALID), 20, "context %d: status %d", i, status);
        made += status == 0;
        shmem_ctx_long_p(status ? SHMEM_CTX_DEFAULT : contexts[i], &data[i], 7 * i + check_me, right);
    }
    CHECK(made > 0, 20, "not one context of %d", MANY);
    for (int i = 0; i < MANY; i++)
        shmem_ctx_destroy(contexts[i]);
    shmem_barrier_all();
    for (int i = 0; i < MANY; i++)
        CHECK(data[i] == 7 * i + left, 23, "context %d of %d: %ld", i, made, data[i]);
    shmem_barrier_all();
}

/* destroy completes operations: the peer is notified by the default context right after it. */
static void destroy_is_quiet(void) {
    uint64_t *notified = shmem_calloc(1, sizeof *notified);
    long from[WORDS];
    for (uint64_t i = 1; i <= 40; i++) {
        shmem_ctx_t ctx;
        CHECK(shmem_ctx_create(options[i % OPTIONS], &ctx) == 0, 20, "turn %d", (int)i);
        fill(from, (long)i * 1000 + check_me);
        shmem_barrier_all();
        shmem_ctx_long_put_nbi(ctx, data, from, WORDS, right);
        shmem_ctx_destroy(ctx);
        shmem_signal_set(notified, i, right);
        shmem_signal_wait_until(notified, SHMEM_CMP_EQ, i);
        CHECK(filled(data, (long)i * 1000 + left), 23, "turn %d: not there although its context was destroyed", (int)i);
        shmem_barrier_all();
    }
    shmem_free(notified);
}

/* On a team's context PE numbers are the team's, for every kind of operation. */
static void team_numbers(struct members m) {
    int me = members_me(m);
    memset(data, 0, WORDS * sizeof *data);
    shmem_barrier_all();
    if (me >= 0) {
        shmem_ctx_t ctx;
        shmem_team_t team = SHMEM_TEAM_INVALID;
        CHECK(shmem_team_create_ctx(m.team, 0, &ctx) == 0, 21, "a context of a team of %d", m.size);
        CHECK(shmem_ctx_get_team(ctx, &team) == 0 && team == m.team, 25, "its team is another");
        int next = (me + 1) % m.size, self = m.world[me], previous = m.world[(me + m.size - 1) % m.size];
        long block[2] = {self + 1, self + 2}, back[2] = {0};
        shmem_ctx_long_p(ctx, &data[0], self, next);
        shmem_ctx_long_put(ctx, &data[1], block, 2, next);
        shmem_ctx_long_atomic_add(ctx, &data[3], self + 3, next);
        shmem_ctx_long_iput(ctx, &data[4], block, 2, 1, 2, next);
        shmem_ctx_long_put_signal(ctx, &data[8], block, 2, (uint64_t *)&data[7], 5, SHMEM_SIGNAL_SET, next);
        shmem_ctx_fence(ctx);
        shmem_ctx_pe_quiet(ctx, &next, 1);
        shmem_ctx_long_get(ctx, back, &data[8], 2, next);
        CHECK(back[0] == block[0] && back[1] == block[1], 21, "a get from team PE %d gave %ld", next, back[0]);
        CHECK(shmem_ctx_long_g(ctx, &data[0], next) == self, 21, "g from team PE %d", next);
        CHECK(shmem_ctx_long_atomic_fetch(ctx, &data[3], next) == self + 3, 21, "atomic_fetch from team PE %d", next);
        shmem_ctx_quiet(ctx);
        shmem_team_sync(m.team);
        const long due[] = {previous, previous + 1, previous + 2, previous + 3, previous + 1, 0, previous + 2, 5,
                            previous + 1, previous + 2};
        for (int i = 0; i < 10; i++)
            CHECK(data[i] == due[i], 21, "word %d from team PE %d is %ld, not %ld", i, previous, data[i], due[i]);
        shmem_ctx_destroy(ctx);
    }
    shmem_barrier_all();
}

static void their_team(void) {
    shmem_team_t team = SHMEM_TEAM_INVALID;
    CHECK(shmem_ctx_get_team(SHMEM_CTX_DEFAULT, &team) == 0 && team == SHMEM_TEAM_WORLD, 25, "the default context's team");
    shmem_ctx_t ctx;
    team = SHMEM_TEAM_INVALID;
    CHECK(shmem_ctx_create(0, &ctx) == 0, 20, "no context can be had");
    CHECK(shmem_ctx_get_team(ctx, &team) == 0 && team == SHMEM_TEAM_WORLD, 25, "a created context's team");
    shmem_ctx_destroy(ctx);
}

/* Sessions are hints: data, order and completion are the same as without one. */
static void sessions(void) {
    shmem_ctx_t ctx;
    CHECK(shmem_ctx_create(0, &ctx) == 0, 20, "no context can be had");
    shmem_ctx_session_config_t config = {.total_ops = 50}, none = {.total_ops = 0};
    long from[WORDS];
    shmem_ctx_t of[] = {ctx, SHMEM_CTX_DEFAULT};
    for (int k = 0; k < 2; k++) {
        fill(from, 5000L * (check_me + 1) + k);
        shmem_barrier_all();
        shmem_ctx_session_start(of[k], SHMEM_CTX_SESSION_BATCH, &config, SHMEM_CTX_SESSION_TOTAL_OPS);
        for (int i = 0; i < WORDS / 2; i++)
            shmem_ctx_long_p(of[k], &data[i], from[i], right);
        shmem_ctx_session_start(of[k], 0, &none, 0);
        shmem_ctx_session_start(of[k], 0, NULL, 0);
        for (int i = WORDS / 2; i < WORDS; i++)
            shmem_ctx_long_put_nbi(of[k], &data[i], &from[i], 1, right);
        shmem_ctx_session_stop(of[k]);
        shmem_ctx_session_stop(of[k]);
        shmem_ctx_quiet(of[k]);
        shmem_barrier_all();
        CHECK(filled(data, 5000L * (left + 1) + k), 26, "what a session batched did not come");
        shmem_barrier_all();
    }
    shmem_ctx_session_start(SHMEM_CTX_INVALID, SHMEM_CTX_SESSION_BATCH, &config, SHMEM_CTX_SESSION_TOTAL_OPS);
    shmem_ctx_session_stop(SHMEM_CTX_INVALID);
    shmem_ctx_destroy(ctx);
}

int main(void) {
    check_begin();
    members_begin();
    left = (check_me + check_n - 1) % check_n;
    right = (check_me + 1) % check_n;
    data = shmem_calloc(WORDS, sizeof *data);
    every_option();
    not_collective();
    failures();
    many();
    destroy_is_quiet();
    struct shapes shapes = shapes_begin();
    team_numbers(shapes.world);
    team_numbers(shapes.reversed);
    team_numbers(shapes.odd);
    shapes_end(shapes);
    their_team();
    sessions();
    shmem_free(data);
    members_end();
    return check_end();
}
