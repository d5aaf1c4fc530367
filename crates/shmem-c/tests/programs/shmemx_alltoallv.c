/* Cray's all-to-all of blocks of different sizes, and its packed form: with no, few and many bytes,
 * over active sets that overlap. */
#include "members.h"
#include <shmemx.h>

enum { LARGEST = 40000, SYNCS = 4, EMPTY = 0xEE };

static long sync_array[SYNCS][SHMEM_ALLTOALL_SYNC_SIZE];
static unsigned char *source, *target;
static size_t *t_offsets, *t_sizes, *s_offsets, *s_sizes, room;
static long calls;

struct set {
    int start, log_stride, size;
};

static int index_in(struct set s) {
    int distance = check_me - s.start, stride = 1 << s.log_stride;
    return distance >= 0 && distance % stride == 0 && distance / stride < s.size ? distance / stride : -1;
}

/* Bytes from the member `from` to the member `to` of a set of n in a round. */
static size_t bytes(int round, int from, int to, int n) {
    switch (round % 6) {
    case 0: return 0;
    case 1: return (size_t)to * 8; /* Cray's example */
    case 2: return from == round % n ? LARGEST : 0;
    case 3: return to == from ? 0 : 1 + check_mix((uint64_t)(from * 64 + to)) % 3000;
    case 4: return from == to ? 13 : 0;
    default: return check_mix((uint64_t)((round * 64 + from) * 64 + to)) % LARGEST;
    }
}

static int seed(int round, int from, int to) { return (round * 64 + from) * 64 + to + 1; }

/* A pSync is used again two calls later. A barrier before each call protects the target. */
static long *next_sync(struct set s) {
    shmem_barrier(s.start, s.log_stride, s.size, sync_array[0]);
    return sync_array[1 + calls++ % (SYNCS - 1)];
}

/* The source of this PE: blocks in reverse order, with gaps of five bytes. */
static void fill(int round, int me, int n) {
    size_t at = 0;
    for (int to = n; to-- > 0;) {
        s_offsets[to] = at;
        s_sizes[to] = bytes(round, me, to, n);
        check_fill(source + at, s_sizes[to], seed(round, me, to));
        at += s_sizes[to] + 5;
    }
    memset(target, EMPTY, room);
}

static void placed(struct set s, int round) {
    int me = index_in(s), n = s.size;
    fill(round, me, n);
    size_t at = 3;
    for (int k = 0; k < n; k++) {
        int from = (k * 7 + round) % n; /* any order that differs from PE to PE */
        if (n % 7 == 0)
            from = k;
        t_offsets[from] = at;
        t_sizes[from] = (size_t)-1;
        at += bytes(round, from, me, n) + 2 + (size_t)me;
    }
    shmemx_alltoallv(target, t_offsets, t_sizes, source, s_offsets, s_sizes, s.start, s.log_stride, n, next_sync(s));
    size_t seen = 0;
    for (int from = 0; from < n; from++) {
        size_t due = bytes(round, from, me, n);
        CHECK(t_sizes[from] == due, 0, "round %d: %zu bytes from %d, not %zu", round, t_sizes[from], from, due);
        CHECK(check_pattern(target + t_offsets[from], due, seed(round, from, me)) < 0, 0, "round %d: the block of %d", round, from);
        seen += due;
        memset(target + t_offsets[from], EMPTY, due);
    }
    CHECK(check_constant(target, room, EMPTY) < 0, 0, "round %d: %zu bytes and others", round, seen);
}

/* The order of the blocks is not defined, so each is identified by its first bytes. */
static void packed(struct set s, int round) {
    int me = index_in(s), n = s.size;
    fill(round, me, n);
    size_t due = 0, got = (size_t)-1;
    for (int from = 0; from < n; from++)
        due += bytes(round, from, me, n);
    /* The target has exactly the received size. */
    shmemx_alltoallv_packed(target, due, &got, source, s_offsets, s_sizes, s.start, s.log_stride, n, next_sync(s));
    CHECK(got == due, 0, "round %d: %zu bytes, not %zu", round, got, due);
    size_t at = 0;
    int left = n;
    char *taken = calloc((size_t)n, 1);
    while (left) {
        int found = -1;
        for (int from = 0; from < n; from++) {
            size_t nbytes = bytes(round, from, me, n);
            if (!taken[from] && (found < 0 || nbytes > bytes(round, found, me, n)) && at + nbytes <= due
                && check_pattern(target + at, nbytes, seed(round, from, me)) < 0)
                found = from;
        }
        if (found < 0)
            break;
        taken[found] = 1;
        at += bytes(round, found, me, n);
        left--;
    }
    CHECK(left == 0, 0, "round %d: %d blocks are not in target", round, left);
    CHECK(check_constant(target + due, room - due, EMPTY) < 0, 0, "round %d: bytes behind the blocks", round);
    free(taken);
}

static void on(struct set s) {
    if (index_in(s) < 0 || s.size < 1)
        return;
    calls = 0;
    for (int round = 0; round < 12; round++) {
        placed(s, round);
        packed(s, round);
    }
    /* Many calls without a barrier, with the same source and target. */
    for (int round = 0; round < 40; round++) {
        size_t got;
        fill(4, index_in(s), s.size);
        shmemx_alltoallv_packed(target, 13, &got, source, s_offsets, s_sizes, s.start, s.log_stride, s.size, next_sync(s));
        CHECK(got == 13 && check_pattern(target, 13, seed(4, index_in(s), index_in(s))) < 0, 0, "a block to oneself");
    }
}

int main(void) {
    check_begin();
    room = (size_t)check_n * (LARGEST + 2 + (size_t)check_n) + 3;
    source = check_malloc((size_t)check_n * (LARGEST + 5));
    target = check_malloc(room);
    size_t *tables = check_malloc(4 * (size_t)check_n * sizeof *tables);
    t_offsets = tables, t_sizes = tables + check_n, s_offsets = t_sizes + check_n, s_sizes = s_offsets + check_n;
    for (int k = 0; k < SYNCS; k++)
        for (int i = 0; i < SHMEM_ALLTOALL_SYNC_SIZE; i++)
            sync_array[k][i] = SHMEM_SYNC_VALUE;
    shmem_barrier_all();
    on((struct set){0, 0, check_n});
    on((struct set){0, 1, (check_n + 1) / 2});
    on((struct set){check_n / 3, 0, check_n - check_n / 3});
    on((struct set){check_n - 1, 5, 1});
    on((struct set){1, 1, check_n / 2});
    on((struct set){0, 0, check_n - check_n / 3});
    shmem_barrier_all();
    shmem_free(tables);
    shmem_free(target);
    shmem_free(source);
    return check_end();
}
