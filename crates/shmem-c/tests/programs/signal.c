/* put-with-signal in every form, signal_add, signal_set, signal_fetch and signal_wait_until. */
#include "check.h"
#include "types.h"

enum { COUNT = 9, ROOM = COUNT * 16 + 16, EMPTY = 0xEE };

static unsigned char *source, *dest;
static uint64_t *set_word, *add_word, *other;
static uint64_t set_to, added;
static int left, right;
static shmem_ctx_t ctx;

static void empty(void) {
    memset(dest, EMPTY, ROOM);
    shmem_barrier_all();
}

/* Once the signal is received, the data of the same call must be complete, without a barrier. */
static void arrived(const char *call, size_t size) {
    CHECK(check_pattern(dest, COUNT * size, left) < 0, 44, "%s: the signal came before its data", call);
    CHECK(check_constant(dest + COUNT * size, 16, EMPTY) < 0, 44, "%s wrote behind its destination", call);
}

#define BY_SET(call, size)                                                                                             \
    do {                                                                                                               \
        empty();                                                                                                       \
        set_to++;                                                                                                      \
        call;                                                                                                          \
        uint64_t seen = shmem_signal_wait_until(set_word, SHMEM_CMP_EQ, set_to);                                       \
        CHECK(seen == set_to, 46, "signal_wait_until gave %llu", (unsigned long long)seen);                            \
        arrived(#call, size);                                                                                          \
    } while (0)

#define BY_ADD(call, size)                                                                                             \
    do {                                                                                                               \
        empty();                                                                                                       \
        added += 3;                                                                                                    \
        call;                                                                                                          \
        uint64_t seen = shmem_signal_wait_until(add_word, SHMEM_CMP_GE, added);                                        \
        CHECK(seen == added, 45, "the signal word went to %llu, not %llu", (unsigned long long)seen,                   \
              (unsigned long long)added);                                                                              \
        arrived(#call, size);                                                                                          \
    } while (0)

#define PUT_SIGNAL(NAME, T, SIZE, PUT, CTX_PUT, PUT_NBI, CTX_PUT_NBI)                                                  \
    static void put_signal_##NAME(void) {                                                                              \
        T *d = (T *)dest;                                                                                              \
        const T *s = (const T *)source;                                                                                \
        BY_SET(PUT(d, s, COUNT, set_word, set_to, SHMEM_SIGNAL_SET, right), SIZE);                                     \
        BY_ADD(PUT(d, s, COUNT, add_word, 3, SHMEM_SIGNAL_ADD, right), SIZE);                                          \
        BY_SET(CTX_PUT(ctx, d, s, COUNT, set_word, set_to, SHMEM_SIGNAL_SET, right), SIZE);                            \
        BY_ADD(CTX_PUT(ctx, d, s, COUNT, add_word, 3, SHMEM_SIGNAL_ADD, right), SIZE);                                 \
        BY_SET(PUT_NBI(d, s, COUNT, set_word, set_to, SHMEM_SIGNAL_SET, right); shmem_quiet(), SIZE);                  \
        BY_ADD(PUT_NBI(d, s, COUNT, add_word, 3, SHMEM_SIGNAL_ADD, right), SIZE);                                      \
        BY_SET(CTX_PUT_NBI(ctx, d, s, COUNT, set_word, set_to, SHMEM_SIGNAL_SET, right), SIZE);                        \
        BY_ADD(CTX_PUT_NBI(ctx, d, s, COUNT, add_word, 3, SHMEM_SIGNAL_ADD, right); shmem_ctx_quiet(ctx), SIZE);       \
        empty();                                                                                                       \
        added += 3;                                                                                                    \
        PUT(NULL, NULL, 0, add_word, 1, SHMEM_SIGNAL_ADD, right);                                                      \
        CTX_PUT(ctx, d, s, 0, add_word, 1, SHMEM_SIGNAL_ADD, right);                                                   \
        PUT_NBI(NULL, NULL, 0, add_word, 1, SHMEM_SIGNAL_ADD, right);                                                  \
        CHECK(shmem_signal_wait_until(add_word, SHMEM_CMP_EQ, added) == added, 29,                                     \
              #NAME ": put_signal of no elements still signals");                                                      \
        CHECK(check_constant(dest, ROOM, EMPTY) < 0, 29, #NAME ": put_signal of no elements wrote something");         \
    }

#define PUT_SIGNAL_TYPE(N, T)                                                                                          \
    PUT_SIGNAL(N, T, sizeof(T), shmem_##N##_put_signal, shmem_ctx_##N##_put_signal, shmem_##N##_put_signal_nbi,        \
               shmem_ctx_##N##_put_signal_nbi)
#define PUT_SIGNAL_SIZE(S)                                                                                             \
    PUT_SIGNAL(bits##S, void, S / 8, shmem_put##S##_signal, shmem_ctx_put##S##_signal, shmem_put##S##_signal_nbi,      \
               shmem_ctx_put##S##_signal_nbi)

RMA_TYPES(PUT_SIGNAL_TYPE)
SIZES(PUT_SIGNAL_SIZE)
PUT_SIGNAL(mem, void, 1, shmem_putmem_signal, shmem_ctx_putmem_signal, shmem_putmem_signal_nbi,
           shmem_ctx_putmem_signal_nbi)

/* All PEs signal PE 0 with ADD, by both routines: no signal is lost. */
static void many_to_one(void) {
    enum { ROUNDS = 200 };
    char *data = check_malloc(check_n);
    *other = 0;
    shmem_barrier_all();
    char mark = (char)(check_me + 1);
    for (int i = 0; i < ROUNDS; i++) {
        shmem_putmem_signal(&data[check_me], &mark, 1, other, 1, SHMEM_SIGNAL_ADD, 0);
        shmem_signal_add(other, 2, 0);
        shmem_ctx_signal_add(ctx, other, 4, 0);
    }
    shmem_ctx_quiet(ctx);
    if (check_me == 0) {
        uint64_t due = 7u * ROUNDS * check_n;
        CHECK(shmem_signal_wait_until(other, SHMEM_CMP_EQ, due) == due, 45, "signals were lost");
        CHECK(shmem_signal_fetch(other) == due, 46, "signal_fetch gave %llu", (unsigned long long)shmem_signal_fetch(other));
        for (int pe = 0; pe < check_n; pe++)
            CHECK(data[pe] == (char)(pe + 1), 44, "the data of PE %d did not come", pe);
    }
    shmem_barrier_all();
    shmem_free(data);
}

/* signal_set, with and without a context, and the six comparisons on unsigned words. */
static void set_and_compare(void) {
    const uint64_t high = UINT64_C(1) << 63;
    *other = 0;
    shmem_barrier_all();
    shmem_signal_set(other, high + check_me, right);
    CHECK(shmem_signal_wait_until(other, SHMEM_CMP_NE, 0) == high + left, 46, "signal_wait_until NE");
    CHECK(shmem_signal_wait_until(other, SHMEM_CMP_GT, 5) == high + left, 50, "signal words are unsigned: GT");
    CHECK(shmem_signal_wait_until(other, SHMEM_CMP_GE, high) == high + left, 46, "signal_wait_until GE");
    CHECK(shmem_signal_wait_until(other, SHMEM_CMP_LE, UINT64_MAX) == high + left, 46, "signal_wait_until LE");
    CHECK(shmem_signal_wait_until(other, SHMEM_CMP_LT, UINT64_MAX) == high + left, 46, "signal_wait_until LT");
    shmem_barrier_all();
    shmem_ctx_signal_set(ctx, other, 77 + check_me, right);
    shmem_ctx_quiet(ctx);
    CHECK(shmem_signal_wait_until(other, SHMEM_CMP_EQ, 77 + left) == (uint64_t)(77 + left), 46, "ctx_signal_set");
    shmem_barrier_all();
}

/* Data and signal in different blocks, and in different segments. */
static void far_apart(void) {
    enum { ROUNDS = 40, WORDS = 300 };
    static long in_data[WORDS];
    static uint64_t signal_in_data;
    long *on_heap = shmem_calloc(WORDS, sizeof *on_heap), from[WORDS];
    uint64_t *signal_on_heap = shmem_calloc(1, sizeof *signal_on_heap);
    for (int round = 1; round <= ROUNDS; round++) {
        long *data = round % 2 ? in_data : on_heap;
        uint64_t *signal = round % 4 < 2 ? &signal_in_data : signal_on_heap;
        for (int i = 0; i < WORDS; i++)
            from[i] = 1000L * round + check_me + i;
        if (round % 3)
            shmem_long_put_signal(data, from, WORDS, signal, round, SHMEM_SIGNAL_SET, right);
        else
            shmem_ctx_long_put_signal_nbi(ctx, data, from, WORDS, signal, round, SHMEM_SIGNAL_SET, right);
        shmem_ctx_quiet(ctx);
        shmem_signal_wait_until(signal, SHMEM_CMP_EQ, round);
        for (int i = 0; i < WORDS; i++)
            CHECK(data[i] == 1000L * round + left + i, 44, "round %d: word %d is %ld", round, i, data[i]);
        shmem_barrier_all();
    }
    shmem_free(signal_on_heap);
    shmem_free(on_heap);
}

int main(void) {
    check_begin();
    left = (check_me + check_n - 1) % check_n;
    right = (check_me + 1) % check_n;
    source = check_malloc(ROOM);
    dest = check_malloc(ROOM);
    set_word = shmem_calloc(3, sizeof *set_word);
    add_word = set_word + 1;
    other = set_word + 2;
    check_fill(source, ROOM, check_me);
    CHECK(shmem_ctx_create(0, &ctx) == 0, 20, "no context can be had");
    shmem_barrier_all();
#define RUN_TYPE(N, T) put_signal_##N();
#define RUN_SIZE(S) put_signal_bits##S();
    RMA_TYPES(RUN_TYPE)
    SIZES(RUN_SIZE)
    put_signal_mem();
    many_to_one();
    set_and_compare();
    far_apart();
    shmem_ctx_destroy(ctx);
    shmem_free(set_word);
    shmem_free(dest);
    shmem_free(source);
    return check_end();
}
