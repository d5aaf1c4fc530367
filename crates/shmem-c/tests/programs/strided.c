/* Strided RMA: iput, iget, ibput and ibget compared with a model, of every type and size, with
 * contexts. */
#include "check.h"
#include "types.h"

enum { ELEMS = 40, ROOM = ELEMS * 16, EMPTY = 0xEE };

static unsigned char *source, *dest, *model;
static int left, right;
static shmem_ctx_t ctx;

static void empty(void) {
    memset(dest, EMPTY, ROOM);
    shmem_barrier_all();
}

/* The expected contents of `dest` after a transfer of data of PE `from`. Strides and blocks are in
 * elements. */
static void arrived(const char *call, int point, int from, size_t size, int dst, int sst, int bsize, int nblocks) {
    memset(model, EMPTY, ROOM);
    for (int block = 0; block < nblocks; block++)
        for (size_t byte = 0; byte < bsize * size; byte++)
            model[block * dst * size + byte] = check_byte(from, block * sst * size + byte);
    for (int i = 0; i < ROOM; i++)
        if (dest[i] != model[i]) {
            CHECK(0, point, "%s (strides %d and %d, blocks of %d): byte %d is %#x, not %#x", call, dst, sst, bsize, i,
                  dest[i], model[i]);
            break;
        }
}

/* Strides and counts that stay within ELEMS. */
static const struct {
    int dst, sst, nelems;
} singles[] = {{1, 1, 13}, {2, 3, 9}, {5, 1, 7}, {1, 4, 8}, {3, 2, 1}, {7, 7, 0}};
static const struct {
    int dst, sst, bsize, nblocks;
} blocks[] = {{1, 2, 1, 9}, {2, 2, 2, 7}, {5, 3, 3, 6}, {4, 7, 4, 5}, {9, 5, 2, 3}, {6, 6, 5, 1}, {3, 3, 2, 0}};

#define PUT(call, complete, point, size, dst, sst, bsize, nblocks)                                                     \
    do {                                                                                                               \
        empty();                                                                                                       \
        call;                                                                                                          \
        complete;                                                                                                      \
        shmem_barrier_all();                                                                                           \
        arrived(#call, point, left, size, dst, sst, bsize, nblocks);                                                   \
    } while (0)

#define GET(call, point, size, dst, sst, bsize, nblocks)                                                               \
    do {                                                                                                               \
        memset(dest, EMPTY, ROOM);                                                                                     \
        call;                                                                                                          \
        arrived(#call, point, right, size, dst, sst, bsize, nblocks);                                                  \
    } while (0)

#define STRIDED(NAME, T, SIZE, IPUT, CTX_IPUT, IGET, CTX_IGET, IBPUT, CTX_IBPUT, IBGET, CTX_IBGET)                     \
    static void strided_##NAME(void) {                                                                                 \
        T *d = (T *)dest;                                                                                              \
        const T *s = (const T *)source;                                                                                \
        for (size_t k = 0; k < sizeof singles / sizeof *singles; k++) {                                                \
            int dst = singles[k].dst, sst = singles[k].sst, n = singles[k].nelems;                                     \
            if (k % 2)                                                                                                 \
                PUT(IPUT(d, s, dst, sst, n, right), , 30, SIZE, dst, sst, 1, n);                                       \
            else                                                                                                       \
                PUT(CTX_IPUT(ctx, d, s, dst, sst, n, right), shmem_ctx_quiet(ctx), 30, SIZE, dst, sst, 1, n);          \
            GET(IGET(d, s, dst, sst, n, right), 30, SIZE, dst, sst, 1, n);                                             \
            GET(CTX_IGET(ctx, d, s, dst, sst, n, right), 30, SIZE, dst, sst, 1, n);                                    \
        }                                                                                                              \
        for (size_t k = 0; k < sizeof blocks / sizeof *blocks; k++) {                                                  \
            int dst = blocks[k].dst, sst = blocks[k].sst, b = blocks[k].bsize, n = blocks[k].nblocks;                  \
            if (k % 2)                                                                                                 \
                PUT(IBPUT(d, s, dst, sst, b, n, right), , 30, SIZE, dst, sst, b, n);                                   \
            else                                                                                                       \
                PUT(CTX_IBPUT(ctx, d, s, dst, sst, b, n, right), shmem_ctx_quiet(ctx), 30, SIZE, dst, sst, b, n);      \
            GET(IBGET(d, s, dst, sst, b, n, right), 30, SIZE, dst, sst, b, n);                                         \
            GET(CTX_IBGET(ctx, d, s, dst, sst, b, n, right), 30, SIZE, dst, sst, b, n);                                \
        }                                                                                                              \
        empty();                                                                                                       \
        IPUT(NULL, NULL, 1, 1, 0, right);                                                                              \
        CTX_IPUT(ctx, NULL, NULL, 1, 1, 0, right);                                                                     \
        IGET(NULL, NULL, 1, 1, 0, right);                                                                              \
        CTX_IGET(ctx, NULL, NULL, 1, 1, 0, right);                                                                     \
        IBPUT(NULL, NULL, 2, 2, 2, 0, right);                                                                          \
        CTX_IBPUT(ctx, d, s, 2, 2, 0, 3, right);                                                                       \
        IBGET(d, s, 2, 2, 0, 3, right);                                                                                \
        CTX_IBGET(ctx, NULL, NULL, 2, 2, 2, 0, right);                                                                 \
        shmem_barrier_all();                                                                                           \
        CHECK(check_constant(dest, ROOM, EMPTY) < 0, 29, #NAME ": a transfer of no elements wrote something");         \
    }

#define STRIDED_TYPE(N, T)                                                                                             \
    STRIDED(N, T, sizeof(T), shmem_##N##_iput, shmem_ctx_##N##_iput, shmem_##N##_iget, shmem_ctx_##N##_iget,           \
            shmem_##N##_ibput, shmem_ctx_##N##_ibput, shmem_##N##_ibget, shmem_ctx_##N##_ibget)
#define STRIDED_SIZE(S)                                                                                                \
    STRIDED(bits##S, void, S / 8, shmem_iput##S, shmem_ctx_iput##S, shmem_iget##S, shmem_ctx_iget##S, shmem_ibput##S,  \
            shmem_ctx_ibput##S, shmem_ibget##S, shmem_ctx_ibget##S)

RMA_TYPES(STRIDED_TYPE)
SIZES(STRIDED_SIZE)

/* Contiguous at one end, and longer than one message; blocks of few elements and of many. */
static void many(void) {
    static const struct {
        int dst, sst, bsize, nblocks;
    } shapes[] = {{1, 3, 1, 3000}, {3, 1, 1, 3000}, {1, 1, 1, 3000}, {5, 7, 5, 700}, {7, 5, 5, 700}, {300, 310, 300, 9}};
    enum { MANY = 10000 };
    long *from = check_malloc(MANY * sizeof(long)), *to = check_malloc(MANY * sizeof(long));
    for (int i = 0; i < MANY; i++)
        from[i] = 1000000L * check_me + i;
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
        int dst = shapes[k].dst, sst = shapes[k].sst, b = shapes[k].bsize, n = shapes[k].nblocks;
        for (int is_get = 0; is_get < 2; is_get++) {
            memset(to, EMPTY, MANY * sizeof(long));
            shmem_barrier_all();
            if (is_get)
                shmem_long_ibget(to, from, dst, sst, b, n, right);
            else
                shmem_long_ibput(to, from, dst, sst, b, n, right);
            shmem_barrier_all();
            long wrong = 0, empty;
            memset(&empty, EMPTY, sizeof empty);
            for (long i = 0; i < MANY; i++) {
                long block = i / dst, in = i % dst;
                long at = block * sst + in;
                long due = block < n && in < b ? 1000000L * (is_get ? right : left) + at : empty;
                wrong += to[i] != due;
            }
            CHECK(wrong == 0, 30, "%s of %d blocks of %d (strides %d and %d): %ld elements are wrong",
                  is_get ? "ibget" : "ibput", n, b, dst, sst, wrong);
        }
    }
    shmem_free(to);
    shmem_free(from);
}

int main(void) {
    check_begin();
    left = (check_me + check_n - 1) % check_n;
    right = (check_me + 1) % check_n;
    source = check_malloc(ROOM);
    dest = check_malloc(ROOM);
    model = malloc(ROOM);
    check_fill(source, ROOM, check_me);
    CHECK(shmem_ctx_create(0, &ctx) == 0, 20, "no context can be had");
    shmem_barrier_all();
#define RUN_TYPE(N, T) strided_##N();
#define RUN_SIZE(S) strided_bits##S();
    RMA_TYPES(RUN_TYPE)
    SIZES(RUN_SIZE)
    many();
    shmem_ctx_destroy(ctx);
    shmem_free(dest);
    shmem_free(source);
    free(model);
    return check_end();
}
