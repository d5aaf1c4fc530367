/* Inclusive and exclusive scans on teams, of 26 types, in place and not, and those of the other
 * operators. */
#include <math.h>
#include <shmemx.h>

#include "members.h"
#include "operators.h"
#include "types.h"

enum { COUNT = 4, EMPTY = 0xEE };

static unsigned char *source, *dest;

#define GIVEN(T, pe, i) ((T)(((pe) * 3 + (i)) % 7))

#define SCAN(N, T)                                                                                                     \
    static void scan_##N(struct members m) {                                                                           \
        T *d = (T *)dest, *s = (T *)source, before[COUNT] = {0};                                                       \
        int me = members_me(m);                                                                                        \
        for (int i = 0; i < COUNT; i++) {                                                                              \
            s[i] = GIVEN(T, check_me, i);                                                                              \
            for (int k = 0; k < me; k++)                                                                               \
                before[i] = (T)(before[i] + GIVEN(T, m.world[k], i));                                                  \
        }                                                                                                              \
        for (int in_place = 0; in_place < 2; in_place++) {                                                             \
            memset(dest, EMPTY, (COUNT + 1) * sizeof(T));                                                              \
            for (int i = 0; i < COUNT; i++)                                                                            \
                s[i] = GIVEN(T, check_me, i);                                                                          \
            T *to = in_place ? s : d;                                                                                  \
            shmem_team_sync(m.team);                                                                                   \
            CHECK(shmem_##N##_sum_inscan(m.team, to, s, COUNT) == 0, 53, #N "_sum_inscan failed");                     \
            for (int i = 0; i < COUNT; i++)                                                                            \
                CHECK(to[i] == (T)(before[i] + GIVEN(T, check_me, i)), in_place ? 58 : 61,                             \
                      #N "_sum_inscan on PE %d of %d: element %d differs", me, m.size, i);                             \
            CHECK(check_constant(d + COUNT, sizeof(T), EMPTY) < 0, 61, #N "_sum_inscan wrote behind its end");         \
            for (int i = 0; i < COUNT; i++)                                                                            \
                s[i] = GIVEN(T, check_me, i);                                                                          \
            shmem_team_sync(m.team);                                                                                   \
            CHECK(shmem_##N##_sum_exscan(m.team, to, s, COUNT) == 0, 53, #N "_sum_exscan failed");                     \
            for (int i = 0; i < COUNT; i++)                                                                            \
                CHECK(to[i] == before[i], in_place ? 58 : 61, #N "_sum_exscan on PE %d of %d: element %d differs", me, \
                      m.size, i);                                                                                      \
            CHECK(check_constant(d + COUNT, sizeof(T), EMPTY) < 0, 61, #N "_sum_exscan wrote behind its end");         \
            shmem_team_sync(m.team);                                                                                   \
        }                                                                                                              \
        CHECK(shmem_##N##_sum_inscan(m.team, NULL, NULL, 0) == 0, 29, #N "_sum_inscan of nothing");                    \
        CHECK(shmem_##N##_sum_exscan(m.team, d, s, 0) == 0, 29, #N "_sum_exscan of nothing");                          \
    }

TEAM_SUM_TYPES(SCAN)

/* Scans of another operator. `START` is what the first PE of an exclusive scan gets. */
#define SCAN_OF(N, T, OP, COMBINE, GIVEN_BY, START)                                                                    \
    static void OP##_scan_##N(struct members m) {                                                                      \
        T *d = (T *)dest, *s = (T *)source, *e = d + COUNT;                                                            \
        int me = members_me(m);                                                                                        \
        for (int i = 0; i < COUNT; i++)                                                                                \
            s[i] = GIVEN_BY(T, check_me, i);                                                                           \
        memset(dest, EMPTY, (2 * COUNT + 1) * sizeof(T));                                                              \
        shmem_team_sync(m.team);                                                                                       \
        CHECK(shmemx_##N##_##OP##_inscan(m.team, d, s, COUNT) == 0, 53, #N "_" #OP "_inscan failed");                  \
        CHECK(shmemx_##N##_##OP##_exscan(m.team, e, s, COUNT) == 0, 53, #N "_" #OP "_exscan failed");                  \
        for (int i = 0; i < COUNT; i++) {                                                                              \
            T before = START;                                                                                          \
            for (int k = 0; k < me; k++)                                                                               \
                before = k ? (T)COMBINE(before, GIVEN_BY(T, m.world[k], i)) : GIVEN_BY(T, m.world[k], i);              \
            CHECK(e[i] == before, 61, #N "_" #OP "_exscan on PE %d of %d: element %d differs", me, m.size, i);         \
            T with_own = me ? (T)COMBINE(before, GIVEN_BY(T, check_me, i)) : GIVEN_BY(T, check_me, i);                 \
            CHECK(d[i] == with_own, 61, #N "_" #OP "_inscan on PE %d of %d: element %d differs", me, m.size, i);       \
        }                                                                                                              \
        CHECK(check_constant(e + COUNT, sizeof(T), EMPTY) < 0, 61, #N "_" #OP "_exscan wrote behind its end");         \
        shmem_team_sync(m.team);                                                                                       \
    }

/* The limits of a type of integers, and of floating-point numbers. */
#define IS_SIGNED(T) ((T)-1 < (T)1)
#define LEAST(T) ((T)(IS_SIGNED(T) ? (uint64_t)1 << (8 * sizeof(T) - 1) : 0))
#define GREATEST(T) ((T)~LEAST(T))
#define ORDER_SCANS(N, T)                                                                                              \
    SCAN_OF(N, T, max, MAX_OF, WORD_OF, LEAST(T)) SCAN_OF(N, T, min, MIN_OF, WORD_OF, GREATEST(T))
#define REAL_SCANS(N, T)                                                                                               \
    SCAN_OF(N, T, max, MAX_OF, WORD_OF, (T)-INFINITY) SCAN_OF(N, T, min, MIN_OF, WORD_OF, (T)INFINITY)
#define PROD_SCAN(N, T) SCAN_OF(N, T, prod, PROD_OF, FACTOR_OF, 1)
#define COMPLEX_PROD_SCAN(N, T) SCAN_OF(N, T, prod, PROD_OF, COMPLEX_FACTOR_OF, 1)

SIGNED_TYPES(ORDER_SCANS)
TEAM_BITWISE_TYPES(ORDER_SCANS)
FLOATING_TYPES(REAL_SCANS)
RMA_TYPES(PROD_SCAN)
COMPLEX_TYPES(COMPLEX_PROD_SCAN)

static void every_type(struct members m) {
#define RUN(N, T) scan_##N(m), prod_scan_##N(m);
#define RUN_ORDER(N, T) max_scan_##N(m), min_scan_##N(m);
    if (members_me(m) >= 0) {
        TEAM_SUM_TYPES(RUN)
        RMA_TYPES(RUN_ORDER)
    }
    shmem_barrier_all();
}

/* A long scan, and a loop of short ones, each of which uses the result of the one before. */
static void large_and_chained(struct members m) {
    enum { LARGE = 50001, TURNS = 100 };
    long *from = check_malloc(LARGE * sizeof *from), *to = check_malloc(LARGE * sizeof *to);
    int me = members_me(m);
    for (int i = 0; i < LARGE; i++)
        from[i] = i + me;
    shmem_barrier_all();
    if (me >= 0) {
        shmem_long_sum_inscan(m.team, to, from, LARGE);
        long wrong = 0;
        for (int i = 0; i < LARGE; i++)
            wrong += to[i] != (long)(me + 1) * i + (long)me * (me + 1) / 2;
        CHECK(wrong == 0, 61, "a scan of %d: %ld differ", LARGE, wrong);
        shmem_team_sync(m.team);
        for (int turn = 1; turn <= TURNS; turn++) {
            from[0] = turn;
            shmem_long_sum_exscan(m.team, &to[turn], from, 1);
            CHECK(to[turn] == (long)turn * me, 61, "scan %d of a loop gave %ld", turn, to[turn]);
        }
    }
    shmem_barrier_all();
    shmem_free(to);
    shmem_free(from);
}

int main(void) {
    check_begin();
    members_begin();
    source = check_malloc(16 * (COUNT + 1));
    dest = check_malloc(16 * (2 * COUNT + 1));
    struct shapes shapes = shapes_begin();
    every_type(shapes.world);
    every_type(shapes.reversed);
    every_type(shapes.odd);
    large_and_chained(shapes.world);
    large_and_chained(shapes.reversed);
    shapes_end(shapes);
    shmem_free(dest);
    shmem_free(source);
    members_end();
    return check_end();
}
