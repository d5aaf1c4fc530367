/* The deprecated collectives on active sets: every routine, strided sets, pSync and pWrk in static
 * data and on the heap, and two pairs of them alternately. */
#include "members.h"
#include "operators.h"
#include "types.h"

enum { COUNT = 5, EMPTY = 0xEE, DST = 2, SST = 3 };

/* The standard's size of pWrk, in elements. */
#define WORK_ELEMENTS(n) ((n) / 2 + 1 > SHMEM_REDUCE_MIN_WRKDATA_SIZE ? (n) / 2 + 1 : SHMEM_REDUCE_MIN_WRKDATA_SIZE)

enum { SYNCS = 4, BYTES_OF_WORK = 16 * (COUNT + SHMEM_REDUCE_MIN_WRKDATA_SIZE) };

static long static_sync[SYNCS][SHMEM_SYNC_SIZE];
static _Alignas(16) unsigned char static_work[2][BYTES_OF_WORK];
static long *sync_of[SYNCS];
static unsigned char *work_of[2];

static unsigned char *source, *given, *dest, *model;
static size_t room;
static long calls;

struct set {
    int start, log_stride, size;
};

static int index_in(struct set s) {
    int distance = check_me - s.start, stride = 1 << s.log_stride;
    return distance >= 0 && distance % stride == 0 && distance / stride < s.size ? distance / stride : -1;
}

static int world_of(struct set s, int index) { return s.start + (index << s.log_stride); }

/* The pSync for the next call. An array may be used again only after all PEs of the set have returned
 * from the earlier call, so the arrays alternate, with a barrier over the set, on a separate array,
 * before each call. Each array must have its initial value again. */
static long *next_sync(struct set s) {
    long *own = sync_of[0];
    shmem_barrier(s.start, s.log_stride, s.size, own);
    for (int k = 0; k < SYNCS; k++)
        for (int i = 0; i < SHMEM_SYNC_SIZE; i++)
            CHECK(sync_of[k][i] == SHMEM_SYNC_VALUE, 62, "pSync %d was left with %ld at %d", k, sync_of[k][i], i);
    return sync_of[1 + calls++ % (SYNCS - 1)];
}

static void *next_work(void) { return work_of[calls % 2]; }

static void ready(void) {
    memset(dest, EMPTY, room);
    memset(model, EMPTY, room);
}

static void expect(size_t size, size_t at, int pe, size_t from) {
    for (size_t byte = 0; byte < size; byte++)
        model[at * size + byte] = check_byte(pe, from * size + byte);
}

static void arrived(int point, const char *call, struct set s) {
    for (size_t i = 0; i < room; i++)
        if (dest[i] != model[i]) {
            CHECK(0, point, "%s on (%d, %d, %d): byte %zu is %#x, not %#x", call, s.start, s.log_stride, s.size, i, dest[i],
                  model[i]);
            return;
        }
}

static int elements_of(int index) { return (index + 2) % (COUNT + 1); }

#define SET s.start, s.log_stride, s.size

#define MOVES(BITS)                                                                                                    \
    static void moves_##BITS(struct set s) {                                                                           \
        int me = index_in(s), n = s.size;                                                                              \
        for (int root = 0; root < n; root += 1 + n / 3) {                                                              \
            ready();                                                                                                   \
            for (int j = 0; j < COUNT && me != root; j++)                                                              \
                expect(BITS / 8, j, world_of(s, root), j);                                                             \
            shmem_broadcast##BITS(dest, source, COUNT, root, SET, next_sync(s));                                       \
            arrived(55, "broadcast" #BITS, s);                                                                         \
        }                                                                                                              \
        ready();                                                                                                       \
        for (int k = 0, at = 0; k < n; k++)                                                                            \
            for (int j = 0; j < elements_of(k); j++)                                                                   \
                expect(BITS / 8, at++, world_of(s, k), j);                                                             \
        shmem_collect##BITS(dest, source, elements_of(me), SET, next_sync(s));                                         \
        arrived(56, "collect" #BITS, s);                                                                               \
        ready();                                                                                                       \
        for (int k = 0; k < n; k++)                                                                                    \
            for (int j = 0; j < COUNT; j++)                                                                            \
                expect(BITS / 8, k * COUNT + j, world_of(s, k), j);                                                    \
        shmem_fcollect##BITS(dest, source, COUNT, SET, next_sync(s));                                                  \
        arrived(56, "fcollect" #BITS, s);                                                                              \
        ready();                                                                                                       \
        for (int k = 0; k < n; k++)                                                                                    \
            for (int j = 0; j < COUNT; j++)                                                                            \
                expect(BITS / 8, k * COUNT + j, world_of(s, k), me * COUNT + j);                                       \
        shmem_alltoall##BITS(dest, source, COUNT, SET, next_sync(s));                                                  \
        arrived(57, "alltoall" #BITS, s);                                                                              \
        ready();                                                                                                       \
        for (int k = 0; k < n; k++)                                                                                    \
            for (int j = 0; j < COUNT; j++)                                                                            \
                expect(BITS / 8, (k * COUNT + j) * DST, world_of(s, k), (me * COUNT + j) * SST);                       \
        shmem_alltoalls##BITS(dest, source, DST, SST, COUNT, SET, next_sync(s));                                       \
        arrived(57, "alltoalls" #BITS, s);                                                                             \
        ready();                                                                                                       \
        shmem_broadcast##BITS(NULL, NULL, 0, 0, SET, next_sync(s));                                                    \
        shmem_collect##BITS(NULL, NULL, 0, SET, next_sync(s));                                                         \
        shmem_fcollect##BITS(dest, source, 0, SET, next_sync(s));                                                      \
        shmem_alltoall##BITS(NULL, NULL, 0, SET, next_sync(s));                                                        \
        shmem_alltoalls##BITS(dest, source, 1, 1, 0, SET, next_sync(s));                                               \
        arrived(29, "collectives of no elements", s);                                                                  \
        next_sync(s);                                                                                                  \
    }
MOVES(32)
MOVES(64)

#define TO_ALL(N, T, OP, COMBINE, GIVEN)                                                                               \
    static void OP##_##N(struct set s) {                                                                               \
        T *d = (T *)dest, due[COUNT];                                                                                  \
        _Static_assert(WORK_ELEMENTS(COUNT) * sizeof(T) <= BYTES_OF_WORK, "pWrk");                                     \
        for (int in_place = 0; in_place < 2; in_place++) {                                                             \
            memset(dest, EMPTY, (COUNT + 1) * sizeof(T));                                                              \
            T *from = in_place ? d : (T *)given;                                                                       \
            for (int i = 0; i < COUNT; i++) {                                                                          \
                from[i] = GIVEN(T, check_me, i);                                                                       \
                due[i] = GIVEN(T, s.start, i);                                                                         \
                for (int k = 1; k < s.size; k++)                                                                       \
                    due[i] = (T)COMBINE(due[i], GIVEN(T, world_of(s, k), i));                                          \
            }                                                                                                          \
            long *sync = next_sync(s);                                                                                 \
            shmem_##N##_##OP##_to_all(d, from, COUNT, SET, (T *)next_work(), sync);                                    \
            for (int i = 0; i < COUNT; i++)                                                                            \
                CHECK(d[i] == due[i], in_place ? 58 : 60, #N "_" #OP "_to_all on (%d, %d, %d): element %d differs",    \
                      SET, i);                                                                                         \
            CHECK(check_constant(d + COUNT, sizeof(T), EMPTY) < 0, 60, #N "_" #OP "_to_all wrote behind its end");     \
        }                                                                                                              \
        long *sync = next_sync(s);                                                                                     \
        shmem_##N##_##OP##_to_all(NULL, NULL, 0, SET, (T *)next_work(), sync);                                         \
        next_sync(s);                                                                                                  \
    }

#define ALL_BITS(N, T)                                                                                                 \
    TO_ALL(N, T, and, AND_OF, WORD_OF) TO_ALL(N, T, or, OR_OF, WORD_OF) TO_ALL(N, T, xor, XOR_OF, WORD_OF)
#define ALL_ORDER(N, T) TO_ALL(N, T, max, MAX_OF, WORD_OF) TO_ALL(N, T, min, MIN_OF, WORD_OF)
#define ALL_REAL(N, T) TO_ALL(N, T, sum, SUM_OF, SUMMAND_OF) TO_ALL(N, T, prod, PROD_OF, FACTOR_OF)
#define ALL_COMPLEX(N, T) TO_ALL(N, T, sum, SUM_OF, COMPLEX_SUMMAND_OF) TO_ALL(N, T, prod, PROD_OF, COMPLEX_FACTOR_OF)

SET_BITWISE_TYPES(ALL_BITS)
SET_ORDER_TYPES(ALL_ORDER)
SET_ORDER_TYPES(ALL_REAL)
COMPLEX_TYPES(ALL_COMPLEX)

/* barrier completes puts inside the set and may be called again at once on the same array; so may
 * sync. */
static void barrier_and_sync(struct set s) {
    int me = index_in(s), next = world_of(s, (me + 1) % s.size), previous = world_of(s, (me + s.size - 1) % s.size);
    long *words = (long *)dest, *sync = next_sync(s);
    for (long turn = 0; turn < 20; turn++) {
        long sent = 1000 * turn + check_me;
        shmem_long_put_nbi(&words[turn % 2], &sent, 1, next);
        shmem_barrier(SET, sync);
        CHECK(words[turn % 2] == 1000 * turn + previous, 62, "turn %ld: barrier did not complete a put", turn);
        shmem_barrier(SET, sync);
    }
    sync = next_sync(s);
    for (long turn = 0; turn < 20; turn++) {
        ((volatile long *)words)[2] = turn;
        (shmem_sync)(SET, sync);
        CHECK(shmem_long_g(&words[2], next) == turn, 64, "turn %ld: a store is not visible after sync", turn);
        (shmem_sync)(SET, sync);
    }
    next_sync(s);
}

/* Two pairs of work arrays that alternate, without a barrier between the calls, and a separate
 * destination for each call. */
static void two_pairs(struct set s, int *results) {
    enum { TURNS = 60 };
    int *from = (int *)given, me = index_in(s);
    for (int turn = 0; turn < TURNS; turn++) {
        from[0] = turn + me, from[1] = -turn - me;
        shmem_int_max_to_all(&results[2 * turn], from, 2, SET, (int *)work_of[turn % 2], sync_of[1 + turn % 2]);
    }
    for (int turn = 0; turn < TURNS; turn++)
        CHECK(results[2 * turn] == turn + s.size - 1 && results[2 * turn + 1] == -turn, 63, "turn %d of two pairs: %d and %d",
              turn, results[2 * turn], results[2 * turn + 1]);
    next_sync(s);
}

static void on(struct set s, int *results) {
    if (s.size >= 1 && index_in(s) >= 0) {
        calls = 0;
        for (int i = 0; i < 120; i++)
            results[i] = EMPTY;
        shmem_barrier(SET, sync_of[3]);
        two_pairs(s, results);
        barrier_and_sync(s);
        moves_32(s);
        moves_64(s);
#define RUN_BITS(N, T) and_##N(s), or_##N(s), xor_##N(s);
#define RUN_ORDER(N, T) max_##N(s), min_##N(s);
#define RUN_SUM(N, T) sum_##N(s), prod_##N(s);
        SET_BITWISE_TYPES(RUN_BITS)
        SET_ORDER_TYPES(RUN_ORDER)
        SET_SUM_TYPES(RUN_SUM)
    }
    shmem_barrier_all();
}

int main(void) {
    check_begin();
    room = 16 * (DST * COUNT * check_n + 4);
    size_t source_size = 8 * SST * COUNT * check_n;
    source = check_malloc(source_size);
    given = check_malloc(16 * (COUNT + 1));
    dest = check_malloc(room);
    model = malloc(room);
    int *results = check_malloc(120 * sizeof *results);
    long *heap_sync = check_malloc(SYNCS * SHMEM_SYNC_SIZE * sizeof *heap_sync);
    unsigned char *heap_work = shmem_align(16, 2 * BYTES_OF_WORK);
    check_fill(source, source_size, check_me);
    for (int k = 0; k < SYNCS; k++)
        for (int i = 0; i < SHMEM_SYNC_SIZE; i++)
            static_sync[k][i] = heap_sync[k * SHMEM_SYNC_SIZE + i] = SHMEM_SYNC_VALUE;
    for (int where = 0; where < 2; where++) {
        for (int k = 0; k < SYNCS; k++)
            sync_of[k] = where ? &heap_sync[k * SHMEM_SYNC_SIZE] : static_sync[k];
        for (int k = 0; k < 2; k++)
            work_of[k] = where ? &heap_work[k * BYTES_OF_WORK] : static_work[k];
        shmem_barrier_all();
        on((struct set){0, 0, check_n}, results);
        /* Disjoint sets at the same time, with the same arrays: the even and the odd PEs. */
        on(check_me % 2 ? (struct set){1, 1, check_n / 2} : (struct set){0, 1, (check_n + 1) / 2}, results);
        on((struct set){check_n / 2, 0, check_n - check_n / 2}, results);
        on((struct set){check_n > 1, 2, (check_n - (check_n > 1) + 3) / 4}, results);
        on((struct set){check_n - 1, 3, 1}, results);
    }
    free(model);
    shmem_free(heap_work);
    shmem_free(heap_sync);
    shmem_free(results);
    shmem_free(dest);
    shmem_free(given);
    shmem_free(source);
    return check_end();
}
