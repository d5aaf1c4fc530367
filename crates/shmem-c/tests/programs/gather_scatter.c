/* Gather and scatter: every type, each root, no, few and many elements, calls that follow one
 * another without a sync. */
#include <shmemx.h>

#include "members.h"
#include "types.h"

enum { COUNT = 5, EMPTY = 0xEE, LARGEST = 20011 };

static unsigned char *source, *dest;

#define VALUE_OF(T, pe, i) VALUE(T, 37 * (pe) + (i))

#define MOVE(N, T)                                                                                                     \
    static void moved_##N(struct members m, int root) {                                                                \
        T *s = (T *)source, *d = (T *)dest;                                                                            \
        int me = members_me(m), n = m.size * COUNT;                                                                    \
        for (int i = 0; i < n; i++)                                                                                    \
            s[i] = VALUE_OF(T, check_me, i);                                                                           \
        memset(dest, EMPTY, (size_t)(n + 1) * sizeof(T));                                                              \
        shmem_team_sync(m.team);                                                                                       \
        CHECK(shmemx_##N##_gather(m.team, d, s, COUNT, root) == 0, 53, #N "_gather failed");                           \
        for (int i = 0; i < n && me == root; i++)                                                                      \
            CHECK(d[i] == VALUE_OF(T, m.world[i / COUNT], i % COUNT), 60, #N "_gather: element %d differs", i);        \
        int written = me == root ? n : 0;                                                                              \
        CHECK(check_constant(d + written, sizeof(T), EMPTY) < 0, 60, #N "_gather wrote more");                         \
        memset(dest, EMPTY, (size_t)(n + 1) * sizeof(T));                                                              \
        shmem_team_sync(m.team);                                                                                       \
        CHECK(shmemx_##N##_scatter(m.team, d, s, COUNT, root) == 0, 53, #N "_scatter failed");                         \
        for (int i = 0; i < COUNT; i++)                                                                                \
            CHECK(d[i] == VALUE_OF(T, m.world[root], me * COUNT + i), 60, #N "_scatter: element %d differs", i);       \
        CHECK(check_constant(d + COUNT, sizeof(T), EMPTY) < 0, 60, #N "_scatter wrote more");                          \
        for (int i = 0; i < n; i++)                                                                                    \
            CHECK(s[i] == VALUE_OF(T, check_me, i), 60, #N ": the source has changed");                                \
        CHECK(shmemx_##N##_gather(m.team, NULL, NULL, 0, root) == 0, 29, #N "_gather of nothing");                     \
        CHECK(shmemx_##N##_scatter(m.team, d, s, 0, root) == 0, 29, #N "_scatter of nothing");                         \
        shmem_team_sync(m.team);                                                                                       \
    }

RMA_TYPES(MOVE)

static void every_type(struct members m) {
    for (int root = 0; root < m.size && members_me(m) >= 0; root += m.size > 1 ? m.size - 1 : 1) {
#define RUN(N, T) moved_##N(m, root);
        RMA_TYPES(RUN)
    }
    shmem_barrier_all();
}

/* From every root to the next one, and back, through one block; each call has its own arrays. */
static void lengths(struct members m) {
    static const size_t all[] = {1, 7, 64, 1025, LARGEST};
    int me = members_me(m);
    size_t room = (size_t)m.size * LARGEST;
    long *from = check_malloc(room * sizeof *from), *to = check_malloc(room * sizeof *to);
    long *block = check_malloc(LARGEST * sizeof *block);
    shmem_barrier_all();
    for (size_t k = 0; k < sizeof all / sizeof *all && me >= 0; k++)
        for (int root = 0; root < m.size; root++) {
            size_t n = all[k], wrong = 0;
            for (size_t i = 0; i < n * (size_t)m.size; i++)
                from[i] = (long)i * 3 + check_me, to[i] = -1;
            int next = (root + 1) % m.size;
            shmem_team_sync(m.team);
            CHECK(shmemx_scattermem(m.team, block, from, n * sizeof(long), root) == 0, 53, "a scatter of %zu", n);
            CHECK(shmemx_gather(m.team, to, block, n, next) == 0, 53, "a gather of %zu", n);
            for (size_t i = 0; i < n * (size_t)m.size; i++)
                wrong += to[i] != (me == next ? (long)i * 3 + m.world[root] : -1);
            CHECK(wrong == 0, 60, "%zu from PE %d to PE %d of %d: %zu differ", n, root, next, m.size, wrong);
            shmem_team_sync(m.team);
        }
    shmem_barrier_all();
    shmem_free(block);
    shmem_free(to);
    shmem_free(from);
}

int main(void) {
    check_begin();
    members_begin();
    source = check_malloc(16 * COUNT * (size_t)check_n);
    dest = check_malloc(16 * (COUNT * (size_t)check_n + 1));
    struct shapes shapes = shapes_begin();
    every_type(shapes.world);
    every_type(shapes.reversed);
    every_type(shapes.odd);
    lengths(shapes.world);
    lengths(shapes.reversed);
    lengths(shapes.odd);
    shapes_end(shapes);
    shmem_free(dest);
    shmem_free(source);
    members_end();
    return check_end();
}
