/* Inclusive and exclusive scans on teams, of 26 types, in place and not. */
#include "members.h"
#include "types.h"
#include <complex.h>

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

static void every_type(struct members m) {
#define RUN(N, T) scan_##N(m);
    if (members_me(m) >= 0) {
        TEAM_SUM_TYPES(RUN)
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
    dest = check_malloc(16 * (COUNT + 1));
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
