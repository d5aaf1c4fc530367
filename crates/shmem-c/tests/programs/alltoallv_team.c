/* The all-to-all of blocks of different sizes on teams: no, few and many bytes, one block alone, and
 * the form that does not block, several at a time. */
#include <shmemx.h>

#include "members.h"

enum { LARGEST = 30000, ROUNDS = 12, STARTED = 3, EMPTY = 0xEE };

/* Bytes from the member `from` to the member `to` of n in a round. */
static size_t bytes(int round, int from, int to, int n) {
    switch (round % 6) {
    case 0: return 0;
    case 1: return (size_t)(to + from);
    case 2: return from == round % n && to == (round / 2) % n ? LARGEST : 0;
    case 3: return to == from ? 0 : 1 + check_mix((uint64_t)(from * 64 + to)) % 3000;
    case 4: return from == to ? 13 : 0;
    default: return check_mix((uint64_t)((round * 64 + from) * 64 + to)) % LARGEST;
    }
}

static int seed(int round, int from, int to) { return (round * 64 + from) * 64 + to + 1; }

/* The arrays of a call. */
struct exchange {
    unsigned char *source, *dest; /* symmetric */
    size_t *s_offsets, *s_sizes, *d_offsets, *d_sizes;
    shmemx_req_t req;
};

static size_t room(void) { return (size_t)check_n * (LARGEST + 8) + 8; }

static struct exchange exchange_new(void) {
    struct exchange x = {.source = check_malloc(room()), .dest = check_malloc(room())};
    size_t **arrays[] = {&x.s_offsets, &x.s_sizes, &x.d_offsets, &x.d_sizes};
    for (int i = 0; i < 4; i++)
        *arrays[i] = malloc((size_t)check_n * sizeof(size_t));
    return x;
}

static void exchange_free(struct exchange x) {
    free(x.d_sizes);
    free(x.d_offsets);
    free(x.s_sizes);
    free(x.s_offsets);
    shmem_free(x.dest);
    shmem_free(x.source);
}

/* Blocks leave in reverse order with gaps, and arrive in an order that differs from PE to PE. */
static void fill(struct exchange x, struct members m, int round) {
    int me = members_me(m), n = m.size;
    size_t at = 0;
    for (int to = n; to-- > 0; at += x.s_sizes[to] + 5) {
        x.s_offsets[to] = at;
        x.s_sizes[to] = bytes(round, me, to, n);
        check_fill(x.source + at, x.s_sizes[to], seed(round, me, to));
    }
    memset(x.dest, EMPTY, room());
    at = 3;
    for (int k = 0; k < n; k++) {
        int from = (k + me + round) % n;
        x.d_offsets[from] = at;
        x.d_sizes[from] = 0xdead;
        at += bytes(round, from, me, n) + 2;
    }
}

static void checked(struct exchange x, struct members m, int round, int has_sizes) {
    int me = members_me(m), n = m.size;
    for (int from = 0; from < n; from++) {
        size_t nbytes = bytes(round, from, me, n), at = x.d_offsets[from];
        CHECK(x.d_sizes[from] == (has_sizes ? nbytes : 0xdead), 53, "round %d: %zu bytes from %d, not %zu", round,
              x.d_sizes[from], from, nbytes);
        CHECK(check_pattern(x.dest + at, nbytes, seed(round, from, me)) < 0, 53, "round %d: the block of %d differs",
              round, from);
        CHECK(check_constant(x.dest + at - 2, 2, EMPTY) < 0 && check_constant(x.dest + at + nbytes, 2, EMPTY) < 0, 53,
              "round %d: beside the block of %d", round, from);
    }
}

static void on_team(struct members m) {
    struct exchange x[STARTED];
    for (int i = 0; i < STARTED; i++)
        x[i] = exchange_new();
    for (int round = 0; round < ROUNDS && members_me(m) >= 0; round++) {
        fill(x[0], m, round);
        shmem_team_sync(m.team);
        size_t *sizes = round % 2 ? x[0].d_sizes : NULL;
        CHECK(shmemx_team_alltoallvmem(m.team, x[0].dest, x[0].d_offsets, sizes, x[0].source, x[0].s_offsets,
                                       x[0].s_sizes) == 0,
              53, "round %d failed", round);
        checked(x[0], m, round, round % 2);
        for (int i = 0; i < STARTED; i++)
            fill(x[i], m, round + i);
        shmem_team_sync(m.team);
        for (int i = 0; i < STARTED; i++)
            shmemx_team_alltoallvmem_nb(m.team, x[i].dest, x[i].d_offsets, x[i].d_sizes, x[i].source, x[i].s_offsets,
                                        x[i].s_sizes, &x[i].req);
        for (int i = STARTED; i-- > 0;) {
            shmemx_req_wait(&x[i].req);
            checked(x[i], m, round + i, 1);
        }
    }
    shmem_barrier_all();
    for (int i = STARTED; i-- > 0;)
        exchange_free(x[i]);
}

int main(void) {
    check_begin();
    members_begin();
    struct shapes shapes = shapes_begin();
    on_team(shapes.world);
    on_team(shapes.reversed);
    on_team(shapes.odd);
    shapes_end(shapes);
    members_end();
    return check_end();
}
