/* Every AMO on every type in its four forms (default or given context, blocking or nbi), without
 * and with contention. */
#include "check.h"
#include "types.h"
#include <shmemx.h>

enum { GUARDED = 3 };

static unsigned char *cells;
static int left, right;
static shmem_ctx_t ctx;

/* The word on which the left neighbor operates is between two guards. */
#define WORD(T) ((T *)cells + 1)

#define FETCHED(call, due, point) CHECK((call) == (due), point, "%s: another value came back", #call)
#define LANDED(N, due, call) CHECK(shmem_##N##_atomic_fetch(word, right) == (due), 36, "%s: another value landed", #call)

/* set, fetch and swap: 14 types. */
#define EXTENDED(N, T)                                                                                                 \
    static void extended_##N(void) {                                                                                   \
        T *word = WORD(T);                                                                                             \
        const T a = VALUE(T, 11 * check_me + 1), b = VALUE(T, 11 * check_me + 2), c = VALUE(T, 11 * check_me + 3);     \
        memset(cells, 0, GUARDED * sizeof(T));                                                                         \
        shmem_barrier_all();                                                                                           \
        shmem_##N##_atomic_set(word, a, right);                                                                        \
        shmem_quiet();                                                                                                 \
        FETCHED(shmem_##N##_atomic_fetch(word, right), a, 36);                                                         \
        shmem_ctx_##N##_atomic_set(ctx, word, b, right);                                                               \
        shmem_ctx_quiet(ctx);                                                                                          \
        FETCHED(shmem_ctx_##N##_atomic_fetch(ctx, word, right), b, 36);                                                \
        FETCHED(shmem_##N##_atomic_swap(word, c, right), b, 37);                                                       \
        FETCHED(shmem_ctx_##N##_atomic_swap(ctx, word, a, right), c, 37);                                              \
        T fetched = c;                                                                                                 \
        shmem_##N##_atomic_fetch_nbi(&fetched, word, right);                                                           \
        shmem_quiet();                                                                                                 \
        CHECK(fetched == a, 38, "shmem_" #N "_atomic_fetch_nbi");                                                      \
        fetched = c;                                                                                                   \
        shmem_ctx_##N##_atomic_fetch_nbi(ctx, &fetched, word, right);                                                  \
        shmem_ctx_quiet(ctx);                                                                                          \
        CHECK(fetched == a, 38, "shmem_ctx_" #N "_atomic_fetch_nbi");                                                  \
        shmem_##N##_atomic_swap_nbi(&fetched, word, b, right);                                                         \
        shmem_quiet();                                                                                                 \
        CHECK(fetched == a, 38, "shmem_" #N "_atomic_swap_nbi");                                                       \
        shmem_ctx_##N##_atomic_swap_nbi(ctx, &fetched, word, c, right);                                                \
        shmem_ctx_quiet(ctx);                                                                                          \
        CHECK(fetched == b, 38, "shmem_ctx_" #N "_atomic_swap_nbi");                                                   \
        shmem_barrier_all();                                                                                           \
        CHECK(*word == VALUE(T, 11 * left + 3), 36, #N ": the word itself differs at the end");                        \
        CHECK(word[-1] == 0 && word[1] == 0, 36, #N ": a word beside it changed");                                     \
        shmem_barrier_all();                                                                                           \
    }

/* A fetching operation in its four forms; each first sets the word to `before`. */
#define FOUR_FORMS(N, T, OP, before, after, ...)                                                                       \
    do {                                                                                                               \
        T fetched;                                                                                                     \
        shmem_##N##_atomic_set(word, before, right), shmem_quiet();                                                    \
        CHECK(shmem_##N##_atomic_##OP(word, __VA_ARGS__ right) == (before), 36, "shmem_" #N "_atomic_" #OP " gave");   \
        LANDED(N, after, shmem_##N##_atomic_##OP);                                                                     \
        shmem_##N##_atomic_set(word, before, right), shmem_quiet();                                                    \
        CHECK(shmem_ctx_##N##_atomic_##OP(ctx, word, __VA_ARGS__ right) == (before), 36,                               \
              "shmem_ctx_" #N "_atomic_" #OP " gave");                                                                 \
        LANDED(N, after, shmem_ctx_##N##_atomic_##OP);                                                                 \
        shmem_##N##_atomic_set(word, before, right), shmem_quiet();                                                    \
        fetched = VALUE(T, 77);                                                                                        \
        shmem_##N##_atomic_##OP##_nbi(&fetched, word, __VA_ARGS__ right);                                              \
        shmem_quiet();                                                                                                 \
        CHECK(fetched == (before), 38, "shmem_" #N "_atomic_" #OP "_nbi gave");                                        \
        LANDED(N, after, shmem_##N##_atomic_##OP##_nbi);                                                               \
        shmem_##N##_atomic_set(word, before, right), shmem_quiet();                                                    \
        fetched = VALUE(T, 77);                                                                                        \
        shmem_ctx_##N##_atomic_##OP##_nbi(ctx, &fetched, word, __VA_ARGS__ right);                                     \
        shmem_ctx_quiet(ctx);                                                                                          \
        CHECK(fetched == (before), 38, "shmem_ctx_" #N "_atomic_" #OP "_nbi gave");                                    \
        LANDED(N, after, shmem_ctx_##N##_atomic_##OP##_nbi);                                                           \
    } while (0)

/* A non-fetching operation in its two forms. */
#define TWO_FORMS(N, OP, before, after, ...)                                                                           \
    do {                                                                                                               \
        shmem_##N##_atomic_set(word, before, right), shmem_quiet();                                                    \
        shmem_##N##_atomic_##OP(word, __VA_ARGS__ right), shmem_quiet();                                               \
        LANDED(N, after, shmem_##N##_atomic_##OP);                                                                     \
        shmem_##N##_atomic_set(word, before, right), shmem_quiet();                                                    \
        shmem_ctx_##N##_atomic_##OP(ctx, word, __VA_ARGS__ right), shmem_ctx_quiet(ctx);                               \
        LANDED(N, after, shmem_ctx_##N##_atomic_##OP);                                                                 \
    } while (0)

#define COMMA ,
/* A value of half of the range, so that sums of two do not overflow a signed type. */
#define HALF(T, k) ((T)(VALUE(T, k) / 2))

/* compare_swap, add and inc: 12 types. */
#define STANDARD(N, T)                                                                                                 \
    static void standard_##N(void) {                                                                                   \
        T *word = WORD(T);                                                                                             \
        const T a = HALF(T, 13 * check_me + 1), b = HALF(T, 13 * check_me + 2), c = HALF(T, 13 * check_me + 3);        \
        memset(cells, 0, GUARDED * sizeof(T));                                                                         \
        shmem_barrier_all();                                                                                           \
        FOUR_FORMS(N, T, compare_swap, a, b, a COMMA b COMMA);                                                         \
        FOUR_FORMS(N, T, compare_swap, a, a, c COMMA b COMMA);                                                         \
        FOUR_FORMS(N, T, fetch_add, a, (T)(a + b), b COMMA);                                                           \
        FOUR_FORMS(N, T, fetch_add, b, (T)(b - 1), (T)-1 COMMA);                                                       \
        FOUR_FORMS(N, T, fetch_inc, c, (T)(c + 1), );                                                                  \
        TWO_FORMS(N, add, a, (T)(a + c), c COMMA);                                                                     \
        TWO_FORMS(N, inc, (T)-1, (T)0, );                                                                              \
        shmem_barrier_all();                                                                                           \
        CHECK(word[-1] == 0 && word[1] == 0, 36, #N ": a word beside it changed");                                     \
        shmem_barrier_all();                                                                                           \
    }

/* and, or, xor: 7 types. */
#define BITWISE(N, T)                                                                                                  \
    static void bitwise_##N(void) {                                                                                    \
        T *word = WORD(T);                                                                                             \
        const T a = VALUE(T, 17 * check_me + 1), b = VALUE(T, 17 * check_me + 2);                                      \
        memset(cells, 0, GUARDED * sizeof(T));                                                                         \
        shmem_barrier_all();                                                                                           \
        FOUR_FORMS(N, T, fetch_and, a, (T)(a & b), b COMMA);                                                           \
        FOUR_FORMS(N, T, fetch_or, a, (T)(a | b), b COMMA);                                                            \
        FOUR_FORMS(N, T, fetch_xor, a, (T)(a ^ b), b COMMA);                                                           \
        TWO_FORMS(N, and, a, (T)(a & b), b COMMA);                                                                     \
        TWO_FORMS(N, or, a, (T)(a | b), b COMMA);                                                                      \
        TWO_FORMS(N, xor, a, (T)(a ^ b), b COMMA);                                                                     \
        shmem_barrier_all();                                                                                           \
        CHECK(word[-1] == 0 && word[1] == 0, 37, #N ": a word beside it changed");                                     \
        shmem_barrier_all();                                                                                           \
    }

/* The deprecated names. */
#define OLD_EXTENDED(N, T)                                                                                             \
    static void old_extended_##N(void) {                                                                               \
        T *word = WORD(T);                                                                                             \
        const T a = VALUE(T, 19 * check_me + 1), b = VALUE(T, 19 * check_me + 2);                                      \
        shmem_barrier_all();                                                                                           \
        shmem_##N##_set(word, a, right), shmem_quiet();                                                                \
        FETCHED(shmem_##N##_fetch(word, right), a, 37);                                                                \
        FETCHED(shmem_##N##_swap(word, b, right), a, 37);                                                              \
        FETCHED(shmem_##N##_fetch(word, right), b, 37);                                                                \
        shmem_barrier_all();                                                                                           \
    }
#define OLD(N, T)                                                                                                      \
    static void old_##N(void) {                                                                                        \
        T *word = WORD(T);                                                                                             \
        const T a = 1000 + check_me;                                                                                   \
        shmem_barrier_all();                                                                                           \
        shmem_##N##_set(word, a, right), shmem_quiet();                                                                \
        FETCHED(shmem_##N##_cswap(word, a, a + 5, right), a, 37);                                                      \
        FETCHED(shmem_##N##_cswap(word, a, a + 9, right), a + 5, 37);                                                  \
        FETCHED(shmem_##N##_fadd(word, 10, right), a + 5, 37);                                                         \
        FETCHED(shmem_##N##_finc(word, right), a + 15, 37);                                                            \
        shmem_##N##_inc(word, right), shmem_##N##_add(word, -7, right), shmem_quiet();                                 \
        FETCHED(shmem_##N##_fetch(word, right), a + 10, 37);                                                           \
        shmem_barrier_all();                                                                                           \
    }

enum { TICKETS = 60 };
static int *seen;

/* All PEs operate on one word of PE 0: tickets are unique, sums are right, and a spin lock made of
 * compare_swap excludes others. */
#define CONTENDED(N, T)                                                                                                \
    static void contended_##N(void) {                                                                                  \
        T *word = (T *)cells;                                                                                          \
        memset(cells, 0, 4 * sizeof(T));                                                                               \
        memset(seen, 0, TICKETS * check_n * sizeof *seen);                                                             \
        shmem_barrier_all();                                                                                           \
        for (int i = 0; i < TICKETS; i++) {                                                                            \
            T ticket = 0;                                                                                              \
            if (i % 3 == 0)                                                                                            \
                ticket = shmem_##N##_atomic_fetch_inc(&word[0], 0);                                                    \
            else if (i % 3 == 1)                                                                                       \
                ticket = shmem_ctx_##N##_atomic_fetch_add(ctx, &word[0], 1, 0);                                        \
            else                                                                                                       \
                shmem_##N##_atomic_fetch_inc_nbi(&ticket, &word[0], 0), shmem_quiet();                                 \
            if (ticket < (T)(TICKETS * check_n))                                                                       \
                shmem_int_atomic_inc(&seen[(int)ticket], 0);                                                           \
            shmem_##N##_atomic_add(&word[1], (T)(check_me + 1), 0);                                                    \
        }                                                                                                              \
        for (int i = 0; i < 5; i++) {                                                                                  \
            while (shmem_##N##_atomic_compare_swap(&word[2], 0, (T)(check_me + 1), 0) != 0)                            \
                sched_yield();                                                                                         \
            T inside = shmem_##N##_g(&word[3], 0);                                                                     \
            shmem_##N##_p(&word[3], (T)(inside + 1), 0), shmem_quiet();                                                \
            CHECK(shmem_##N##_atomic_swap(&word[2], 0, 0) == (T)(check_me + 1), 35, #N ": two held one lock");         \
        }                                                                                                              \
        shmem_barrier_all();                                                                                           \
        if (check_me == 0) {                                                                                           \
            CHECK(word[0] == (T)(TICKETS * check_n), 35, #N ": increments were lost");                                 \
            CHECK(word[1] == (T)(TICKETS * check_n * (check_n + 1) / 2), 35, #N ": additions were lost");              \
            CHECK(word[3] == (T)(5 * check_n), 35, #N ": the lock let two in");                                        \
            for (int i = 0; i < TICKETS * check_n; i++)                                                                \
                CHECK(seen[i] == 1, 35, #N ": ticket %d was given %d times", i, seen[i]);                              \
        }                                                                                                              \
        shmem_barrier_all();                                                                                           \
    }

/* Each PE flips, sets and clears bits of its own in one word of PE 0. */
#define CONTENDED_BITS(N, T)                                                                                           \
    static void contended_bits_##N(void) {                                                                             \
        T *word = (T *)cells;                                                                                          \
        const int bits = 8 * sizeof(T), turns = 41;                                                                    \
        const T mine = (T)((T)1 << check_me % (bits - 1));                                                             \
        const int alone = check_n < bits;                                                                              \
        memset(cells, 0, 2 * sizeof(T));                                                                               \
        shmem_barrier_all();                                                                                           \
        for (int i = 0; i < turns; i++) {                                                                              \
            shmem_##N##_atomic_xor(&word[0], mine, 0);                                                                 \
            T before = shmem_##N##_atomic_fetch_or(&word[1], mine, 0);                                                 \
            CHECK(!alone || !(before & mine), 35, #N ": fetch_or met a bit that was cleared");                         \
            before = shmem_ctx_##N##_atomic_fetch_and(ctx, &word[1], (T)~mine, 0);                                     \
            CHECK(!alone || (before & mine), 35, #N ": fetch_and missed a bit that was set");                          \
        }                                                                                                              \
        shmem_barrier_all();                                                                                           \
        if (check_me == 0 && alone) {                                                                                  \
            T due = 0;                                                                                                 \
            for (int pe = 0; pe < check_n; pe++)                                                                       \
                due ^= (T)((T)1 << pe % (bits - 1));                                                                   \
            CHECK(word[0] == due, 35, #N ": an odd number of xor left other bits");                                    \
            CHECK(word[1] == 0, 35, #N ": bits stayed set");                                                           \
        }                                                                                                              \
        shmem_barrier_all();                                                                                           \
    }

/* add and fetch_add of floating-point numbers, which are extensions; all sums are exact. */
#define SUMS(N, T)                                                                                                     \
    static void sums_##N(void) {                                                                                       \
        T *word = WORD(T), fetched = 0, taken = 0, *sum = &((T *)cells)[0], *all = &((T *)cells)[1];                   \
        memset(cells, 0, GUARDED * sizeof(T));                                                                         \
        shmem_barrier_all();                                                                                           \
        shmem_##N##_atomic_set(word, (T)0.5, right), shmem_quiet();                                                    \
        FETCHED(shmemx_##N##_atomic_fetch_add(word, (T)0.25, right), (T)0.5, 36);                                      \
        FETCHED(shmemx_ctx_##N##_atomic_fetch_add(ctx, word, -2, right), (T)0.75, 36);                                 \
        shmemx_##N##_atomic_fetch_add_nbi(&fetched, word, 3, right), shmem_quiet();                                    \
        CHECK(fetched == (T)-1.25, 38, "shmemx_" #N "_atomic_fetch_add_nbi");                                          \
        shmemx_ctx_##N##_atomic_fetch_add_nbi(ctx, &fetched, word, 1, right), shmem_ctx_quiet(ctx);                    \
        CHECK(fetched == (T)1.75, 38, "shmemx_ctx_" #N "_atomic_fetch_add_nbi");                                       \
        shmemx_atomic_add(word, 1, right), shmem_quiet();                                                              \
        shmemx_atomic_add(ctx, word, (T)0.125, right), shmem_ctx_quiet(ctx);                                           \
        FETCHED(shmem_##N##_atomic_swap(word, 0, right), (T)3.875, 37);                                                \
        shmem_barrier_all();                                                                                           \
        CHECK(*word == 0 && word[-1] == 0 && word[1] == 0, 36, #N ": a word beside it changed");                       \
        shmem_barrier_all();                                                                                           \
        for (int i = 0; i < TICKETS; i++) {                                                                            \
            if (i % 2 == 0)                                                                                            \
                shmemx_##N##_atomic_add(sum, (T)0.5, 0);                                                               \
            else                                                                                                       \
                (void)shmemx_##N##_atomic_fetch_add(sum, (T)0.5, 0);                                                   \
            if (i % 8 == check_me % 8)                                                                                 \
                taken += shmem_##N##_atomic_swap(sum, 0, 0);                                                           \
        }                                                                                                              \
        shmemx_ctx_##N##_atomic_add(ctx, all, taken, 0), shmem_ctx_quiet(ctx);                                         \
        shmem_barrier_all();                                                                                           \
        if (check_me == 0)                                                                                             \
            CHECK(*sum + *all == (T)(TICKETS * check_n) / 2, 36, #N ": %g were added", (double)(*sum + *all));         \
        shmem_barrier_all();                                                                                           \
    }

EXTENDED_AMO_TYPES(EXTENDED)
SUMS(float, float)
SUMS(double, double)
AMO_TYPES(STANDARD)
BITWISE_AMO_TYPES(BITWISE)
OLD_EXTENDED_AMO_TYPES(OLD_EXTENDED)
OLD_AMO_TYPES(OLD)
AMO_TYPES(CONTENDED)
BITWISE_AMO_TYPES(CONTENDED_BITS)

/* No library has nbi forms of non-fetching operations, which may return early anyway. */
__attribute__((weak)) void shmem_long_atomic_add_nbi(long *, long, int);
__attribute__((weak)) void shmem_long_atomic_inc_nbi(long *, int);
__attribute__((weak)) void shmem_long_atomic_set_nbi(long *, long, int);

/* A fetching operation is complete when it returns, a non-fetching one after a quiet. */
static void when_they_are_done(void) {
    CHECK(!shmem_long_atomic_add_nbi && !shmem_long_atomic_inc_nbi && !shmem_long_atomic_set_nbi, 36, "an _nbi form too many");
    long *words = shmem_calloc(check_n, sizeof *words), *word = &words[check_me];
    for (long i = 0; i < 50; i++) {
        CHECK(shmem_long_atomic_fetch_add(word, 1, right) == 3 * i, 36, "fetch_add %ld", i);
        CHECK(shmem_long_g(word, right) == 3 * i + 1, 36, "fetch_add %ld has returned and is not done", i);
        shmem_long_atomic_inc(word, right);
        shmem_ctx_long_atomic_add(ctx, word, 1, right);
        shmem_quiet();
        shmem_ctx_quiet(ctx);
        CHECK(shmem_long_g(word, right) == 3 * i + 3, 36, "inc and add %ld are not there after quiet", i);
    }
    shmem_barrier_all();
    shmem_free(words);
}

int main(void) {
    check_begin();
    left = (check_me + check_n - 1) % check_n;
    right = (check_me + 1) % check_n;
    cells = shmem_calloc(8, 16);
    seen = check_malloc(TICKETS * check_n * sizeof *seen);
    CHECK(shmem_ctx_create(0, &ctx) == 0, 20, "no context can be had");
#define RUN_EXTENDED(N, T) extended_##N();
#define RUN_STANDARD(N, T) standard_##N(), contended_##N();
#define RUN_BITWISE(N, T) bitwise_##N(), contended_bits_##N();
#define RUN_OLD_EXTENDED(N, T) old_extended_##N();
#define RUN_OLD(N, T) old_##N();
    EXTENDED_AMO_TYPES(RUN_EXTENDED)
    sums_float(), sums_double();
    AMO_TYPES(RUN_STANDARD)
    BITWISE_AMO_TYPES(RUN_BITWISE)
    OLD_EXTENDED_AMO_TYPES(RUN_OLD_EXTENDED)
    OLD_AMO_TYPES(RUN_OLD)
    when_they_are_done();
    shmem_ctx_destroy(ctx);
    shmem_free(seen);
    shmem_free(cells);
    return check_end();
}
