/* Overlapping teams and active sets, and the steps of random programs of collectives on them.
 *
 * All members derive the same step from the same random number. The data that a PE gives depends on that number, the
 * group and the PE, so that the checks detect data of another call, team or PE. The sources are filled anew for each
 * call, the destinations are checked again before they are reused, and each PE waits a random time between calls.
 */
#ifndef GROUPS_H
#define GROUPS_H

#include <shmemx.h>
#include <unistd.h>

#include "members.h"

enum { RING = 3, EMPTY = 0xEE, LARGE = 80 << 10, MAX_BLOCK = 15 * 8, BEHIND = 64 };

/* The memory that a thread of a PE uses for all groups, one after the other. */
struct buffers {
    unsigned char *source, *large; /* symmetric */
    unsigned char *model, *given;
    uint64_t pace;
};

/* A team, or an active set with pSyncs. */
struct group {
    struct members m; /* without PEs if this PE is not a member */
    int is_set, start, log_stride;
    unsigned char *ring[RING]; /* symmetric: destinations, used in turn */
    unsigned char *due[RING];
    int used;
    long *words, turn; /* symmetric: one each for even and odd syncs */
    long (*psyncs)[SHMEM_SYNC_SIZE]; /* for each destination, for the large one, and for syncs */
    unsigned char *work;
};

enum step_kind { SYNC, BROADCAST, COLLECT, FCOLLECT, ALLTOALL, ALLTOALLS, ALLTOALLV, REDUCE, INSCAN, EXSCAN, STEP_KINDS };

static size_t ring_bytes(void) { return (size_t)check_n * MAX_BLOCK * 2 + BEHIND; }

static size_t buffers_bytes(void) { return (ring_bytes() > LARGE ? ring_bytes() : LARGE) + BEHIND; }

static inline struct buffers buffers_new(uint64_t pace) {
    struct buffers buffers = {check_malloc(buffers_bytes()), check_malloc(buffers_bytes()), malloc(buffers_bytes()), malloc(buffers_bytes()),
                        pace};
    return buffers;
}

static inline void buffers_free(struct buffers buffers) {
    free(buffers.given);
    free(buffers.model);
    shmem_free(buffers.large);
    shmem_free(buffers.source);
}

/* Allocates the memory of a group, which has no PEs yet. */
static inline struct group group_new(void) {
    struct group g = {.m = members_new(0), .used = RING};
    for (int i = 0; i < RING; i++) {
        g.ring[i] = check_malloc(ring_bytes());
        g.due[i] = malloc(ring_bytes());
        memset(g.ring[i], EMPTY, ring_bytes());
        memset(g.due[i], EMPTY, ring_bytes());
    }
    g.words = shmem_calloc(2, sizeof *g.words);
    return g;
}

/* Allocates the memory of an active set. */
static inline struct group group_set(int start, int log_stride, int size) {
    struct group g = group_new();
    g.is_set = 1, g.start = start, g.log_stride = log_stride;
    g.psyncs = check_malloc((RING + 2) * sizeof *g.psyncs);
    for (int i = 0; i < RING + 2; i++)
        for (int k = 0; k < SHMEM_SYNC_SIZE; k++)
            g.psyncs[i][k] = SHMEM_SYNC_VALUE;
    g.work = check_malloc((RING + 1) * LARGE);
    members_free(g.m);
    struct members world = members_world();
    g.m = members_strided(world, start, 1 << log_stride, size);
    members_free(world);
    return g;
}

static inline void group_free(struct group g) {
    if (!g.is_set)
        shmem_team_destroy(g.m.team);
    members_free(g.m);
    shmem_free(g.words);
    for (int i = 0; i < RING; i++) {
        free(g.due[i]);
        shmem_free(g.ring[i]);
    }
    if (g.is_set) {
        shmem_free(g.work);
        shmem_free(g.psyncs);
    }
}

static inline int group_has_me(const struct group *g) { return members_me(g->m) >= 0; }

/* Computes or yields for a while at random. */
static inline void pause_randomly(struct buffers *buffers) {
    uint64_t bits = buffers->pace = check_mix(buffers->pace);
    if (bits % 4 == 0)
        for (volatile int i = (int)(bits >> 8) & 0xfff; i > 0; i--)
            ;
    if (bits % 8 == 1)
        sched_yield();
    if (bits % 256 == 2)
        usleep((bits >> 8) % 200);
}

/* The bytes from index `from` on that PE `pe` contributes to the call `key`. */
static inline void given_by(unsigned char *to, size_t nbytes, uint64_t key, int pe, size_t from) {
    for (size_t i = 0; i < nbytes; i++) {
        size_t at = from + i;
        to[i] = (unsigned char)(check_mix(key + ((uint64_t)pe << 40) + at / 8) >> at % 8 * 8);
    }
}

#define SET(g) (g)->start, (g)->log_stride, (g)->m.size

static inline void group_sync(struct group *g) {
    if (g->is_set)
        (shmem_sync)(SET(g), g->psyncs[RING + 1]);
    else
        CHECK(shmem_team_sync(g->m.team) == 0, 53, "team_sync failed");
}

/* Checks that results have not changed, and makes all destinations free for further calls. */
static inline void group_ready(struct group *g) {
    for (int i = 0; i < g->used; i++) {
        CHECK(memcmp(g->ring[i], g->due[i], ring_bytes()) == 0, 54, "destination %d of a group of %d changed later", i, g->m.size);
        memset(g->ring[i], EMPTY, ring_bytes());
    }
    g->used = 0;
    group_sync(g);
}

/* The call of a step: its destination and its expected result. */
struct call {
    struct buffers *buffers;
    struct group *g;
    uint64_t key, bits;
    int n, me, place; /* place: index of the destination, RING for the large one */
    unsigned char *dest, *model;
    size_t room;
};

static inline void call_destination(struct call *c, int is_large) {
    struct group *g = c->g;
    if (is_large) {
        c->room = buffers_bytes(), c->place = RING, c->dest = c->buffers->large, c->model = c->buffers->model;
        memset(c->dest, EMPTY, c->room);
        group_ready(g);
    } else {
        if (g->used == RING)
            group_ready(g);
        c->room = ring_bytes(), c->place = g->used++, c->dest = g->ring[c->place], c->model = g->due[c->place];
    }
    memset(c->model, EMPTY, c->room);
}

/* Checks the result. The source is changed at once, and at random the destination, too. */
static inline void call_done(struct call *c, int status, const char *name, size_t count) {
    CHECK(status == 0, 53, "%s gave %d", name, status);
    size_t at = 0;
    while (at < c->room && c->dest[at] == c->model[at])
        at++;
    CHECK(at == c->room, 54, "%s of %zu on %s of %d that begins with PE %d: byte %zu is %#x, not %#x", name, count,
          c->g->is_set ? "a set" : "a team", c->n, c->g->m.world[0], at, c->dest[at % c->room], c->model[at % c->room]);
    memset(c->buffers->source, (int)(c->bits & 0xff), buffers_bytes() < 4096 ? buffers_bytes() : 4096);
    if (c->buffers->pace % 4 == 3) {
        memset(c->dest, 0x11, c->room);
        memset(c->model, 0x11, c->room);
    }
}

/* Routines for elements of 1, 4 and 8 bytes. */
#define ON(call, routine, set_routine, ...)                                                                            \
    ((call)->g->is_set ? (size == 4 ? shmem_##set_routine##32(__VA_ARGS__, SET((call)->g), psync)                      \
                                    : shmem_##set_routine##64(__VA_ARGS__, SET((call)->g), psync),                     \
                          0)                                                                                           \
     : size == 1 ? shmem_char_##routine(team, __VA_ARGS__)                                                             \
     : size == 4 ? shmem_int_##routine(team, __VA_ARGS__)                                                              \
                 : shmem_long_##routine(team, __VA_ARGS__))

/* The number of elements that member k contributes to a collect: often 0. */
static inline size_t elements_of(uint64_t bits, int k, size_t most) {
    uint64_t own = check_mix(bits + (uint64_t)k);
    return own % 3 == 0 ? 0 : (own >> 8) % (most + 1);
}

static inline void call_move(struct call *c, enum step_kind kind) {
    static const size_t sizes[] = {1, 4, 8, 8};
    const size_t size = c->g->is_set ? sizes[1 + (c->bits >> 8) % 2] : sizes[(c->bits >> 8) % 4];
    int is_large = (c->bits >> 16) % 16 == 0 && kind <= FCOLLECT;
    size_t most = (is_large ? LARGE / (kind == BROADCAST ? 1 : (size_t)c->n) : MAX_BLOCK) / size;
    size_t dst = 1 + (c->bits >> 20) % 2, sst = 1 + (c->bits >> 21) % 2;
    if (kind == ALLTOALLS)
        most /= 2;
    size_t count = is_large ? most - (c->bits >> 24) % 8 : (c->bits >> 24) % (most + 1);
    int root = (int)((c->bits >> 40) % (uint64_t)c->n);
    void *source = c->buffers->source;
    call_destination(c, is_large);
    given_by(source, (kind >= ALLTOALL ? (size_t)c->n : 1) * count * size * (kind == ALLTOALLS ? 2 : 1), c->key, check_me, 0);
    void *dest = c->dest;
    shmem_team_t team = c->g->m.team;
    long *psync = c->g->is_set ? c->g->psyncs[c->place] : NULL;
    int status = 0;
    size_t at = 0;
    pause_randomly(c->buffers);
    switch (kind) {
    case BROADCAST:
        if (!c->g->is_set || c->me != root)
            given_by(c->model, count * size, c->key, c->g->m.world[root], 0);
        if (c->g->is_set && size == 4)
            shmem_broadcast32(dest, source, count, root, SET(c->g), psync);
        else if (c->g->is_set)
            shmem_broadcast64(dest, source, count, root, SET(c->g), psync);
        else
            status = size == 1   ? shmem_broadcastmem(team, dest, source, count, root)
                     : size == 4 ? shmem_int_broadcast(team, dest, source, count, root)
                                 : shmem_long_broadcast(team, dest, source, count, root);
        break;
    case COLLECT:
        for (int k = 0; k < c->n; k++) {
            size_t nbytes = elements_of(c->key, k, count) * size;
            given_by(c->model + at, nbytes, c->key, c->g->m.world[k], 0);
            at += nbytes;
        }
        count = elements_of(c->key, c->me, count);
        given_by(source, count * size, c->key, check_me, 0);
        status = ON(c, collect, collect, dest, source, count);
        break;
    case FCOLLECT:
        for (int k = 0; k < c->n; k++)
            given_by(c->model + (size_t)k * count * size, count * size, c->key, c->g->m.world[k], 0);
        status = ON(c, fcollect, fcollect, dest, source, count);
        break;
    case ALLTOALL:
        for (int k = 0; k < c->n; k++)
            given_by(c->model + (size_t)k * count * size, count * size, c->key, c->g->m.world[k], (size_t)c->me * count * size);
        status = ON(c, alltoall, alltoall, dest, source, count);
        break;
    default:
        for (size_t i = 0; i < (size_t)c->n * count; i++)
            given_by(c->model + i * dst * size, size, c->key, c->g->m.world[i / count],
                     ((size_t)c->me * count + i % count) * sst * size);
        status = ON(c, alltoalls, alltoalls, dest, source, (ptrdiff_t)dst, (ptrdiff_t)sst, count);
    }
    call_done(c, status, ((const char *[]){"sync", "broadcast", "collect", "fcollect", "alltoall", "alltoalls"})[kind], count);
}

/* Bytes from one member to another one. */
static inline size_t block(uint64_t key, int from, int to) {
    uint64_t own = check_mix(key + (uint64_t)(from * 4096 + to));
    return own % 4 == 0 ? 0 : (own >> 8) % MAX_BLOCK;
}

/* Only active sets have this call. The offsets of blocks differ between PEs. */
static inline void call_alltoallv(struct call *c) {
    size_t tables[4][256], *t_offsets = tables[0], *t_sizes = tables[1], *s_offsets = tables[2], *s_sizes = tables[3], got = 0;
    int is_packed = c->bits >> 16 & 1;
    call_destination(c, 0);
    for (int k = 0; k < c->n; k++) {
        int world = c->g->m.world[k];
        t_offsets[k] = is_packed ? got : (size_t)((k + c->me) % c->n) * MAX_BLOCK * 2 + (size_t)c->me % 8;
        given_by(c->model + t_offsets[k], block(c->key, k, c->me), c->key, world, (size_t)c->me * MAX_BLOCK);
        s_offsets[k] = (size_t)k * MAX_BLOCK;
        s_sizes[k] = block(c->key, c->me, k);
        got += block(c->key, k, c->me);
    }
    given_by(c->buffers->source, (size_t)c->n * MAX_BLOCK, c->key, check_me, 0);
    pause_randomly(c->buffers);
    if (is_packed) {
        size_t due = got;
        shmemx_alltoallv_packed(c->dest, c->room, &got, c->buffers->source, s_offsets, s_sizes, SET(c->g), c->g->psyncs[c->place]);
        CHECK(got == due, 0, "alltoallv_packed: %zu bytes, not %zu", got, due);
    } else {
        shmemx_alltoallv(c->dest, t_offsets, t_sizes, c->buffers->source, s_offsets, s_sizes, SET(c->g), c->g->psyncs[c->place]);
        for (int k = 0; k < c->n; k++)
            CHECK(t_sizes[k] == block(c->key, k, c->me), 0, "alltoallv: %zu bytes from member %d", t_sizes[k], k);
    }
    call_done(c, 0, is_packed ? "alltoallv_packed" : "alltoallv", got);
}

#define OF_WORDS(T, word) ((T)(word))
#define OF_SUMMANDS(T, word) ((T)((int)((word) % 1009) - 500))
#define OF_SIGNS(T, word) ((T)((word) % 2 ? 1 : -1))
#define BY_SUM(a, b) ((a) + (b))
#define BY_PROD(a, b) ((a) * (b))
#define BY_MAX(a, b) ((a) > (b) ? (a) : (b))
#define BY_MIN(a, b) ((a) < (b) ? (a) : (b))
#define BY_XOR(a, b) ((a) ^ (b))

/* Lengths around those at which algorithms change and vectors are divided. */
static inline size_t reduced_bytes(uint64_t bits) {
    static const size_t sizes[] = {8, 8, 8, 16, 24, 128, 248, 256, 264, 1024, 8 << 10, (8 << 10) + 8, 20000, 72000};
    return sizes[bits % 4 ? bits / 4 % 4 : bits / 4 % (sizeof sizes / sizeof *sizes)];
}

/* The operands of members `first` to `end` - 1 count. */
#define REDUCTION(NAME, T, GIVEN, BY, TEAM_CALL, SET_CALL)                                                             \
    static inline void call_##NAME(struct call *c, int first, int end) {                                               \
        size_t bytes = reduced_bytes(c->bits >> 16), count = (c->bits >> 56) % 32 ? bytes / sizeof(T) : 0;             \
        call_destination(c, bytes + BEHIND > ring_bytes());                                                            \
        T *d = (T *)c->dest, *model = (T *)c->model, *s = (c->bits >> 52) % 8 ? (T *)c->buffers->source : d;              \
        for (int k = first; k < end; k++) {                                                                            \
            uint64_t of = c->key + ((uint64_t)c->g->m.world[k] << 40);                                                 \
            for (size_t i = 0; i < count; i++) {                                                                       \
                T given = GIVEN(T, check_mix(of + i));                                                                 \
                model[i] = k == first ? given : (T)BY(model[i], given);                                                \
            }                                                                                                          \
        }                                                                                                              \
        if (first == end)                                                                                              \
            memset(model, 0, count * sizeof(T));                                                                       \
        for (size_t i = 0; i < count; i++)                                                                             \
            s[i] = GIVEN(T, check_mix(c->key + ((uint64_t)check_me << 40) + i));                                       \
        pause_randomly(c->buffers);                                                                                    \
        int status = 0;                                                                                                \
        if (c->g->is_set)                                                                                              \
            SET_CALL(d, s, (int)count, SET(c->g), (T *)(c->g->work + c->place * LARGE), c->g->psyncs[c->place]);       \
        else                                                                                                           \
            status = TEAM_CALL(c->g->m.team, d, s, count);                                                             \
        call_done(c, status, #NAME, count);                                                                            \
    }

REDUCTION(sum_int, int, OF_SUMMANDS, BY_SUM, shmem_int_sum_reduce, shmem_int_sum_to_all)
REDUCTION(sum_double, double, OF_SUMMANDS, BY_SUM, shmem_double_sum_reduce, shmem_double_sum_to_all)
REDUCTION(prod_float, float, OF_SIGNS, BY_PROD, shmem_float_prod_reduce, shmem_float_prod_to_all)
REDUCTION(max_long, long, OF_WORDS, BY_MAX, shmem_long_max_reduce, shmem_long_max_to_all)
REDUCTION(min_short, short, OF_WORDS, BY_MIN, shmem_short_min_reduce, shmem_short_min_to_all)
REDUCTION(xor_long, long, OF_WORDS, BY_XOR, shmem_int64_xor_reduce, shmem_long_xor_to_all)
/* Only teams have these calls. */
REDUCTION(inscan_long, long, OF_SUMMANDS, BY_SUM, shmem_long_sum_inscan, shmem_long_sum_to_all)
REDUCTION(exscan_int, int, OF_SUMMANDS, BY_SUM, shmem_int_sum_exscan, shmem_int_sum_to_all)

static inline void call_reduction(struct call *c) {
    switch ((c->bits >> 8) % 6) {
    case 0: return call_sum_int(c, 0, c->n);
    case 1: return call_sum_double(c, 0, c->n);
    case 2: return call_prod_float(c, 0, c->n);
    case 3: return call_max_long(c, 0, c->n);
    case 4: return call_min_short(c, 0, c->n);
    default: return call_xor_long(c, 0, c->n);
    }
}

/* A put to the next member is complete there after quiet and sync. */
static inline void call_sync(struct call *c) {
    struct group *g = c->g;
    int previous = g->m.world[(c->me + c->n - 1) % c->n];
    long *word = &g->words[g->turn++ % 2], sent = VALUE(long, c->key + (uint64_t)check_me);
    shmem_long_put_nbi(word, &sent, 1, g->m.world[(c->me + 1) % c->n]);
    pause_randomly(c->buffers);
    if (g->is_set && c->bits >> 16 & 1) {
        shmem_barrier(SET(g), g->psyncs[RING + 1]);
    } else {
        shmem_quiet();
        group_sync(g);
    }
    CHECK(*word == VALUE(long, c->key + (uint64_t)previous), 42, "a put of PE %d did not come before a sync of %d ended", previous, c->n);
}

/* Executes the step `bits` of a group. Only its members call it. */
static inline void group_step(struct buffers *buffers, struct group *g, int id, uint64_t bits) {
    struct call c = {.buffers = buffers, .g = g, .bits = bits, .n = g->m.size, .me = members_me(g->m)};
    /* Teams of the same split differ, too. */
    c.key = check_mix(check_mix(bits) + (uint64_t)id * 4096 + (uint64_t)g->m.world[0]);
    enum step_kind kind = (enum step_kind)((bits & 0xff) % (STEP_KINDS + 3));
    if (kind == SYNC)
        call_sync(&c);
    else if (kind <= ALLTOALLS)
        call_move(&c, kind);
    else if (kind == ALLTOALLV && g->is_set)
        call_alltoallv(&c);
    else if (kind == INSCAN && !g->is_set)
        call_inscan_long(&c, 0, c.me + 1);
    else if (kind == EXSCAN && !g->is_set)
        call_exscan_int(&c, 0, c.me);
    else
        call_reduction(&c);
}

#endif
