/* Sessions with many small operations: the operations are transferred, completed and ordered as
 * outside of sessions, on each kind of context, in the heap and in static data.
 */
#include "check.h"

enum { SESSIONS = 26, OPERATIONS = 1500, MOST = 300, LONG = 5000, ROUNDS = 12, KINDS = 7 };

static uint64_t state;

static uint32_t below(uint32_t bound) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % bound;
}

/* Byte i of the data that PE `from` puts in a round. */
static unsigned char pattern(int from, int round, size_t i) {
    return (unsigned char)(31 * from + 7 * round + i);
}

/* The sums that each PE has added to a word of each PE by atomics, and by signals. */
static long in_static[2];
static long *in_heap;
static uint64_t *signals;
/* A slot for each PE that puts, in the heap and in static data. */
static unsigned char *slots;
static unsigned char static_slots[64][8];
static long constants[8];

/* Random operations on members of the context's team; `added` has the sums that they add to words
 * of each. */
static void scatter(shmem_ctx_t ctx, shmem_team_t team, long *added, int round) {
    const int n = shmem_team_n_pes(team);
    static long fetched[OPERATIONS], gotten[OPERATIONS];
    static int targets[OPERATIONS], kinds[OPERATIONS];
    static unsigned char bytes[LONG];
    long *mine = (long *)calloc((size_t)n, sizeof(long));
    for (int i = 0; i < LONG; i++)
        bytes[i] = pattern(check_me, round, (size_t)i);
    for (int i = 0; i < OPERATIONS; i++) {
        const int pe = (int)below((uint32_t)n), kind = (int)below(KINDS);
        const int world = shmem_team_translate_pe(team, pe, SHMEM_TEAM_WORLD);
        const size_t from = below(MOST), nbytes = below((uint32_t)(MOST - from)) + 1;
        unsigned char *slot = slots + (size_t)check_me * LONG;
        targets[i] = world;
        kinds[i] = kind;
        switch (kind) {
        case 0:
            shmem_ctx_long_atomic_add(ctx, in_heap, 3, pe);
            added[world] += 3;
            break;
        case 1:
            shmem_ctx_long_atomic_inc(ctx, &in_static[0], pe);
            mine[pe]++;
            break;
        case 2:
            shmem_ctx_putmem(ctx, slot + from, bytes + from, nbytes, pe);
            break;
        case 3:
            shmem_ctx_putmem_nbi(ctx, static_slots[check_me], bytes, 8, pe);
            break;
        case 4:
            shmem_ctx_long_atomic_fetch_add_nbi(ctx, &fetched[i], in_heap, 1, pe);
            added[world]++;
            break;
        case 5:
            shmem_ctx_long_get_nbi(ctx, &gotten[i], &constants[i % 8], 1, pe);
            break;
        default:
            shmem_ctx_putmem_signal(ctx, slot, bytes, i % 3 == 0 ? LONG : nbytes, &signals[check_me], 1,
                                    SHMEM_SIGNAL_ADD, pe);
            added[world] += 1L << 32;
        }
    }
    for (int pe = 0; pe < n; pe++)
        shmem_ctx_long_atomic_add(ctx, &in_static[1], mine[pe], pe);
    free(mine);
    shmem_ctx_quiet(ctx);
    for (int i = 0; i < OPERATIONS; i++) {
        CHECK(kinds[i] != 5 || gotten[i] == 100 * targets[i] + i % 8, SESSIONS, "a get from PE %d gave %ld", targets[i],
              gotten[i]);
        CHECK(kinds[i] != 4 || fetched[i] >= 0, SESSIONS, "an operation on PE %d fetched %ld", targets[i], fetched[i]);
    }
}

/* All operations are complete: the sums are the same on both sides. */
static void compare(const long *added, int round) {
    long *sent = (long *)shmem_malloc((size_t)check_n * sizeof(long));
    long *came = (long *)shmem_malloc((size_t)check_n * sizeof(long));
    memcpy(sent, added, (size_t)check_n * sizeof(long));
    shmem_long_alltoall(SHMEM_TEAM_WORLD, came, sent, 1);
    long words = 0;
    for (int pe = 0; pe < check_n; pe++) {
        words += came[pe] & 0xffffffff;
        CHECK((long)signals[pe] == came[pe] >> 32, SESSIONS, "%lu signals of PE %d, not %ld", (unsigned long)signals[pe],
              pe, came[pe] >> 32);
        for (size_t i = 0; i < LONG && signals[pe] > 0; i++) {
            const unsigned char byte = slots[(size_t)pe * LONG + i];
            CHECK(byte == 0 || byte == pattern(pe, round, i), SESSIONS, "byte %zu of PE %d is %d", i, pe, byte);
        }
    }
    CHECK(*in_heap == words, SESSIONS, "the sum is %ld, not %ld", *in_heap, words);
    CHECK(in_static[0] == in_static[1], SESSIONS, "%ld increments, not %ld", in_static[0], in_static[1]);
    shmem_barrier_all();
    *in_heap = in_static[0] = in_static[1] = 0;
    memset(signals, 0, (size_t)check_n * sizeof *signals);
    memset(slots, 0, (size_t)check_n * LONG);
    shmem_free(came);
    shmem_free(sent);
}

/* Data, a fence and a flag to every PE in turn; the answer is a put that no call completes
 * explicitly. */
static void fences(shmem_ctx_t ctx) {
    long *flags = (long *)shmem_calloc((size_t)check_n, sizeof(long));
    long *answers = (long *)shmem_calloc((size_t)check_n, sizeof(long));
    static unsigned char bytes[LONG];
    for (int round = 1; round <= ROUNDS; round++) {
        const size_t nbytes = round % 3 == 0 ? LONG : below(MOST) + 1;
        for (size_t i = 0; i < nbytes; i++)
            bytes[i] = pattern(check_me, round, i);
        for (int d = 1; d <= check_n; d++) {
            const int pe = (check_me + d) % check_n;
            shmem_ctx_putmem(ctx, slots + (size_t)check_me * LONG, bytes, nbytes, pe);
            shmem_ctx_fence(ctx);
            if (round % 2 == 0)
                shmem_ctx_long_p(ctx, &flags[check_me], round << 16 | (long)nbytes, pe);
            else
                shmem_ctx_long_atomic_set(ctx, &flags[check_me], round << 16 | (long)nbytes, pe);
        }
        for (int d = 1; d <= check_n; d++) {
            const int pe = (check_me - d + check_n) % check_n;
            shmem_long_wait_until(&flags[pe], SHMEM_CMP_GE, (long)round << 16);
            const size_t came = (size_t)(flags[pe] & 0xffff);
            for (size_t i = 0; i < came; i++)
                CHECK(slots[(size_t)pe * LONG + i] == pattern(pe, round, i), SESSIONS,
                      "round %d: byte %zu of %zu of PE %d is not there with its flag", round, i, came, pe);
            shmem_ctx_long_p(ctx, &answers[check_me], round, pe);
        }
        for (int pe = 0; pe < check_n; pe++)
            shmem_long_wait_until(&answers[pe], SHMEM_CMP_GE, round);
    }
    shmem_barrier_all();
    memset(slots, 0, (size_t)check_n * LONG);
    shmem_free(answers);
    shmem_free(flags);
}

/* pe_quiet completes the operations of the session on that PE. */
static void pe_quiets(shmem_ctx_t ctx) {
    const int next = (check_me + 1) % check_n;
    for (int i = 1; i <= 20; i++) {
        shmem_ctx_long_p(ctx, in_heap, i, next);
        shmem_ctx_pe_quiet(ctx, &next, 1);
        const long there = shmem_long_g(in_heap, next);
        CHECK(there == i, SESSIONS, "a word of PE %d is %ld after a quiet, not %d", next, there, i);
    }
    shmem_barrier_all();
    *in_heap = 0;
    shmem_barrier_all();
}

int main(void) {
    check_begin();
    state = 77 + (uint64_t)check_me;
    for (int i = 0; i < 8; i++)
        constants[i] = 100 * check_me + i;
    in_heap = (long *)shmem_calloc(1, sizeof(long));
    signals = (uint64_t *)shmem_calloc((size_t)check_n, sizeof *signals);
    slots = (unsigned char *)shmem_calloc((size_t)check_n, LONG);
    /* Every other PE. */
    shmem_team_t pair, team;
    CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, 2, NULL, 0, &pair, NULL, 0, &team) == 0, SESSIONS, "no team");
    shmem_ctx_t contexts[4] = {SHMEM_CTX_DEFAULT};
    CHECK(shmem_ctx_create(SHMEM_CTX_PRIVATE, &contexts[1]) == 0, SESSIONS, "no private context");
    CHECK(shmem_ctx_create(0, &contexts[2]) == 0, SESSIONS, "no context");
    CHECK(shmem_team_create_ctx(team, SHMEM_CTX_SERIALIZED, &contexts[3]) == 0, SESSIONS, "no context of a team");
    shmem_barrier_all();
    long *added = (long *)calloc((size_t)check_n, sizeof(long));
    for (int k = 0; k < 4; k++) {
        const shmem_team_t of = k == 3 ? team : SHMEM_TEAM_WORLD;
        shmem_ctx_session_start(contexts[k], SHMEM_CTX_SESSION_BATCH, NULL, 0);
        for (int i = 0; i < 2; i++) {
            scatter(contexts[k], of, added, k);
            if (i == 0)
                shmem_ctx_session_start(contexts[k], 0, NULL, 0);
            shmem_barrier_all();
        }
        shmem_ctx_session_stop(contexts[k]);
        /* As after a session. */
        scatter(contexts[k], of, added, k);
        shmem_barrier_all();
        compare(added, k);
        memset(added, 0, (size_t)check_n * sizeof(long));
        if (k == 3)
            continue;
        shmem_ctx_session_start(contexts[k], SHMEM_CTX_SESSION_BATCH, NULL, 0);
        fences(contexts[k]);
        pe_quiets(contexts[k]);
    }
    free(added);
    /* Destroyed in a session. */
    for (int k = 1; k < 4; k++)
        shmem_ctx_destroy(contexts[k]);
    return check_end();
}
