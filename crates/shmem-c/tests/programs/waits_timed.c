/* Waits with a limit: they never end before it, change nothing, and may be repeated; of all types, on sets, for signals, for
 * quiet on each kind of context, and for requests. */
#include "check.h"
#include "types.h"
#include <math.h>
#include <shmemx.h>

enum { WORDS = 5, REPEATS = 10000, BLOCK = 4096, PUTS = 200 };

static int left, right;
static unsigned char *cells;
static long word, total, one = 1;
static uint64_t signal_word;

/* The left neighbor sets words after the limits of this PE have passed. */
#define TYPE(N, T)                                                                                                     \
    static void of_##N(void) {                                                                                         \
        T *words = (T *)cells;                                                                                         \
        memset(cells, 0, WORDS * sizeof(T));                                                                           \
        shmem_barrier_all();                                                                                           \
        CHECK(shmemx_##N##_wait_until_timed(words, SHMEM_CMP_EQ, 7, 0.0) == SHMEMX_TIMED_OUT, 0, #N " at once");       \
        CHECK(shmemx_##N##_wait_until_timed(words, SHMEM_CMP_EQ, 7, 1e-5) == SHMEMX_TIMED_OUT, 0, #N " later");        \
        CHECK(shmemx_##N##_wait_until_timed(words, SHMEM_CMP_EQ, 0, 0.0) == SHMEMX_SUCCESS, 0, #N " holds");           \
        shmem_barrier_all();                                                                                           \
        shmem_##N##_p(words, 7, right);                                                                                \
        CHECK(shmemx_##N##_wait_until_timed(words, SHMEM_CMP_EQ, 7, INFINITY) == SHMEMX_SUCCESS, 0, #N " comes");      \
        CHECK(words[0] == 7, 0, #N " is not 7");                                                                       \
        shmem_barrier_all();                                                                                           \
    }
WAIT_TYPES(TYPE)

#define SETS(N, T)                                                                                                     \
    static void sets_of_##N(void) {                                                                                    \
        T *words = (T *)cells;                                                                                         \
        const T due[WORDS] = {1, 2, 3, 4, 5};                                                                          \
        const int none[WORDS] = {1, 1, 1, 1, 1}, but_two[WORDS] = {0, 0, 1, 0, 0};                                     \
        size_t at[WORDS] = {9, 9, 9, 9, 9}, index = 9, n = 9;                                                          \
        memset(cells, 0, WORDS * sizeof(T));                                                                           \
        shmem_barrier_all();                                                                                           \
        int waited[] = {                                                                                               \
            shmemx_##N##_wait_until_all_timed(words, WORDS, NULL, SHMEM_CMP_EQ, 7, 1e-5),                              \
            shmemx_##N##_wait_until_all_vector_timed(words, WORDS, NULL, SHMEM_CMP_EQ, due, 1e-5),                     \
            shmemx_##N##_wait_until_any_timed(words, WORDS, NULL, SHMEM_CMP_EQ, 7, &index, 1e-5),                      \
            shmemx_##N##_wait_until_any_vector_timed(words, WORDS, NULL, SHMEM_CMP_EQ, due, &index, 1e-5),             \
            shmemx_##N##_wait_until_some_timed(words, WORDS, at, NULL, SHMEM_CMP_EQ, 7, &n, 1e-5),                     \
            shmemx_##N##_wait_until_some_vector_timed(words, WORDS, at, NULL, SHMEM_CMP_EQ, due, &n, 0.0),             \
        };                                                                                                             \
        for (int i = 0; i < 6; i++)                                                                                    \
            CHECK(waited[i] == SHMEMX_TIMED_OUT, 0, #N ", set %d, does not time out", i);                              \
        CHECK(index == 9 && n == 9 && at[0] == 9, 0, #N ": a wait that times out stores something");                   \
        shmem_barrier_all();                                                                                           \
        for (int i = 0; i < WORDS; i++)                                                                                \
            if (i != 2)                                                                                                \
                shmem_##N##_p(&words[i], due[i], right);                                                               \
        CHECK(shmemx_##N##_wait_until_all_vector_timed(words, WORDS, but_two, SHMEM_CMP_EQ, due, 1e6) == 0, 0,         \
              #N ": all but one");                                                                                     \
        CHECK(shmemx_##N##_wait_until_all_timed(words, WORDS, but_two, SHMEM_CMP_GE, 1, -1) == 0, 0, #N ": all");      \
        CHECK(shmemx_##N##_wait_until_all_timed(words, WORDS, NULL, SHMEM_CMP_GE, 1, 0.0) == SHMEMX_TIMED_OUT, 0,      \
              #N ": all with the one");                                                                                \
        CHECK(shmemx_##N##_wait_until_any_timed(words, WORDS, NULL, SHMEM_CMP_EQ, 4, &index, 1e6) == 0 && index == 3,  \
              0, #N ": any");                                                                                          \
        CHECK(shmemx_##N##_wait_until_some_timed(words, WORDS, at, NULL, SHMEM_CMP_LE, 2, &n, 1e6) == 0 && n == 3, 0,  \
              #N ": some");                                                                                            \
        CHECK(at[0] == 0 && at[1] == 1 && at[2] == 2, 0, #N ": the indices of some");                                  \
        CHECK(shmemx_##N##_wait_until_any_vector_timed(words, WORDS, none, SHMEM_CMP_EQ, due, &index, 1e-5) == 0 &&    \
                  index == SIZE_MAX,                                                                                   \
              0, #N ": any of none");                                                                                  \
        CHECK(shmemx_##N##_wait_until_some_vector_timed(words, WORDS, at, none, SHMEM_CMP_EQ, due, NULL, 1e-5) == 0,   \
              0, #N ": some of none");                                                                                 \
        shmem_barrier_all();                                                                                           \
    }
AMO_TYPES(SETS)

static void limits(void) {
    static const double LIMITS[] = {0.0, 1e-9, 1e-6, 1e-4, 2e-3, 0.03};
    for (size_t i = 0; i < sizeof LIMITS / sizeof *LIMITS; i++) {
        double began = shmemx_wtime();
        CHECK(shmemx_long_wait_until_timed(&word, SHMEM_CMP_EQ, -1, LIMITS[i]) == SHMEMX_TIMED_OUT, 0, "limit %zu", i);
        double took = shmemx_wtime() - began;
        CHECK(took >= LIMITS[i], 0, "a wait of %g s ends after %g s", LIMITS[i], took);
    }
    static const double NONE[] = {-1.0, -1e-300, 1e10, 1e300, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof NONE / sizeof *NONE; i++)
        CHECK(shmemx_long_wait_until_timed(&word, SHMEM_CMP_EQ, 0, NONE[i]) == SHMEMX_SUCCESS, 0, "no limit %zu", i);
    /* SHMEM_CHECK reports NaN. */
    if (!getenv("SHMEM_CHECK"))
        CHECK(shmemx_long_wait_until_timed(&word, SHMEM_CMP_EQ, 0, NAN) == SHMEMX_SUCCESS, 0, "NaN");
}

/* Each PE counts up a word of its right neighbor, whose waits time out again and again. */
static void repeated(void) {
    signal_word = 0;
    shmem_barrier_all();
    for (uint64_t i = 1; i <= REPEATS; i++) {
        shmem_signal_set(&signal_word, i, right);
        shmem_fence(); /* the word only grows */
        double seconds = i % 100 == 0 ? 2e-5 : 0.0;
        const uint64_t before = shmem_signal_fetch(&signal_word);
        uint64_t now = 0;
        if (shmemx_signal_wait_until_timed(&signal_word, SHMEM_CMP_GT, before, &now, seconds) == SHMEMX_SUCCESS)
            CHECK(now > before, 0, "the word was %lu and is %lu", (unsigned long)before, (unsigned long)now);
    }
    while (shmemx_signal_wait_until_timed(&signal_word, SHMEM_CMP_EQ, REPEATS, NULL, 1e-4) == SHMEMX_TIMED_OUT)
        ;
    shmem_barrier_all();
}

static void signals(void) {
    uint64_t value = 77;
    signal_word = 0;
    shmem_barrier_all();
    CHECK(shmemx_signal_wait_until_timed(&signal_word, SHMEM_CMP_GT, 0, &value, 1e-4) == SHMEMX_TIMED_OUT, 0, "signal");
    CHECK(value == 77, 0, "a wait that times out stores a value");
    shmem_barrier_all();
    shmem_signal_set(&signal_word, 9, right);
    CHECK(shmemx_signal_wait_until_timed(&signal_word, SHMEM_CMP_GT, 0, &value, 1e6) == 0 && value == 9, 0, "a signal");
    CHECK(shmemx_signal_wait_until_timed(&signal_word, SHMEM_CMP_EQ, 9, NULL, 0.0) == 0, 0, "a null pointer");
    shmem_barrier_all();
}

static int quiet(shmem_ctx_t ctx, double seconds) {
    return ctx == SHMEM_CTX_DEFAULT ? shmemx_quiet_timed(seconds) : shmemx_ctx_quiet_timed(ctx, seconds);
}

/* After a quiet with a limit that is over, all puts are complete; before that, nothing is lost. */
static void quiets(shmem_ctx_t ctx, int in_session) {
    unsigned char *dest = check_malloc(PUTS * BLOCK), *source = malloc(PUTS * BLOCK), *back = malloc(PUTS * BLOCK);
    static const double LIMITS[] = {0.0, 1e-6, 1e-3, -1.0};
    for (int round = 0; round < 4; round++) {
        check_fill(source, PUTS * BLOCK, 100 * check_me + round);
        shmem_barrier_all();
        if (in_session)
            shmem_ctx_session_start(ctx, SHMEM_CTX_SESSION_BATCH, NULL, 0);
        for (int i = 0; i < PUTS; i++) {
            size_t nbytes = i % 3 ? 8 : BLOCK;
            for (size_t at = 0; at < BLOCK; at += nbytes)
                if (nbytes == BLOCK || at < 64)
                    shmem_ctx_putmem_nbi(ctx, dest + i * BLOCK + at, source + i * BLOCK + at, nbytes, right);
        }
        while (quiet(ctx, LIMITS[round]) == SHMEMX_TIMED_OUT)
            ;
        shmem_getmem(back, dest, PUTS * BLOCK, right);
        for (int i = 0; i < PUTS; i++)
            CHECK(memcmp(back + i * BLOCK, source + i * BLOCK, i % 3 ? 64 : BLOCK) == 0, 0,
                  "round %d: put %d is not complete", round, i);
        CHECK(quiet(ctx, 0.0) == SHMEMX_SUCCESS, 0, "nothing is in flight");
        if (in_session)
            shmem_ctx_session_stop(ctx);
    }
    shmem_barrier_all();
    free(source);
    free(back);
    shmem_free(dest);
}

/* A collective with a limit: PE 0 comes late, when the limits of all others have passed. */
static void requests(void) {
    shmemx_req_t req = SHMEMX_REQ_NULL;
    CHECK(shmemx_req_wait_timed(&req, 0.0) == SHMEMX_SUCCESS, 0, "no request");
    word = 0;
    for (int round = 1; round <= 10; round++) {
        shmem_barrier_all();
        if (check_me == 0)
            while (shmemx_long_wait_until_timed(&word, SHMEM_CMP_EQ, (long)round * (check_n - 1), 1e-4))
                ;
        total = -1;
        shmemx_long_sum_reduce_nb(SHMEM_TEAM_WORLD, &total, &one, 1, &req);
        if (check_me != 0) {
            CHECK(shmemx_req_wait_timed(&req, 0.0) == SHMEMX_TIMED_OUT, 0, "the request is complete without PE 0");
            CHECK(shmemx_req_wait_timed(&req, 1e-3) == SHMEMX_TIMED_OUT, 0, "the request is complete without PE 0");
            CHECK(req != SHMEMX_REQ_NULL, 0, "a wait that times out forgets the request");
            shmem_long_atomic_inc(&word, 0);
        }
        while (shmemx_req_wait_timed(&req, round % 2 ? 1e-5 : 0.0) == SHMEMX_TIMED_OUT)
            ;
        CHECK(total == check_n && req == SHMEMX_REQ_NULL, 0, "the sum is %ld", total);
    }
    shmem_barrier_all();
    word = 0;
}

#define CALL_TYPE(N, T) of_##N();
#define CALL_SETS(N, T) sets_of_##N();

int main(void) {
    check_begin();
    right = (check_me + 1) % check_n, left = (check_me + check_n - 1) % check_n;
    (void)left;
    cells = check_malloc(WORDS * sizeof(uint64_t));
    WAIT_TYPES(CALL_TYPE)
    AMO_TYPES(CALL_SETS)
    limits();
    repeated();
    signals();
    shmem_ctx_t ctx;
    quiets(SHMEM_CTX_DEFAULT, 0);
    quiets(SHMEM_CTX_DEFAULT, 1);
    if (shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx) == 0) {
        quiets(ctx, 0);
        quiets(ctx, 1);
        shmem_ctx_destroy(ctx);
    }
    CHECK(shmemx_ctx_quiet_timed(SHMEM_CTX_INVALID, 0.0) == SHMEMX_SUCCESS, 0, "no context");
    requests();

    /* The others are in finalize while PE 0 waits, which without the limit would end the job. */
    int failed = check_agree();
    if (check_me == 0)
        CHECK(shmemx_long_wait_until_timed(&word, SHMEM_CMP_EQ, 1, 1.7) == SHMEMX_TIMED_OUT, 0, "in finalize");
    shmem_finalize();
    return check_verdict(failed + check_failures);
}
