/* Team reductions: every operator with each of its types, in place and not, odd lengths, and more
 * than 1 MiB. */
#include "members.h"
#include "operators.h"
#include "types.h"

enum { COUNT = 5, EMPTY = 0xEE };

static unsigned char *source, *dest;

#define REDUCE(N, T, OP, COMBINE, GIVEN)                                                                               \
    static void OP##_##N(struct members m) {                                                                           \
        T *d = (T *)dest, *s = (T *)source, due[COUNT];                                                                \
        for (int i = 0; i < COUNT; i++) {                                                                              \
            s[i] = GIVEN(T, check_me, i);                                                                              \
            due[i] = GIVEN(T, m.world[0], i);                                                                          \
            for (int k = 1; k < m.size; k++)                                                                           \
                due[i] = (T)COMBINE(due[i], GIVEN(T, m.world[k], i));                                                  \
        }                                                                                                              \
        memset(dest, EMPTY, (COUNT + 1) * sizeof(T));                                                                  \
        shmem_team_sync(m.team);                                                                                       \
        CHECK(shmem_##N##_##OP##_reduce(m.team, d, s, COUNT) == 0, 53, #N "_" #OP "_reduce failed");                   \
        for (int i = 0; i < COUNT; i++) {                                                                              \
            CHECK(d[i] == due[i], 59, #N "_" #OP "_reduce over %d PEs: element %d differs", m.size, i);                \
            CHECK(s[i] == GIVEN(T, check_me, i), 59, #N "_" #OP "_reduce changed its source");                         \
        }                                                                                                              \
        CHECK(check_constant(d + COUNT, sizeof(T), EMPTY) < 0, 59, #N "_" #OP "_reduce wrote behind its end");         \
        shmem_team_sync(m.team);                                                                                       \
        CHECK(shmem_##N##_##OP##_reduce(m.team, s, s, COUNT) == 0, 53, #N "_" #OP "_reduce in place failed");          \
        for (int i = 0; i < COUNT; i++)                                                                                \
            CHECK(s[i] == due[i], 58, #N "_" #OP "_reduce in place over %d PEs: element %d differs", m.size, i);       \
        CHECK(shmem_##N##_##OP##_reduce(m.team, NULL, NULL, 0) == 0, 29, #N "_" #OP "_reduce of nothing");             \
        CHECK(shmem_##N##_##OP##_reduce(m.team, d, s, 0) == 0 && d[0] == due[0], 29, #N "_" #OP "_reduce of nothing"); \
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

/* Lengths around those at which algorithms change, up to more than 1 MiB. Each element depends on
 * its index and on every PE. */
static void lengths(struct members m) {
    static const size_t all[] = {1, 2, 7, 8, 9, 63, 64, 65, 511, 513, 4095, 4097, 30011, (1 << 17) + 3};
    enum { LARGEST = (1 << 17) + 3 };
    long *from = check_malloc(LARGEST * sizeof *from), *to = check_malloc(LARGEST * sizeof *to);
    double *reals = check_malloc(LARGEST * sizeof *reals);
    shmem_barrier_all();
    for (size_t k = 0; k < sizeof all / sizeof *all && members_me(m) >= 0; k++) {
        size_t n = all[k], wrong = 0;
        long pes = 0, highest = 0;
        for (int i = 0; i < m.size; i++)
            pes += m.world[i], highest = MAX_OF(highest, m.world[i]);
        for (size_t i = 0; i < n; i++)
            from[i] = (long)i * 3 + check_me, reals[i] = (double)i / 4 - check_me, to[i] = -1;
        shmem_team_sync(m.team);
        CHECK(shmem_long_sum_reduce(m.team, to, from, n) == 0, 53, "a sum of %zu", n);
        for (size_t i = 0; i < n; i++)
            wrong += to[i] != (long)i * 3 * m.size + pes;
        CHECK(wrong == 0, 59, "a sum of %zu over %d PEs: %zu differ", n, m.size, wrong);
        CHECK(shmem_double_min_reduce(m.team, reals, reals, n) == 0, 53, "a minimum of %zu in place", n);
        wrong = 0;
        for (size_t i = 0; i < n; i++)
            wrong += reals[i] != (double)i / 4 - highest;
        CHECK(wrong == 0, 58, "a minimum of %zu in place over %d PEs: %zu differ", n, m.size, wrong);
        shmem_team_sync(m.team);
    }
    shmem_barrier_all();
    shmem_free(reals);
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
    lengths(shapes.world);
    lengths(shapes.odd);
    shapes_end(shapes);
    shmem_free(dest);
    shmem_free(source);
    members_end();
    return check_end();
}
