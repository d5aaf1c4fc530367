/* fence, quiet, pe_quiet, barrier_all and sync_all: their guarantees, and that INVALID and empty
 * lists have no effect. */
#include "check.h"

enum { WORDS = 500, LIST = 5 };

static long *data, *flag;
static int left, right;

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

static void cleared(void) {
    memset(data, 0, WORDS * sizeof *data);
    *flag = 0;
    shmem_barrier_all();
}

/* Each kind of operation that a fence orders, followed by a fence and a flag. */
enum kind { PUT, PUT_NBI, P, AMO, AMO_NBI, STORE, SIGNAL, KINDS };

static void issue(enum kind kind, shmem_ctx_t ctx, const long *from, uint64_t *signal) {
    static long fetched[WORDS];
    long *there;
    switch (kind) {
    case PUT:
        shmem_ctx_long_put(ctx, data, from, WORDS, right);
        break;
    case PUT_NBI:
        shmem_ctx_long_put_nbi(ctx, data, from, WORDS, right);
        break;
    case P:
        for (int i = 0; i < WORDS; i++)
            shmem_ctx_long_p(ctx, &data[i], from[i], right);
        break;
    case AMO:
        for (int i = 0; i < WORDS; i++)
            shmem_ctx_long_atomic_set(ctx, &data[i], from[i], right);
        break;
    case AMO_NBI:
        for (int i = 0; i < WORDS; i++)
            shmem_ctx_long_atomic_fetch_add_nbi(ctx, &fetched[i], &data[i], from[i], right);
        break;
    case STORE:
        there = shmem_ptr(data, right);
        for (int i = 0; i < WORDS; i++)
            if (there)
                ((volatile long *)there)[i] = from[i];
            else
                shmem_ctx_long_p(ctx, &data[i], from[i], right);
        break;
    case SIGNAL:
        shmem_ctx_long_put_signal_nbi(ctx, data, from, WORDS, signal, 1, SHMEM_SIGNAL_SET, right);
        break;
    case KINDS:
        break;
    }
}

static void fence_orders(shmem_ctx_t ctx, const char *which) {
    uint64_t *signal = shmem_calloc(1, sizeof *signal);
    long from[WORDS];
    for (int round = 0; round < 40; round++) {
        enum kind kind = (enum kind)(round % KINDS);
        fill(from, 100000L * (check_me + 1) + round);
        cleared();
        issue(kind, ctx, from, signal);
        shmem_ctx_fence(ctx);
        shmem_ctx_long_p(ctx, flag, round + 1, right);
        shmem_long_wait_until(flag, SHMEM_CMP_EQ, round + 1);
        CHECK(filled(data, 100000L * (left + 1) + round), 39, "%s context, operation %d: its flag overtook it", which, kind);
        shmem_ctx_quiet(ctx);
        shmem_barrier_all();
    }
    shmem_free(signal);
}

static void quiet_completes(shmem_ctx_t ctx, const char *which) {
    uint64_t *signal = shmem_calloc(1, sizeof *signal);
    long from[WORDS], back[WORDS];
    for (int round = 0; round < 3 * KINDS; round++) {
        enum kind kind = (enum kind)(round % KINDS);
        fill(from, 200000L * (check_me + 1) + round);
        cleared();
        issue(kind, ctx, from, signal);
        if (round % 3 == 0)
            shmem_ctx_quiet(ctx);
        else if (round % 3 == 1)
            shmem_ctx_pe_quiet(ctx, (const int[]){right}, 1);
        else
            shmem_ctx_pe_quiet(ctx, (const int[]){check_me, right, left, right, 0}, LIST);
        memset(back, 0, sizeof back);
        shmem_long_get(back, data, WORDS, right);
        CHECK(filled(back, 200000L * (check_me + 1) + round), round % 3 ? 41 : 40,
              "%s context, operation %d: not complete after quiet", which, kind);
        memset(back, 0, sizeof back);
        shmem_ctx_long_get_nbi(ctx, back, data, WORDS, right);
        if (round % 3 == 0)
            shmem_ctx_quiet(ctx);
        else
            shmem_ctx_pe_quiet(ctx, (const int[]){left, right}, 2);
        CHECK(filled(back, 200000L * (check_me + 1) + round), round % 3 ? 41 : 28, "%s context: get_nbi after quiet", which);
        shmem_barrier_all();
    }
    shmem_free(signal);
}

/* The forms without a context. */
static void default_forms(void) {
    long from[WORDS], back[WORDS];
    for (int round = 0; round < 9; round++) {
        fill(from, 300000L * (check_me + 1) + round);
        cleared();
        shmem_long_put_nbi(data, from, WORDS, right);
        if (round % 3 == 0)
            shmem_quiet();
        else if (round % 3 == 1)
            shmem_pe_quiet((const int[]){right}, 1);
        else
            shmem_fence(), shmem_long_p(flag, 1, right), shmem_long_wait_until(flag, SHMEM_CMP_EQ, 1);
        if (round % 3 != 2) {
            shmem_long_get(back, data, WORDS, right);
            CHECK(filled(back, 300000L * (check_me + 1) + round), round % 3 ? 41 : 40, "default context: round %d", round);
        } else {
            CHECK(filled(data, 300000L * (left + 1) + round), 39, "default context: the flag overtook its data");
        }
        shmem_barrier_all();
    }
}

/* Point 24: calls on INVALID return without effect. */
static void nothing_to_do(void) {
    shmem_ctx_fence(SHMEM_CTX_INVALID);
    shmem_ctx_quiet(SHMEM_CTX_INVALID);
    shmem_ctx_pe_quiet(SHMEM_CTX_INVALID, (const int[]){0}, 1);
    shmem_ctx_pe_quiet(SHMEM_CTX_INVALID, NULL, 0);
    shmem_pe_quiet(NULL, 0);
    shmem_ctx_pe_quiet(SHMEM_CTX_DEFAULT, NULL, 0);
    shmem_fence();
    shmem_quiet();
}

/* barrier_all completes the default context; sync_all and team_sync order the caller's own stores. */
static void barrier_and_sync(void) {
    long from[WORDS];
    for (int round = 0; round < 30; round++) {
        fill(from, 400000L * (check_me + 1) + round);
        cleared();
        if (round % 2)
            shmem_long_put_nbi(data, from, WORDS, right);
        else
            for (int i = 0; i < WORDS; i++)
                shmem_long_atomic_add(&data[i], from[i], right);
        shmem_barrier_all();
        CHECK(filled(data, 400000L * (left + 1) + round), 42, "round %d: not there after barrier_all", round);

        shmem_barrier_all();
        fill(data, 500000L * (check_me + 1) + round);
        if (round % 2)
            shmem_sync_all();
        else
            CHECK(shmem_team_sync(SHMEM_TEAM_WORLD) == 0, 53, "shmem_team_sync failed");
        long *theirs = shmem_ptr(data, right), copy[WORDS];
        if (!theirs) {
            shmem_long_get(copy, data, WORDS, right);
            theirs = copy;
        }
        CHECK(filled(theirs, 500000L * (right + 1) + round), round % 2 ? 42 : 16, "stores are not visible after a sync");
        shmem_barrier_all();
    }
}

/* A fence orders the operations of its context to each PE; operations of another context need a
 * fence of that context. */
static void fence_to_all(shmem_ctx_t ctx) {
    long *slots = check_malloc(2 * check_n * sizeof *slots), *flags = check_malloc(2 * check_n * sizeof *flags);
    memset(slots, 0, 2 * check_n * sizeof *slots);
    memset(flags, 0, 2 * check_n * sizeof *flags);
    shmem_barrier_all();
    for (long round = 1; round <= 20; round++) {
        long value[2] = {1000 * round + check_me, -1000 * round - check_me};
        for (int pe = 0; pe < check_n; pe++) {
            shmem_long_put_nbi(&slots[check_me], &value[0], 1, pe);
            shmem_ctx_long_put_nbi(ctx, &slots[check_n + check_me], &value[1], 1, pe);
        }
        shmem_fence();
        for (int pe = 0; pe < check_n; pe++)
            shmem_long_atomic_set(&flags[check_me], round, pe);
        shmem_ctx_fence(ctx);
        for (int pe = 0; pe < check_n; pe++)
            shmem_ctx_long_atomic_set(ctx, &flags[check_n + check_me], round, pe);
        for (int pe = 0; pe < check_n; pe++) {
            shmem_long_wait_until(&flags[pe], SHMEM_CMP_GE, round);
            CHECK(slots[pe] == 1000 * round + pe, 39, "round %ld: the flag of PE %d overtook its data", round, pe);
            shmem_long_wait_until(&flags[check_n + pe], SHMEM_CMP_GE, round);
            CHECK(slots[check_n + pe] == -1000 * round - pe, 39, "round %ld, created context: PE %d", round, pe);
        }
        shmem_quiet();
        shmem_ctx_quiet(ctx);
        shmem_barrier_all();
    }
    shmem_free(flags);
    shmem_free(slots);
}

/* A team has no barrier: a quiet of a context and team_sync have its effect. team_sync alone makes
 * the caller's stores visible. */
static void barrier_of_a_team(shmem_ctx_t ctx) {
    shmem_team_t team;
    long from[WORDS];
    int of_team = check_n - check_n / 2, is_member = check_me < of_team;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, of_team - 1, -1, of_team, NULL, 0, &team) == 0, 16, "no team");
    int next = (check_me + 1) % of_team, previous = (check_me + of_team - 1) % of_team;
    for (int round = 0; round < 20; round++) {
        cleared();
        if (is_member) {
            fill(from, 600000L * (check_me + 1) + round);
            shmem_ctx_long_put_nbi(ctx, data, from, WORDS, next);
            shmem_ctx_quiet(ctx);
            CHECK(shmem_team_sync(team) == 0, 16, "shmem_team_sync failed");
            CHECK(filled(data, 600000L * (previous + 1) + round), 16, "round %d: not there after quiet and team_sync", round);
            CHECK(shmem_team_sync(team) == 0, 16, "shmem_team_sync failed");
            fill(data, 700000L * (check_me + 1) + round);
            CHECK(shmem_team_sync(team) == 0, 16, "shmem_team_sync failed");
            long *theirs = shmem_ptr(data, next);
            if (!theirs)
                shmem_long_get(theirs = from, data, WORDS, next);
            CHECK(filled(theirs, 700000L * (next + 1) + round), 16, "round %d: stores are not visible after team_sync", round);
        }
        shmem_barrier_all();
    }
    shmem_team_destroy(team);
}

int main(void) {
    check_begin();
    left = (check_me + check_n - 1) % check_n;
    right = (check_me + 1) % check_n;
    data = check_malloc(WORDS * sizeof *data);
    flag = shmem_calloc(1, sizeof *flag);
    shmem_ctx_t ctx;
    CHECK(shmem_ctx_create(0, &ctx) == 0, 20, "no context can be had");
    nothing_to_do();
    fence_orders(SHMEM_CTX_DEFAULT, "default");
    fence_orders(ctx, "created");
    quiet_completes(SHMEM_CTX_DEFAULT, "default");
    quiet_completes(ctx, "created");
    default_forms();
    barrier_and_sync();
    fence_to_all(ctx);
    barrier_of_a_team(ctx);
    shmem_ctx_destroy(ctx);
    shmem_free(flag);
    shmem_free(data);
    return check_end();
}
