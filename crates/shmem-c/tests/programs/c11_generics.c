/* The generic names of C11 and C++: each with every type it lists, with and without a context. What
 * they do is checked elsewhere; here the right function must be reached, so each result is checked
 * in full width. In C++ complex numbers have none. */
#include "check.h"
#include "types.h"
#if defined(__cplusplus)
#define SUM_TYPES RMA_TYPES
#else
#include <complex.h>
#define SUM_TYPES TEAM_SUM_TYPES
#endif

enum { ROOM = 64 * 16 };

static unsigned char *dest, *source;
static uint64_t *signal_word, signals;
static shmem_ctx_t ctx;
static int me, right, left;

/* No PE accesses the memory before and after. */
#define ROUND(call)                                                                                                    \
    do {                                                                                                               \
        memset(dest, 0, 256);                                                                                          \
        shmem_barrier_all();                                                                                           \
        call;                                                                                                          \
        shmem_ctx_quiet(ctx);                                                                                          \
        shmem_barrier_all();                                                                                           \
    } while (0)

#define RMA(N, T)                                                                                                      \
    static void rma_##N(void) {                                                                                        \
        T *d = (T *)dest, *s = (T *)source, value = VALUE(T, me), due = VALUE(T, left), next = VALUE(T, right);        \
        T got[3] = {0};                                                                                                \
        s[0] = s[1] = s[2] = value;                                                                                    \
        ROUND(shmem_p(d, value, right); shmem_put(&d[1], s, 1, right); shmem_put_nbi(&d[2], s, 1, right);              \
              shmem_iput(&d[3], s, 1, 1, 1, right); shmem_ibput(&d[4], s, 1, 1, 1, 1, right));                         \
        for (int i = 0; i < 5; i++)                                                                                    \
            CHECK(d[i] == due, 82, #N ": generic put %d", i);                                                          \
        ROUND(shmem_p(ctx, d, value, right); shmem_put(ctx, &d[1], s, 1, right);                                       \
              shmem_put_nbi(ctx, &d[2], s, 1, right); shmem_iput(ctx, &d[3], s, 1, 1, 1, right);                       \
              shmem_ibput(ctx, &d[4], s, 1, 1, 1, 1, right));                                                          \
        for (int i = 0; i < 5; i++)                                                                                    \
            CHECK(d[i] == due, 82, #N ": generic put %d on a context", i);                                             \
        ROUND(shmem_put_signal(d, s, 1, signal_word, 1, SHMEM_SIGNAL_ADD, right);                                      \
              shmem_put_signal_nbi(&d[1], s, 1, signal_word, 1, SHMEM_SIGNAL_ADD, right);                              \
              shmem_put_signal(ctx, &d[2], s, 1, signal_word, 1, SHMEM_SIGNAL_ADD, right);                             \
              shmem_put_signal_nbi(ctx, &d[3], s, 1, signal_word, 1, SHMEM_SIGNAL_ADD, right));                        \
        signals += 4;                                                                                                  \
        CHECK(shmem_signal_fetch(signal_word) == signals, 46, #N ": %d signals", (int)*signal_word);                   \
        for (int i = 0; i < 4; i++)                                                                                    \
            CHECK(d[i] == due, 82, #N ": generic put_signal %d", i);                                                   \
        CHECK(shmem_g(s, right) == next && shmem_g(ctx, s, right) == next, 82, #N ": generic g");                      \
        shmem_get(&got[0], s, 1, right), shmem_get_nbi(&got[1], s, 1, right), shmem_iget(&got[2], s, 1, 1, 1, right);  \
        shmem_quiet();                                                                                                 \
        CHECK(got[0] == next && got[1] == next && got[2] == next, 82, #N ": generic get");                             \
        got[0] = got[1] = got[2] = 0;                                                                                  \
        shmem_get(ctx, &got[0], s, 1, right), shmem_get_nbi(ctx, &got[1], s, 1, right);                                \
        shmem_iget(ctx, &got[2], s, 1, 1, 1, right);                                                                   \
        shmem_ctx_quiet(ctx);                                                                                          \
        CHECK(got[0] == next && got[1] == next && got[2] == next, 82, #N ": generic get on a context");                \
        shmem_ibget(&got[0], s, 1, 1, 1, 1, right), shmem_ibget(ctx, &got[1], s, 1, 1, 1, 1, right);                   \
        CHECK(got[0] == next && got[1] == next, 82, #N ": generic ibget");                                             \
        shmem_barrier_all();                                                                                           \
    }

#define EXTENDED_AMO(N, T)                                                                                             \
    static void extended_amo_##N(void) {                                                                               \
        T *d = (T *)dest, a = VALUE(T, me), b = VALUE(T, me + 1000), f = 0, g = 0, h = 0, i = 0;                       \
        ROUND(shmem_atomic_set(d, a, right); shmem_atomic_set(ctx, &d[1], b, right));                                  \
        CHECK(shmem_atomic_fetch(d, right) == a && shmem_atomic_fetch(ctx, &d[1], right) == b, 82, #N ": fetch");      \
        CHECK(shmem_atomic_swap(d, b, right) == a && shmem_atomic_swap(ctx, d, a, right) == b, 82, #N ": swap");       \
        shmem_atomic_fetch_nbi(&f, d, right), shmem_atomic_fetch_nbi(ctx, &g, &d[1], right);                           \
        shmem_quiet(), shmem_ctx_quiet(ctx);                                                                           \
        CHECK(f == a && g == b, 82, #N ": fetch_nbi");                                                                 \
        shmem_atomic_swap_nbi(&h, d, b, right), shmem_quiet();                                                         \
        shmem_atomic_swap_nbi(ctx, &i, d, a, right), shmem_ctx_quiet(ctx);                                             \
        CHECK(h == a && i == b, 82, #N ": swap_nbi");                                                                  \
        shmem_barrier_all();                                                                                           \
    }

#define NBI(call)                                                                                                      \
    do {                                                                                                               \
        call;                                                                                                          \
        shmem_quiet();                                                                                                 \
        shmem_ctx_quiet(ctx);                                                                                          \
    } while (0)

#define AMO(N, T)                                                                                                      \
    static void amo_##N(void) {                                                                                        \
        T *d = (T *)dest, f = 0, a = (T)(VALUE(T, me) / 4);                                                            \
        ROUND(shmem_atomic_set(d, a, right));                                                                          \
        CHECK(shmem_atomic_compare_swap(d, a, 1, right) == a, 82, #N ": compare_swap");                                \
        CHECK(shmem_atomic_compare_swap(ctx, d, 1, 2, right) == 1, 82, #N ": compare_swap on a context");              \
        NBI(shmem_atomic_compare_swap_nbi(&f, d, 2, 3, right));                                                        \
        CHECK(f == 2, 82, #N ": compare_swap_nbi");                                                                    \
        NBI(shmem_atomic_compare_swap_nbi(ctx, &f, d, 3, a, right));                                                   \
        CHECK(f == 3, 82, #N ": compare_swap_nbi on a context");                                                       \
        CHECK(shmem_atomic_fetch_inc(d, right) == a, 82, #N ": fetch_inc");                                            \
        CHECK(shmem_atomic_fetch_inc(ctx, d, right) == (T)(a + 1), 82, #N ": fetch_inc on a context");                 \
        NBI(shmem_atomic_fetch_inc_nbi(&f, d, right));                                                                 \
        CHECK(f == (T)(a + 2), 82, #N ": fetch_inc_nbi");                                                              \
        NBI(shmem_atomic_fetch_inc_nbi(ctx, &f, d, right));                                                            \
        CHECK(f == (T)(a + 3), 82, #N ": fetch_inc_nbi on a context");                                                 \
        CHECK(shmem_atomic_fetch_add(d, 10, right) == (T)(a + 4), 82, #N ": fetch_add");                               \
        CHECK(shmem_atomic_fetch_add(ctx, d, 10, right) == (T)(a + 14), 82, #N ": fetch_add on a context");            \
        NBI(shmem_atomic_fetch_add_nbi(&f, d, 10, right));                                                             \
        CHECK(f == (T)(a + 24), 82, #N ": fetch_add_nbi");                                                             \
        NBI(shmem_atomic_fetch_add_nbi(ctx, &f, d, 10, right));                                                        \
        CHECK(f == (T)(a + 34), 82, #N ": fetch_add_nbi on a context");                                                \
        NBI(shmem_atomic_inc(d, right));                                                                               \
        NBI(shmem_atomic_inc(ctx, d, right));                                                                          \
        NBI(shmem_atomic_add(d, 4, right));                                                                            \
        NBI(shmem_atomic_add(ctx, d, 50, right));                                                                      \
        CHECK(shmem_atomic_fetch(d, right) == (T)(a + 100), 82, #N ": inc and add");                                   \
        shmem_barrier_all();                                                                                           \
    }

#define BITWISE_AMO(N, T)                                                                                              \
    static void bitwise_amo_##N(void) {                                                                                \
        T *d = (T *)dest, f = 0, a = VALUE(T, me), b = VALUE(T, me + 1);                                               \
        ROUND(shmem_atomic_set(d, a, right));                                                                          \
        CHECK(shmem_atomic_fetch_xor(d, b, right) == a, 82, #N ": fetch_xor");                                         \
        CHECK(shmem_atomic_fetch_xor(ctx, d, b, right) == (T)(a ^ b), 82, #N ": fetch_xor on a context");              \
        NBI(shmem_atomic_fetch_xor_nbi(&f, d, b, right));                                                              \
        CHECK(f == a, 82, #N ": fetch_xor_nbi");                                                                       \
        NBI(shmem_atomic_fetch_xor_nbi(ctx, &f, d, b, right));                                                         \
        CHECK(f == (T)(a ^ b), 82, #N ": fetch_xor_nbi on a context");                                                 \
        CHECK(shmem_atomic_fetch_or(d, 1, right) == a, 82, #N ": fetch_or");                                           \
        CHECK(shmem_atomic_fetch_or(ctx, d, 2, right) == (T)(a | 1), 82, #N ": fetch_or on a context");                \
        NBI(shmem_atomic_fetch_or_nbi(&f, d, 4, right));                                                               \
        CHECK(f == (T)(a | 3), 82, #N ": fetch_or_nbi");                                                               \
        NBI(shmem_atomic_fetch_or_nbi(ctx, &f, d, 8, right));                                                          \
        CHECK(f == (T)(a | 7), 82, #N ": fetch_or_nbi on a context");                                                  \
        CHECK(shmem_atomic_fetch_and(d, (T)~(T)1, right) == (T)(a | 15), 82, #N ": fetch_and");                        \
        CHECK(shmem_atomic_fetch_and(ctx, d, 14, right) == (T)((a | 15) ^ 1), 82, #N ": fetch_and on a context");      \
        NBI(shmem_atomic_fetch_and_nbi(&f, d, 12, right));                                                             \
        CHECK(f == 14, 82, #N ": fetch_and_nbi");                                                                      \
        NBI(shmem_atomic_fetch_and_nbi(ctx, &f, d, 8, right));                                                         \
        CHECK(f == 12, 82, #N ": fetch_and_nbi on a context");                                                         \
        NBI(shmem_atomic_or(d, 16, right));                                                                            \
        NBI(shmem_atomic_or(ctx, d, 32, right));                                                                       \
        NBI(shmem_atomic_xor(d, 1, right));                                                                            \
        NBI(shmem_atomic_xor(ctx, d, 2, right));                                                                       \
        CHECK(shmem_atomic_fetch(d, right) == 59, 82, #N ": or and xor");                                              \
        NBI(shmem_atomic_and(d, 57, right));                                                                           \
        NBI(shmem_atomic_and(ctx, d, 25, right));                                                                      \
        CHECK(shmem_atomic_fetch(d, right) == 25, 82, #N ": and");                                                     \
        shmem_barrier_all();                                                                                           \
    }

#define OLD_EXTENDED_AMO(N, T)                                                                                         \
    static void old_extended_amo_##N(void) {                                                                           \
        T *d = (T *)dest, a = VALUE(T, me), b = VALUE(T, me + 1);                                                      \
        ROUND(shmem_set(d, a, right));                                                                                 \
        CHECK(shmem_swap(d, b, right) == a && shmem_fetch(d, right) == b, 82, #N ": old generic names");               \
        shmem_barrier_all();                                                                                           \
    }
#define OLD_AMO(N, T)                                                                                                  \
    static void old_amo_##N(void) {                                                                                    \
        T *d = (T *)dest;                                                                                              \
        ROUND(shmem_set(d, 5, right));                                                                                 \
        CHECK(shmem_cswap(d, 5, 6, right) == 5 && shmem_fadd(d, 3, right) == 6 && shmem_finc(d, right) == 9, 82,       \
              #N ": old generic names");                                                                               \
        NBI(shmem_inc(d, right));                                                                                      \
        NBI(shmem_add(d, 9, right));                                                                                   \
        CHECK(shmem_fetch(d, right) == 20, 82, #N ": old generic inc and add");                                        \
        shmem_barrier_all();                                                                                           \
    }

#define WAIT(N, T)                                                                                                     \
    static void wait_##N(void) {                                                                                       \
        T *d = (T *)dest;                                                                                              \
        d[0] = 5;                                                                                                      \
        shmem_wait_until(d, SHMEM_CMP_EQ, 5);                                                                          \
        CHECK(shmem_test(d, SHMEM_CMP_LT, 6) && !shmem_test(d, SHMEM_CMP_GT, 5), 82, #N ": generic test");             \
    }
#define WAIT_SET(N, T)                                                                                                 \
    static void wait_set_##N(void) {                                                                                   \
        T *d = (T *)dest, vector[2] = {5, 7};                                                                          \
        size_t at[2];                                                                                                  \
        const int first[2] = {0, 1};                                                                                   \
        d[0] = 5, d[1] = 6;                                                                                            \
        shmem_wait_until_all(d, 2, NULL, SHMEM_CMP_GE, 5);                                                             \
        shmem_wait_until_all_vector(d, 2, NULL, SHMEM_CMP_LE, vector);                                                 \
        CHECK(shmem_wait_until_any(d, 2, NULL, SHMEM_CMP_EQ, 6) == 1, 82, #N ": generic wait_until_any");              \
        CHECK(shmem_wait_until_any_vector(d, 2, first, SHMEM_CMP_EQ, vector) == 0, 82, #N ": wait_until_any_vector");  \
        CHECK(shmem_wait_until_some(d, 2, at, NULL, SHMEM_CMP_EQ, 6) == 1 && at[0] == 1, 82, #N ": wait_until_some");  \
        CHECK(shmem_wait_until_some_vector(d, 2, at, NULL, SHMEM_CMP_EQ, vector) == 1 && at[0] == 0, 82,               \
              #N ": wait_until_some_vector");                                                                          \
        CHECK(shmem_test_all(d, 2, NULL, SHMEM_CMP_GE, 6) == 0, 82, #N ": test_all");                                  \
        CHECK(shmem_test_all_vector(d, 2, first, SHMEM_CMP_EQ, vector) == 1, 82, #N ": test_all_vector");              \
        CHECK(shmem_test_any(d, 2, NULL, SHMEM_CMP_LT, 5) == SIZE_MAX, 82, #N ": test_any");                           \
        CHECK(shmem_test_any_vector(d, 2, NULL, SHMEM_CMP_LT, vector) == 1, 82, #N ": test_any_vector");               \
        CHECK(shmem_test_some(d, 2, at, NULL, SHMEM_CMP_NE, 5) == 1 && at[0] == 1, 82, #N ": test_some");              \
        CHECK(shmem_test_some_vector(d, 2, at, NULL, SHMEM_CMP_NE, vector) == 1 && at[0] == 1, 82,                     \
              #N ": test_some_vector");                                                                                \
    }

#define MOVE(N, T)                                                                                                     \
    static void move_##N(void) {                                                                                       \
        T *d = (T *)dest, *s = (T *)source;                                                                            \
        for (int i = 0; i < check_n; i++)                                                                              \
            s[i] = VALUE(T, me);                                                                                       \
        ROUND(CHECK(shmem_broadcast(SHMEM_TEAM_WORLD, d, s, 1, 0) == 0, 53, #N ": generic broadcast"));                \
        CHECK(d[0] == VALUE(T, 0), 82, #N ": generic broadcast");                                                      \
        ROUND(shmem_collect(SHMEM_TEAM_WORLD, d, s, 1));                                                               \
        CHECK(d[right] == VALUE(T, right), 82, #N ": generic collect");                                                \
        ROUND(shmem_fcollect(SHMEM_TEAM_WORLD, d, s, 1));                                                              \
        CHECK(d[right] == VALUE(T, right), 82, #N ": generic fcollect");                                               \
        ROUND(shmem_alltoall(SHMEM_TEAM_WORLD, d, s, 1));                                                              \
        CHECK(d[left] == VALUE(T, left), 82, #N ": generic alltoall");                                                 \
        ROUND(shmem_alltoalls(SHMEM_TEAM_WORLD, d, s, 1, 1, 1));                                                       \
        CHECK(d[left] == VALUE(T, left), 82, #N ": generic alltoalls");                                                \
    }

#define ORDER(N, T)                                                                                                    \
    static void order_##N(void) {                                                                                      \
        T *d = (T *)dest, *s = (T *)source, highest = VALUE(T, 0), lowest = VALUE(T, 0);                               \
        for (int pe = 0; pe < check_n; pe++) {                                                                         \
            highest = VALUE(T, pe) > highest ? VALUE(T, pe) : highest;                                                 \
            lowest = VALUE(T, pe) < lowest ? VALUE(T, pe) : lowest;                                                    \
        }                                                                                                              \
        s[0] = VALUE(T, me);                                                                                           \
        ROUND(shmem_max_reduce(SHMEM_TEAM_WORLD, d, s, 1); shmem_min_reduce(SHMEM_TEAM_WORLD, d + 1, s, 1));           \
        CHECK(d[0] == highest && d[1] == lowest, 82, #N ": generic max and min");                                      \
    }
#define SUM(N, T)                                                                                                      \
    static void sum_##N(void) {                                                                                        \
        T *d = (T *)dest, *s = (T *)source;                                                                            \
        s[0] = me % 2 ? 1 : 2, s[1] = 1;                                                                               \
        ROUND(shmem_sum_reduce(SHMEM_TEAM_WORLD, d, s, 1); shmem_prod_reduce(SHMEM_TEAM_WORLD, d + 1, s + 1, 1);       \
              shmem_sum_inscan(SHMEM_TEAM_WORLD, d + 2, s, 1); shmem_sum_exscan(SHMEM_TEAM_WORLD, d + 3, s, 1));       \
        CHECK(d[0] == (T)(check_n + (check_n + 1) / 2) && d[1] == (T)1, 82, #N ": generic sum and prod");              \
        CHECK(d[2] == (T)(me + 1 + me / 2 + 1) && d[3] == (T)(me + (me + 1) / 2), 82, #N ": generic scans");           \
    }
#define BITS(N, T)                                                                                                     \
    static void bits_##N(void) {                                                                                       \
        T *d = (T *)dest, *s = (T *)source, all = (T)~(T)0, any = 0, odd = 0;                                          \
        for (int pe = 0; pe < check_n; pe++)                                                                           \
            all &= VALUE(T, pe), any |= VALUE(T, pe), odd ^= VALUE(T, pe);                                             \
        s[0] = VALUE(T, me);                                                                                           \
        ROUND(shmem_and_reduce(SHMEM_TEAM_WORLD, d, s, 1); shmem_or_reduce(SHMEM_TEAM_WORLD, d + 1, s, 1);             \
              shmem_xor_reduce(SHMEM_TEAM_WORLD, d + 2, s, 1));                                                        \
        CHECK(d[0] == all && d[1] == any && d[2] == odd, 82, #N ": generic and, or and xor");                          \
    }

RMA_TYPES(RMA)
EXTENDED_AMO_TYPES(EXTENDED_AMO)
AMO_TYPES(AMO)
BITWISE_AMO_TYPES(BITWISE_AMO)
OLD_EXTENDED_AMO_TYPES(OLD_EXTENDED_AMO)
OLD_AMO_TYPES(OLD_AMO)
WAIT_TYPES(WAIT)
AMO_TYPES(WAIT_SET)
RMA_TYPES(MOVE)
RMA_TYPES(ORDER)
SUM_TYPES(SUM)
TEAM_BITWISE_TYPES(BITS)

/* Point 64: one name, two shapes: a team, or a triplet and a pSync. */
static void sync_and_signals(void) {
    static long sync_array[SHMEM_SYNC_SIZE];
    for (int i = 0; i < SHMEM_SYNC_SIZE; i++)
        sync_array[i] = SHMEM_SYNC_VALUE;
    shmem_barrier_all();
    shmem_sync(SHMEM_TEAM_WORLD);
    shmem_sync(0, 0, check_n, sync_array);
    shmem_sync(SHMEM_TEAM_WORLD);
    shmem_barrier_all();
    uint64_t before = *signal_word;
    shmem_barrier_all();
    shmem_signal_add(signal_word, 3, right);
    shmem_signal_add(ctx, signal_word, 4, right);
    shmem_ctx_quiet(ctx);
    CHECK(shmem_signal_wait_until(signal_word, SHMEM_CMP_GE, before + 7) == before + 7, 46, "generic signal_add");
    shmem_barrier_all();
    shmem_signal_set(signal_word, 1, right);
    shmem_quiet();
    shmem_signal_set(ctx, signal_word, 2, right);
    shmem_ctx_quiet(ctx);
    shmem_barrier_all();
    CHECK(shmem_signal_fetch(signal_word) == 2, 46, "generic signal_set");
}

int main(void) {
    check_begin();
    me = check_me;
    right = (me + 1) % check_n;
    left = (me + check_n - 1) % check_n;
    dest = (unsigned char *)shmem_calloc(ROOM, 1);
    source = (unsigned char *)shmem_calloc(ROOM, 1);
    signal_word = (uint64_t *)shmem_calloc(1, sizeof *signal_word);
    CHECK(shmem_ctx_create(0, &ctx) == 0, 20, "no context can be had");
#define RUN_RMA(N, T) rma_##N(), move_##N(), order_##N();
#define RUN_EXTENDED_AMO(N, T) extended_amo_##N();
#define RUN_AMO(N, T) amo_##N(), wait_set_##N();
#define RUN_BITWISE_AMO(N, T) bitwise_amo_##N();
#define RUN_OLD_EXTENDED_AMO(N, T) old_extended_amo_##N();
#define RUN_OLD_AMO(N, T) old_amo_##N();
#define RUN_WAIT(N, T) wait_##N();
#define RUN_SUM(N, T) sum_##N();
#define RUN_BITS(N, T) bits_##N();
    RMA_TYPES(RUN_RMA)
    EXTENDED_AMO_TYPES(RUN_EXTENDED_AMO)
    AMO_TYPES(RUN_AMO)
    BITWISE_AMO_TYPES(RUN_BITWISE_AMO)
    OLD_EXTENDED_AMO_TYPES(RUN_OLD_EXTENDED_AMO)
    OLD_AMO_TYPES(RUN_OLD_AMO)
    WAIT_TYPES(RUN_WAIT)
    SUM_TYPES(RUN_SUM)
    TEAM_BITWISE_TYPES(RUN_BITS)
    sync_and_signals();
    shmem_ctx_destroy(ctx);
    shmem_free(signal_word);
    shmem_free(source);
    shmem_free(dest);
    return check_end();
}
