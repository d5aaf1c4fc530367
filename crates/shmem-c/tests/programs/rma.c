/* Contiguous RMA: put, get, p and g, blocking and nonblocking, on the default and on a created
 * context, of every type and size. */
#include "check.h"
#include "types.h"

enum { COUNT = 11, GUARD = 32, PLAIN = COUNT * 16, ROOM = GUARD + PLAIN + GUARD, EMPTY = 0xEE };

static unsigned char *source, *dest;
static int left, right;
static shmem_ctx_t ctx;

static void empty(void) {
    memset(dest, EMPTY, ROOM);
    shmem_barrier_all();
}

/* Checks that `dest` has COUNT elements of PE `from` and that no other bytes changed. */
static void arrived(const char *call, int point, size_t size, int from) {
    long at = check_pattern(dest + GUARD, COUNT * size, from);
    CHECK(at < 0, point, "%s: byte %ld of the data of PE %d differs", call, at, from);
    at = check_constant(dest, GUARD, EMPTY);
    CHECK(at < 0, point, "%s wrote byte %ld before its destination", call, at);
    at = check_constant(dest + GUARD + COUNT * size, GUARD, EMPTY);
    CHECK(at < 0, point, "%s wrote byte %ld behind its destination", call, at);
}

#define PUT(call, complete, point, size)                                                                               \
    do {                                                                                                               \
        empty();                                                                                                       \
        call;                                                                                                          \
        complete;                                                                                                      \
        shmem_barrier_all();                                                                                           \
        arrived(#call, point, size, left);                                                                             \
    } while (0)

#define GET(call, complete, point, size)                                                                               \
    do {                                                                                                               \
        memset(dest, EMPTY, ROOM);                                                                                     \
        call;                                                                                                          \
        complete;                                                                                                      \
        arrived(#call, point, size, right);                                                                            \
    } while (0)

#define BLOCKS(NAME, T, SIZE, PUT1, CTX_PUT1, PUT_NBI, CTX_PUT_NBI, GET1, CTX_GET1, GET_NBI, CTX_GET_NBI)                 \
    static void blocks_##NAME(void) {                                                                                  \
        T *d = (T *)(dest + GUARD);                                                                                    \
        const T *s = (const T *)source;                                                                                \
        PUT(PUT1(d, s, COUNT, right), , 42, SIZE);                                                                     \
        PUT(CTX_PUT1(ctx, d, s, COUNT, right), shmem_ctx_quiet(ctx), 40, SIZE);                                        \
        PUT(PUT_NBI(d, s, COUNT, right), , 28, SIZE);                                                                  \
        PUT(CTX_PUT_NBI(ctx, d, s, COUNT, right), shmem_ctx_quiet(ctx), 28, SIZE);                                     \
        GET(GET1(d, s, COUNT, right), , 31, SIZE);                                                                     \
        GET(CTX_GET1(ctx, d, s, COUNT, right), , 31, SIZE);                                                            \
        GET(GET_NBI(d, s, COUNT, right), shmem_quiet(), 28, SIZE);                                                     \
        GET(CTX_GET_NBI(ctx, d, s, COUNT, right), shmem_ctx_quiet(ctx), 28, SIZE);                                     \
        empty();                                                                                                       \
        PUT1(NULL, NULL, 0, right);                                                                                    \
        CTX_PUT1(ctx, d, s, 0, right);                                                                                 \
        PUT_NBI(d, s, 0, right);                                                                                       \
        CTX_PUT_NBI(ctx, NULL, NULL, 0, right);                                                                        \
        GET1(NULL, NULL, 0, right);                                                                                    \
        CTX_GET1(ctx, d, s, 0, right);                                                                                 \
        GET_NBI(d, s, 0, right);                                                                                       \
        CTX_GET_NBI(ctx, NULL, NULL, 0, right);                                                                        \
        shmem_ctx_quiet(ctx);                                                                                          \
        shmem_barrier_all();                                                                                           \
        CHECK(check_constant(dest, ROOM, EMPTY) < 0, 29, #NAME ": a transfer of no elements wrote something");         \
    }

#define TYPED_BLOCKS(N, T)                                                                                             \
    BLOCKS(N, T, sizeof(T), shmem_##N##_put, shmem_ctx_##N##_put, shmem_##N##_put_nbi, shmem_ctx_##N##_put_nbi,        \
           shmem_##N##_get, shmem_ctx_##N##_get, shmem_##N##_get_nbi, shmem_ctx_##N##_get_nbi)
#define SIZED_BLOCKS(S)                                                                                                \
    BLOCKS(bits##S, void, S / 8, shmem_put##S, shmem_ctx_put##S, shmem_put##S##_nbi, shmem_ctx_put##S##_nbi,           \
           shmem_get##S, shmem_ctx_get##S, shmem_get##S##_nbi, shmem_ctx_get##S##_nbi)

RMA_TYPES(TYPED_BLOCKS)
SIZES(SIZED_BLOCKS)
BLOCKS(mem, void, 1, shmem_putmem, shmem_ctx_putmem, shmem_putmem_nbi, shmem_ctx_putmem_nbi, shmem_getmem,
       shmem_ctx_getmem, shmem_getmem_nbi, shmem_ctx_getmem_nbi)

/* p and g of one element between two that must not change. */
#define SINGLE(N, T)                                                                                                   \
    static void single_##N(void) {                                                                                     \
        T *cells = (T *)dest;                                                                                          \
        memset(dest, EMPTY, ROOM);                                                                                     \
        for (int i = 0; i < 2; i++) {                                                                                  \
            shmem_barrier_all();                                                                                       \
            T sent = VALUE(T, 2 * check_me + i), due = VALUE(T, 2 * left + i);                                         \
            if (i)                                                                                                     \
                shmem_ctx_##N##_p(ctx, &cells[1], sent, right), shmem_ctx_quiet(ctx);                                  \
            else                                                                                                       \
                shmem_##N##_p(&cells[1], sent, right);                                                                 \
            shmem_barrier_all();                                                                                       \
            CHECK(cells[1] == due, 27, "shmem%s_" #N "_p: another value arrived", i ? "_ctx" : "");                 \
            CHECK(check_constant(&cells[0], sizeof(T), EMPTY) < 0 && check_constant(&cells[2], sizeof(T), EMPTY) < 0,  \
                  27, "shmem%s_" #N "_p wrote beside its element", i ? "_ctx" : "");                                   \
        }                                                                                                              \
        T *mine = (T *)(source + PLAIN);                                                                               \
        mine[0] = VALUE(T, check_me), mine[1] = VALUE(T, check_me + 1000);                                             \
        shmem_barrier_all();                                                                                           \
        CHECK(shmem_##N##_g(&mine[1], right) == VALUE(T, right + 1000), 31, "shmem_" #N "_g: another value");          \
        CHECK(shmem_ctx_##N##_g(ctx, &mine[0], right) == VALUE(T, right), 31, "shmem_ctx_" #N "_g: another value");    \
        CHECK(shmem_##N##_g(&mine[0], check_me) == VALUE(T, check_me), 31, "shmem_" #N "_g of myself");                \
        shmem_barrier_all();                                                                                           \
    }

RMA_TYPES(SINGLE)

/* Every PE writes its own slot on every PE and reads it. */
static void all_pairs(void) {
    long *slots = check_malloc(check_n * sizeof *slots);
    for (int pe = 0; pe < check_n; pe++)
        slots[pe] = -1;
    shmem_barrier_all();
    for (int pe = 0; pe < check_n; pe++)
        shmem_long_p(&slots[check_me], 1000 * check_me + pe, pe);
    shmem_quiet();
    for (int pe = 0; pe < check_n; pe++)
        CHECK(shmem_long_g(&slots[check_me], pe) == 1000 * check_me + pe, 40, "what I put on PE %d is not there after quiet",
              pe);
    shmem_barrier_all();
    for (int pe = 0; pe < check_n; pe++)
        CHECK(slots[pe] == 1000 * pe + check_me, 42, "PE %d's slot holds %ld", pe, slots[pe]);
    shmem_free(slots);
}

/* The source of a blocking put may be changed as soon as the call returns, in any kind of
 * memory. */
static void source_is_reusable(void) {
    enum { WORDS = 64 };
    static int in_data;
    int *words = check_malloc(2 * WORDS * sizeof *words);
    shmem_barrier_all();
    for (int i = 0; i < WORDS; i++) {
        int on_stack = 10000 * check_me + i;
        shmem_int_put(&words[i], &on_stack, 1, right);
        on_stack = -1;
        in_data = -10000 * check_me - i;
        shmem_int_put(&words[WORDS + i], &in_data, 1, right);
        in_data = -1;
    }
    shmem_barrier_all();
    for (int i = 0; i < WORDS; i++) {
        CHECK(words[i] == 10000 * left + i, 27, "put %d from the stack came as %d", i, words[i]);
        CHECK(words[WORDS + i] == -10000 * left - i, 27, "put %d from static data came as %d", i, words[WORDS + i]);
    }
    shmem_free(words);
}

/* The "mem" routines need no alignment. Sizes around those at which copies change, up to several
 * MiB. */
static void odd_sizes(void) {
    static const size_t sizes[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 255, 4095, 4097, 65537, (3 << 20) + 5};
    enum { LARGEST = (3 << 20) + 64 };
    unsigned char *from = check_malloc(LARGEST), *to = check_malloc(LARGEST), *back = malloc(LARGEST);
    check_fill(from, LARGEST, check_me);
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        size_t nbytes = sizes[k], shift = 1 + k % 7;
        memset(to, EMPTY, nbytes + 16);
        shmem_barrier_all();
        shmem_putmem(to + shift, from, nbytes, right);
        shmem_quiet();
        shmem_getmem(back + 1, to + shift, nbytes, right);
        CHECK(memcmp(back + 1, from, nbytes) == 0, 40, "%zu bytes read back after quiet differ", nbytes);
        shmem_barrier_all();
        CHECK(check_pattern(to + shift, nbytes, left) < 0, 31, "putmem of %zu bytes, %zu off a boundary", nbytes, shift);
        CHECK(check_constant(to, shift, EMPTY) < 0 && check_constant(to + shift + nbytes, 8, EMPTY) < 0, 31,
              "putmem of %zu bytes wrote beside them", nbytes);
    }
    shmem_barrier_all();
    memset(back, 0, LARGEST);
    shmem_getmem_nbi(back + 3, from, LARGEST - 3, right);
    shmem_quiet();
    CHECK(check_pattern(back + 3, LARGEST - 3, right) < 0, 28, "getmem_nbi of several MiB");
    shmem_barrier_all();
    free(back);
    shmem_free(to);
    shmem_free(from);
}

/* Source and destination in different kinds of memory: static data, stack, C heap, and both in the
 * symmetric heap. */
static void kinds_of_memory(void) {
    static long in_data[COUNT];
    long on_stack[COUNT], *on_heap = malloc(COUNT * sizeof *on_heap), *words = check_malloc(2 * COUNT * sizeof *words);
    long *local[] = {in_data, on_stack, on_heap, words + COUNT};
    for (int kind = 0; kind < 4; kind++) {
        for (int i = 0; i < COUNT; i++)
            local[kind][i] = 100 * check_me + 10 * kind + i;
        shmem_barrier_all();
        shmem_put64(words, local[kind], COUNT, right);
        shmem_barrier_all();
        memset(local[kind], 0, COUNT * sizeof(long));
        shmem_get64(local[kind], words, COUNT, right);
        for (int i = 0; i < COUNT; i++) {
            CHECK(words[i] == 100 * left + 10 * kind + i, 31, "kind %d: word %d put is %ld", kind, i, words[i]);
            CHECK(local[kind][i] == 100 * check_me + 10 * kind + i, 31, "kind %d: word %d got is %ld", kind, i, local[kind][i]);
        }
        shmem_barrier_all();
    }
    shmem_free(words);
    free(on_heap);
}

/* The elements of shmem_put8 have 1 byte, those of shmem_put128 16 bytes. */
static void sizes_are_bits(void) {
    unsigned char from[32], *to = check_malloc(48);
    check_fill(from, sizeof from, check_me);
    memset(to, EMPTY, 48);
    shmem_barrier_all();
    shmem_put8(to + 1, from, 3, right);
    shmem_put128(to + 16, from, 1, right);
    shmem_barrier_all();
    CHECK(check_pattern(to + 1, 3, left) < 0 && to[0] == EMPTY && to[4] == EMPTY, 31, "put8 of 3 elements are 3 bytes");
    CHECK(check_pattern(to + 16, 16, left) < 0 && to[32] == EMPTY, 31, "put128 of one element are 16 bytes");
    shmem_free(to);
}

/* The standard requires aligned words. Old programs have unaligned ones, in the heap and in static
 * data. */
static void odd_places(void) {
    static unsigned char in_data[ROOM];
    unsigned char *places[] = {dest, in_data}, due[sizeof(long)];
    for (int k = 0; k < 2; k++)
        for (int shift = 0; shift < (int)sizeof(long); shift++) {
            long *word = (long *)(places[k] + GUARD + shift), value = 0x0102030405060708 * (left + 1) + shift;
            memset(places[k], EMPTY, ROOM);
            shmem_barrier_all();
            shmem_long_p(word, 0x0102030405060708 * (check_me + 1) + shift, right);
            shmem_barrier_all();
            memcpy(due, &value, sizeof due);
            CHECK(memcmp(word, due, sizeof due) == 0, 31, "p to a word %d off a boundary", shift);
            CHECK(check_constant(places[k], GUARD + shift, EMPTY) < 0, 31, "p wrote before its word");
            CHECK(check_constant((unsigned char *)(word + 1), GUARD, EMPTY) < 0, 31, "p wrote behind its word");
            CHECK(shmem_long_g(word, check_me) == value, 31, "g of a word %d off a boundary", shift);
            shmem_barrier_all();
        }
}

int main(void) {
    check_begin();
    left = (check_me + check_n - 1) % check_n;
    right = (check_me + 1) % check_n;
    source = check_malloc(ROOM + 64);
    dest = check_malloc(ROOM);
    check_fill(source, PLAIN, check_me);
    CHECK(shmem_ctx_create(0, &ctx) == 0, 20, "no context can be had");
    shmem_barrier_all();
#define BLOCKS_OF(N, T) blocks_##N();
#define BLOCKS_OF_SIZE(S) blocks_bits##S();
    RMA_TYPES(BLOCKS_OF)
    SIZES(BLOCKS_OF_SIZE)
    blocks_mem();
#define SINGLE_OF(N, T) single_##N();
    RMA_TYPES(SINGLE_OF)
    all_pairs();
    source_is_reusable();
    odd_sizes();
    kinds_of_memory();
    sizes_are_bits();
    odd_places();
    shmem_ctx_destroy(ctx);
    shmem_free(dest);
    shmem_free(source);
    return check_end();
}
