/* fence, quiet, pe_quiet, barrier_all and sync_all: what each promises, and that INVALID and empty lists do nothing. */
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

/* Each kind of operation that a fence orders, with a flag behind it. */
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

/* Point 24: on INVALID nothing happens, neither harm nor waiting. */
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
    shmem_ctx_destroy(ctx);
    shmem_free(flag);
    shmem_free(data);
    return check_end();
}
