/* Reductions to a root and reduce-scatters: every operator with each of its types, the first in
 * place and not, from each root, and lengths around those at which algorithms change. */
#include <shmemx.h>

#include "members.h"
#include "operators.h"
#include "types.h"

enum { COUNT = 5, EMPTY = 0xEE };

static unsigned char *source, *dest;

#define COMBINED(T, COMBINE, GIVEN, m, i)                                                                              \
    T due = GIVEN(T, m.world[0], i);                                                                                   \
    for (int k = 1; k < m.size; k++)                                                                                   \
        due = (T)COMBINE(due, GIVEN(T, m.world[k], i));

#define REDUCE(N, T, OP, COMBINE, GIVEN)                                                                               \
    static void OP##_to_##N(struct members m, int root, int in_place) {                                                \
        T *s = (T *)source, *d = in_place ? s : (T *)dest;                                                             \
        memset(dest, EMPTY, (COUNT + 1) * sizeof(T));                                                                  \
        for (int i = 0; i < COUNT; i++)                                                                                \
            s[i] = GIVEN(T, check_me, i);                                                                              \
        shmem_team_sync(m.team);                                                                                       \
        CHECK(shmemx_##N##_##OP##_reduce_to(m.team, d, s, COUNT, root) == 0, 53, #N "_" #OP "_reduce_to failed");      \
        for (int i = 0; i < COUNT && members_me(m) == root; i++) {                                                     \
            COMBINED(T, COMBINE, GIVEN, m, i)                                                                          \
            CHECK(d[i] == due, 59, #N "_" #OP "_reduce_to over %d PEs: element %d differs", m.size, i);                \
        }                                                                                                              \
        for (int i = 0; i < COUNT && (members_me(m) != root || !in_place); i++)                                        \
            CHECK(s[i] == GIVEN(T, check_me, i), 59, #N "_" #OP "_reduce_to changed its source");                      \
        int written = members_me(m) == root && !in_place ? COUNT : 0;                                                  \
        CHECK(check_constant((T *)dest + written, sizeof(T), EMPTY) < 0, 59, #N "_" #OP "_reduce_to wrote more");      \
        CHECK(shmemx_##N##_##OP##_reduce_to(m.team, d, s, 0, root) == 0, 29, #N "_" #OP "_reduce_to of nothing");      \
        shmem_team_sync(m.team);                                                                                       \
    }                                                                                                                  \
    static void OP##_##N(struct members m) {                                                                           \
        for (int in_place = 0; in_place < 2; in_place++)                                                               \
            for (int root = 0; root < m.size; root += m.size > 1 ? m.size - 1 : 1)                                     \
                OP##_to_##N(m, root, in_place);                                                                        \
        T *d = (T *)dest, *s = (T *)source;                                                                            \
        int first = members_me(m) * COUNT;                                                                             \
        for (int i = 0; i < m.size * COUNT; i++)                                                                       \
            s[i] = GIVEN(T, check_me, i);                                                                              \
        memset(dest, EMPTY, (COUNT + 1) * sizeof(T));                                                                  \
        shmem_team_sync(m.team);                                                                                       \
        CHECK(shmemx_##N##_##OP##_reduce_scatter(m.team, d, s, COUNT) == 0, 53, #N "_" #OP "_reduce_scatter failed");  \
        for (int i = 0; i < COUNT; i++) {                                                                              \
            COMBINED(T, COMBINE, GIVEN, m, first + i)                                                                  \
            CHECK(d[i] == due, 59, #N "_" #OP "_reduce_scatter over %d PEs: element %d differs", m.size, i);           \
        }                                                                                                              \
        for (int i = 0; i < m.size * COUNT; i++)                                                                       \
            CHECK(s[i] == GIVEN(T, check_me, i), 59, #N "_" #OP "_reduce_scatter changed its source");                 \
        CHECK(check_constant(d + COUNT, sizeof(T), EMPTY) < 0, 59, #N "_" #OP "_reduce_scatter wrote more");           \
        CHECK(shmemx_##N##_##OP##_reduce_scatter(m.team, NULL, NULL, 0) == 0, 29, #N "_" #OP "_reduce_scatter of 0");  \
        shmem_team_sync(m.team);                                                                                       \
    }

#define ALL_BITS(N, T)                                                                                                 \
    REDUCE(N, T, and, AND_OF, WORD_OF) REDUCE(N, T, or, OR_OF, WORD_OF) REDUCE(N, T, xor, XOR_OF, WORD_OF)
#define ALL_ORDER(N, T) REDUCE(N, T, max, MAX_OF, WORD_OF) REDUCE(N, T, min, MIN_OF, WORD_OF)
#define ALL_REAL(N, T) REDUCE(N, T, sum, SUM_OF, SUMMAND_OF) REDUCE(N, T, prod, PROD_OF, FACTOR_OF)
#define ALL_COMPLEX(N, T) REDUCE(N, T, sum, SUM_OF, COMPLEX_SUMMAND_OF) REDUCE(N, T, prod, PROD_OF, COMPLEX_FACTOR_OF)

TEAM_BITWISE_TYPES(ALL_BITS)
RMA_TYPES(ALL_ORDER)
RMA_TYPES(ALL_REAL)
COMPLEX_TYPES(ALL_COMPLEX)

static void every_type(struct members m) {
    if (members_me(m) < 0)
        return;
#define RUN_BITS(N, T) and_##N(m), or_##N(m), xor_##N(m);
#define RUN_ORDER(N, T) max_##N(m), min_##N(m);
#define RUN_SUM(N, T) sum_##N(m), prod_##N(m);
    TEAM_BITWISE_TYPES(RUN_BITS)
    RMA_TYPES(RUN_ORDER)
    TEAM_SUM_TYPES(RUN_SUM)
}

/* Each element depends on its index and on every PE. The calls of one length follow one another
 * without a sync, each with a destination of its own. */
static void lengths(struct members m) {
    static const size_t all[] = {1, 2, 8, 63, 129, 1025, 4097, 30011};
    enum { LARGEST = 30011 };
    int me = members_me(m);
    long *from = check_malloc((size_t)m.size * LARGEST * sizeof *from);
    long *first = check_malloc(LARGEST * sizeof *first), *last = check_malloc(LARGEST * sizeof *last);
    long *block = check_malloc(LARGEST * sizeof *block);
    long pes = 0;
    for (int i = 0; i < m.size; i++)
        pes += m.world[i];
    shmem_barrier_all();
    for (size_t k = 0; k < sizeof all / sizeof *all && me >= 0; k++) {
        size_t n = all[k], wrong = 0;
        for (size_t i = 0; i < n * (size_t)m.size; i++)
            from[i] = (long)i * 3 + check_me;
        for (size_t i = 0; i < n; i++)
            first[i] = last[i] = block[i] = -1;
        shmem_team_sync(m.team);
        CHECK(shmemx_sum_reduce_to(m.team, first, from, n, 0) == 0, 53, "a sum of %zu to the first", n);
        CHECK(shmemx_sum_reduce_scatter(m.team, block, from, n) == 0, 53, "a reduce-scatter of %zu", n);
        CHECK(shmemx_sum_reduce_to(m.team, last, from, n, m.size - 1) == 0, 53, "a sum of %zu to the last", n);
        for (size_t i = 0; i < n; i++) {
            long due = (long)i * 3 * m.size + pes;
            wrong += first[i] != (me == 0 ? due : -1);
            wrong += last[i] != (me == m.size - 1 ? due : -1);
            wrong += block[i] != due + (long)me * (long)n * 3 * m.size;
        }
        CHECK(wrong == 0, 59, "sums of %zu over %d PEs: %zu differ", n, m.size, wrong);
    }
    shmem_barrier_all();
    shmem_free(block);
    shmem_free(last);
    shmem_free(first);
    shmem_free(from);
}

int main(void) {
    check_begin();
    members_begin();
    source = check_malloc(16 * COUNT * (size_t)check_n);
    dest = check_malloc(16 * (COUNT + 1));
    struct shapes shapes = shapes_begin();
    every_type(shapes.world);
    shmem_barrier_all();
    every_type(shapes.reversed);
    shmem_barrier_all();
    every_type(shapes.odd);
    shmem_barrier_all();
    lengths(shapes.world);
    lengths(shapes.reversed);
    lengths(shapes.odd);
    shapes_end(shapes);
    shmem_free(dest);
    shmem_free(source);
    members_end();
    return check_end();
}
