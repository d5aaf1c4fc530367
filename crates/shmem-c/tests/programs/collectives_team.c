/* broadcast, collect, fcollect, alltoall and alltoalls on teams: every type, order of members,
 * strides, lengths, and loops without barriers. */
#include "members.h"
#include "types.h"

enum { EMPTY = 0xEE, COUNT = 3, DST = 2, SST = 3, LARGEST = 16 };

static unsigned char *source, *dest, *model;
static size_t room;

/* Every PE's destination is ready before any PE calls. */
static void ready(struct members m) {
    memset(dest, EMPTY, room);
    memset(model, EMPTY, room);
    CHECK(shmem_team_sync(m.team) == 0, 53, "team_sync failed");
}

/* The model: element `at` of `dest` is element `from` of the source of PE `pe` of WORLD. */
static void expect(size_t size, size_t at, int pe, size_t from) {
    for (size_t byte = 0; byte < size; byte++)
        model[at * size + byte] = check_byte(pe, from * size + byte);
}

static void arrived(int status, int point, const char *call, struct members m) {
    CHECK(status == 0, 53, "%s gave %d", call, status);
    for (size_t i = 0; i < room; i++)
        if (dest[i] != model[i]) {
            CHECK(0, point, "%s on a team of %d that begins with PE %d: byte %zu is %#x, not %#x", call, m.size, m.world[0],
                  i, dest[i], model[i]);
            return;
        }
}

static int elements_of(int index) { return (index + 2) % (COUNT + 1); }

#define MOVES(NAME, T, SIZE, BROADCAST, COLLECT, FCOLLECT, ALLTOALL, ALLTOALLS)                                        \
    static void moves_##NAME(struct members m) {                                                                       \
        T *d = (T *)dest;                                                                                              \
        const T *s = (const T *)source;                                                                                \
        int me = members_me(m), n = m.size, status;                                                                    \
        for (int root = 0; root < n; root += 1 + n / 3) {                                                              \
            ready(m);                                                                                                  \
            for (int j = 0; j < COUNT; j++)                                                                            \
                expect(SIZE, j, m.world[root], j);                                                                     \
            status = BROADCAST(m.team, d, s, COUNT, root);                                                             \
            arrived(status, 55, #BROADCAST, m);                                                                        \
        }                                                                                                              \
        ready(m);                                                                                                      \
        for (int k = 0, at = 0; k < n; k++)                                                                            \
            for (int j = 0; j < elements_of(k); j++)                                                                   \
                expect(SIZE, at++, m.world[k], j);                                                                     \
        status = COLLECT(m.team, d, s, elements_of(me));                                                               \
        arrived(status, 56, #COLLECT, m);                                                                              \
        ready(m);                                                                                                      \
        for (int k = 0; k < n; k++)                                                                                    \
            for (int j = 0; j < COUNT; j++)                                                                            \
                expect(SIZE, k * COUNT + j, m.world[k], j);                                                            \
        status = FCOLLECT(m.team, d, s, COUNT);                                                                        \
        arrived(status, 56, #FCOLLECT, m);                                                                             \
        ready(m);                                                                                                      \
        for (int k = 0; k < n; k++)                                                                                    \
            for (int j = 0; j < COUNT; j++)                                                                            \
                expect(SIZE, k * COUNT + j, m.world[k], me * COUNT + j);                                               \
        status = ALLTOALL(m.team, d, s, COUNT);                                                                        \
        arrived(status, 57, #ALLTOALL, m);                                                                             \
        ready(m);                                                                                                      \
        for (int k = 0; k < n; k++)                                                                                    \
            for (int j = 0; j < COUNT; j++)                                                                            \
                expect(SIZE, (k * COUNT + j) * DST, m.world[k], (me * COUNT + j) * SST);                               \
        status = ALLTOALLS(m.team, d, s, DST, SST, COUNT);                                                             \
        arrived(status, 57, #ALLTOALLS, m);                                                                            \
        ready(m);                                                                                                      \
        CHECK(BROADCAST(m.team, NULL, NULL, 0, n - 1) == 0 && BROADCAST(m.team, d, s, 0, 0) == 0, 29, #BROADCAST);     \
        CHECK(COLLECT(m.team, NULL, NULL, 0) == 0 && COLLECT(m.team, d, s, 0) == 0, 29, #COLLECT);                     \
        CHECK(FCOLLECT(m.team, NULL, NULL, 0) == 0 && FCOLLECT(m.team, d, s, 0) == 0, 29, #FCOLLECT);                  \
        CHECK(ALLTOALL(m.team, NULL, NULL, 0) == 0 && ALLTOALL(m.team, d, s, 0) == 0, 29, #ALLTOALL);                  \
        CHECK(ALLTOALLS(m.team, NULL, NULL, 1, 1, 0) == 0 && ALLTOALLS(m.team, d, s, 2, 2, 0) == 0, 29, #ALLTOALLS);   \
        arrived(0, 29, "collectives of no elements, " #NAME, m);                                                       \
    }

#define TYPED(N, T)                                                                                                    \
    MOVES(N, T, sizeof(T), shmem_##N##_broadcast, shmem_##N##_collect, shmem_##N##_fcollect, shmem_##N##_alltoall,     \
          shmem_##N##_alltoalls)
RMA_TYPES(TYPED)
MOVES(mem, void, 1, shmem_broadcastmem, shmem_collectmem, shmem_fcollectmem, shmem_alltoallmem, shmem_alltoallsmem)

static void all_moves(struct members m) {
#define MOVE(N, T) moves_##N(m);
    if (members_me(m) >= 0) {
        RMA_TYPES(MOVE)
        moves_mem(m);
    }
    shmem_barrier_all();
}

/* The roots change, each call has its own destination, and the source is changed after each
 * call. */
static void tight_broadcasts(struct members m) {
    enum { TURNS = 300, WORDS = 9 };
    long *results = check_malloc(TURNS * WORDS * sizeof *results), *mine = check_malloc(WORDS * sizeof *mine);
    memset(results, EMPTY, TURNS * WORDS * sizeof *results);
    shmem_barrier_all();
    if (members_me(m) >= 0) {
        for (int turn = 0; turn < TURNS; turn++) {
            for (int i = 0; i < WORDS; i++)
                mine[i] = 1000L * turn + 10 * check_me + i;
            shmem_long_broadcast(m.team, &results[turn * WORDS], mine, WORDS, turn % m.size);
            memset(mine, EMPTY, WORDS * sizeof *mine);
        }
        for (int turn = 0; turn < TURNS; turn++)
            for (int i = 0; i < WORDS; i++)
                CHECK(results[turn * WORDS + i] == 1000L * turn + 10 * m.world[turn % m.size] + i, 54,
                      "turn %d, word %d: %ld", turn, i, results[turn * WORDS + i]);
    }
    shmem_barrier_all();
    shmem_free(mine);
    shmem_free(results);
}

/* All kinds in turn, again without anything between them. */
static void tight_mixture(struct members m) {
    enum { TURNS = 100 };
    size_t per_turn = 4 * check_n + 4;
    int *results = check_malloc(TURNS * per_turn * sizeof *results), *mine = check_malloc((check_n + 1) * sizeof *mine);
    shmem_barrier_all();
    int me = members_me(m), n = m.size;
    for (int turn = 0; turn < TURNS && me >= 0; turn++) {
        int *to = &results[turn * per_turn], base = 10000 * turn;
        for (int i = 0; i <= check_n; i++)
            mine[i] = base + 100 * me + i;
        shmem_int_fcollect(m.team, to, mine, 1);
        for (int i = 0; i <= check_n; i++)
            mine[i] = base + 100 * me + i + 1;
        shmem_int_alltoall(m.team, to + n, mine, 1);
        mine[0] = base + me;
        shmem_int_sum_reduce(m.team, to + 2 * n, mine, 1);
        mine[0] = base - me;
        shmem_int_broadcast(m.team, to + 2 * n + 1, mine, 1, (turn + 1) % n);
        mine[0] = mine[1] = base + 3 * me;
        shmem_int_collect(m.team, to + 2 * n + 2, mine, me % 2 + 1);
        mine[0] = 1;
        shmem_int_sum_inscan(m.team, to + 4 * n + 2, mine, 1);
        shmem_team_sync(m.team);
        mine[0] = -1;
        shmem_int_max_reduce(m.team, to + 4 * n + 3, mine, 1);
    }
    for (int turn = 0; turn < TURNS && me >= 0; turn++) {
        int *got = &results[turn * per_turn], base = 10000 * turn, *collected = got + 2 * n + 2;
        for (int k = 0; k < n; k++) {
            CHECK(got[k] == base + 100 * k, 54, "turn %d: fcollect", turn);
            CHECK(got[n + k] == base + 100 * k + me + 1, 54, "turn %d: alltoall", turn);
            for (int copies = 0; copies < k % 2 + 1; copies++)
                CHECK(*collected++ == base + 3 * k, 54, "turn %d: collect", turn);
        }
        CHECK(got[2 * n] == n * base + n * (n - 1) / 2, 54, "turn %d: sum", turn);
        CHECK(got[2 * n + 1] == base - (turn + 1) % n, 54, "turn %d: broadcast", turn);
        CHECK(got[4 * n + 2] == me + 1, 54, "turn %d: inscan", turn);
        CHECK(got[4 * n + 3] == -1, 54, "turn %d: max", turn);
    }
    shmem_barrier_all();
    shmem_free(mine);
    shmem_free(results);
}

/* On return the destination is final, although other members are still in the call or have not
 * called yet: values that its owner writes then are not overwritten. */
static void final_on_return(struct members m) {
    enum { TURNS = 60, WORDS = 7, KINDS = 4 };
    int me = members_me(m), n = m.size;
    long *to = check_malloc(WORDS * (check_n + 1) * sizeof *to), *mine = check_malloc(WORDS * check_n * sizeof *mine);
    shmem_barrier_all();
    for (int turn = 0; turn < TURNS && me >= 0; turn++) {
        int kind = turn % KINDS, length = kind == 1 || kind == 2 ? WORDS * n : WORDS;
        if (turn % n == me)
            for (int i = 0; i < 200; i++)
                sched_yield();
        /* The source of each member is ready only when that member calls. */
        for (int i = 0; i < WORDS * n; i++)
            mine[i] = 100 * turn + i;
        if (kind == 0)
            shmem_long_broadcast(m.team, to, mine, WORDS, turn % n);
        else if (kind == 1)
            shmem_long_fcollect(m.team, to, mine, WORDS);
        else if (kind == 2)
            shmem_long_alltoall(m.team, to, mine, WORDS);
        else
            shmem_long_max_reduce(m.team, to, mine, WORDS);
        CHECK(to[0] == 100 * turn + (kind == 2 ? WORDS * me : 0), 54, "turn %d: %ld", turn, to[0]);
        for (int i = 0; i < length; i++)
            to[i] = -1000 * me - i;
        memset(mine, EMPTY, WORDS * n * sizeof *mine);
        shmem_team_sync(m.team);
        for (int i = 0; i < length; i++)
            CHECK(to[i] == -1000 * me - i, 54, "turn %d, kind %d: word %d was written after the return", turn, kind, i);
        shmem_team_sync(m.team);
    }
    shmem_barrier_all();
    shmem_free(mine);
    shmem_free(to);
}

/* Large and odd lengths of each kind. */
static void large(struct members m) {
    static const size_t lengths[] = {1, 63, 64, 65, 1000, 4096, 100003, 400000};
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        size_t n = lengths[k];
        char *from = check_malloc(n), *to = check_malloc(n * check_n);
        check_fill(from, n, check_me);
        memset(to, EMPTY, n * check_n);
        shmem_barrier_all();
        if (members_me(m) >= 0) {
            int root = m.size / 2;
            shmem_broadcastmem(m.team, to, from, n, root);
            CHECK(check_pattern(to, n, m.world[root]) < 0, 55, "broadcast of %zu bytes", n);
            shmem_team_sync(m.team);
            shmem_fcollectmem(m.team, to, from, n);
            for (int i = 0; i < m.size; i++)
                CHECK(check_pattern(to + i * n, n, m.world[i]) < 0, 56, "fcollect of %zu bytes: part %d", n, i);
            shmem_team_sync(m.team);
            size_t mine = members_me(m) == 0 ? n : n / 3, at = 0;
            shmem_collectmem(m.team, to, from, mine);
            for (int i = 0; i < m.size; at += i ? n / 3 : n, i++)
                CHECK(check_pattern(to + at, i ? n / 3 : n, m.world[i]) < 0, 56, "collect of %zu bytes: part %d", n, i);
        }
        shmem_barrier_all();
        shmem_free(to);
        shmem_free(from);
    }
}

int main(void) {
    check_begin();
    members_begin();
    room = LARGEST * (DST * COUNT * check_n + 4);
    source = check_malloc(LARGEST * SST * COUNT * check_n);
    dest = check_malloc(room);
    model = malloc(room);
    check_fill(source, LARGEST * SST * COUNT * check_n, check_me);
    struct shapes shapes = shapes_begin();
    all_moves(shapes.world);
    all_moves(shapes.reversed);
    all_moves(shapes.odd);
    tight_broadcasts(shapes.world);
    tight_broadcasts(shapes.reversed);
    tight_broadcasts(shapes.odd);
    tight_mixture(shapes.world);
    tight_mixture(shapes.reversed);
    tight_mixture(shapes.odd);
    final_on_return(shapes.world);
    final_on_return(shapes.reversed);
    final_on_return(shapes.odd);
    large(shapes.world);
    large(shapes.reversed);
    shapes_end(shapes);
    free(model);
    shmem_free(dest);
    shmem_free(source);
    members_end();
    return check_end();
}
