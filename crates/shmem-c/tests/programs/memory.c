/* The symmetric heap: alignment, symmetry, size zero without a barrier, realloc, exhaustion and
 * recovery. */
#include "check.h"

/* A block has the same offset on all PEs: a put to this PE's address arrives at the neighbor's own
 * address. */
static void symmetric(void *block, size_t size, int point, const char *what) {
    CHECK(block != NULL, point, "%s gave a null pointer", what);
    if (!block)
        return;
    CHECK((uintptr_t)block % _Alignof(max_align_t) == 0, point, "%s: address %p is not aligned for every type", what, block);
    unsigned char mark = (unsigned char)(check_me + 1), *bytes = block;
    int right = (check_me + 1) % check_n, left = (check_me + check_n - 1) % check_n;
    shmem_putmem(&bytes[size - 1], &mark, 1, right);
    shmem_putmem(&bytes[0], &mark, 1, right);
    shmem_barrier_all();
    CHECK(bytes[0] == (unsigned char)(left + 1) && bytes[size - 1] == (unsigned char)(left + 1), point,
          "%s: not the same place on all PEs", what);
    shmem_barrier_all();
}

static void every_allocator(void) {
    static const size_t sizes[] = {1, 7, 8, 100, 4096, 65537, 1 << 20};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        size_t size = sizes[k];
        unsigned char *a = shmem_malloc(size), *b = shmem_calloc(size, 3), *c = shmem_align(256, size);
        unsigned char *d = shmem_malloc_with_hints(size, SHMEM_MALLOC_ATOMICS_REMOTE | SHMEM_MALLOC_SIGNAL_REMOTE);
        unsigned char *e = shmem_malloc_with_hints(size, 0), *f = shmem_malloc_with_hints(size, 1L << 40);
        CHECK(check_constant(b, 3 * size, 0) < 0, 66, "calloc of %zu bytes is not zero", 3 * size);
        shmem_barrier_all();
        symmetric(a, size, 65, "malloc");
        symmetric(b, 3 * size, 66, "calloc");
        symmetric(c, size, 68, "align");
        symmetric(d, size, 68, "malloc_with_hints");
        symmetric(e, size, 68, "malloc_with_hints of no hints");
        symmetric(f, size, 68, "malloc_with_hints of unknown hints");
        shmem_free(c), shmem_free(a), shmem_free(f), shmem_free(b), shmem_free(e), shmem_free(d);
    }
    for (size_t alignment = sizeof(void *); alignment <= 1 << 16; alignment *= 2) {
        void *block = shmem_align(alignment, 24);
        CHECK((uintptr_t)block % alignment == 0, 68, "shmem_align(%zu) gave %p", alignment, block);
        symmetric(block, 24, 68, "align");
        shmem_free(block);
    }
}

/* calloc zeroes memory that was used before, on all PEs before any PE returns. */
static void calloc_is_zero_everywhere(void) {
    int right = (check_me + 1) % check_n;
    for (int turn = 0; turn < 30; turn++) {
        unsigned char *block = shmem_malloc(5000);
        memset(block, 0xAB, 5000);
        shmem_free(block);
        block = shmem_calloc(50, 100);
        unsigned char copy[5000];
        shmem_getmem(copy, block, 5000, right);
        CHECK(check_constant(copy, 5000, 0) < 0, 66, "turn %d: not yet zero on PE %d", turn, right);
        shmem_barrier_all();
        shmem_free(block);
    }
}

/* Calls with size 0 or a null pointer have no barrier, so a single PE may make them. */
static void nothing(void) {
    if (check_me == check_n - 1) {
        CHECK(shmem_malloc(0) == NULL, 66, "malloc(0)");
        CHECK(shmem_calloc(0, 8) == NULL, 66, "calloc(0, 8)");
        CHECK(shmem_calloc(8, 0) == NULL, 66, "calloc(8, 0)");
        CHECK(shmem_align(64, 0) == NULL, 66, "align(64, 0)");
        CHECK(shmem_malloc_with_hints(0, SHMEM_MALLOC_ATOMICS_REMOTE) == NULL, 66, "malloc_with_hints(0)");
        CHECK(shmem_realloc(NULL, 0) == NULL, 67, "realloc(NULL, 0)");
        shmem_free(NULL);
    }
    shmem_barrier_all();
}

static void reallocate(void) {
    unsigned char *block = shmem_realloc(NULL, 100);
    symmetric(block, 100, 67, "realloc of a null pointer");
    check_fill(block, 100, check_me);
    static const size_t sizes[] = {101, 5000, 200000, 300, 99, 1 << 20, 50};
    size_t kept = 100;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        unsigned char *moved = shmem_realloc(block, sizes[k]);
        CHECK(moved != NULL, 67, "realloc to %zu gave a null pointer", sizes[k]);
        if (!moved)
            continue;
        block = moved;
        kept = kept < sizes[k] ? kept : sizes[k];
        CHECK(check_pattern(block, kept, check_me) < 0, 67, "realloc to %zu lost the first %zu bytes", sizes[k], kept);
        shmem_barrier_all();
        symmetric(block, sizes[k], 67, "realloc");
        block[0] = check_byte(check_me, 0);
        if (kept == sizes[k])
            block[kept - 1] = check_byte(check_me, kept - 1);
    }
    CHECK(shmem_realloc(block, (size_t)1 << 60) == NULL, 67, "realloc to 2^60 bytes");
    CHECK(check_pattern(block, kept, check_me) < 0, 67, "a failed realloc changed the block");
    CHECK(shmem_realloc(block, 0) == NULL, 67, "realloc to 0");
    unsigned char *hinted = shmem_malloc_with_hints(1000, SHMEM_MALLOC_ATOMICS_REMOTE);
    hinted = shmem_realloc(hinted, 3000);
    symmetric(hinted, 3000, 67, "realloc of a block with hints");
    shmem_free(hinted);
}

/* All free memory is allocated, further requests fail on all PEs, and after it is freed it is one
 * block again. */
static void exhausted(void) {
    enum { BLOCKS = 4000, SIZE = 1 << 20 };
    static void *blocks[BLOCKS];
    CHECK(shmem_malloc((size_t)1 << 60) == NULL && shmem_malloc(SIZE_MAX) == NULL, 65, "2^60 bytes");
    CHECK(shmem_calloc((size_t)1 << 40, (size_t)1 << 40) == NULL, 65, "calloc whose product overflows");
    CHECK(shmem_align(4096, SIZE_MAX - 100) == NULL, 65, "align of almost SIZE_MAX bytes");
    int made = 0;
    while (made < BLOCKS && (blocks[made] = shmem_malloc(SIZE)))
        made++;
    CHECK(made > 0 && made < BLOCKS, 65, "%d blocks of 1 MiB", made);
    for (int i = 0; i < made; i += 2)
        shmem_free(blocks[i]);
    for (int i = 1; i < made; i += 2)
        shmem_free(blocks[i]);
    void *whole = shmem_malloc((size_t)made * SIZE);
    CHECK(whole != NULL, 65, "%d MiB were given in blocks, and not in one piece", made);
    shmem_free(whole);
}

/* malloc ends with a barrier and free begins with one, and both complete the default context's operations. */
static void barriers(void) {
    int right = (check_me + 1) % check_n, left = (check_me + check_n - 1) % check_n;
    long *words = shmem_calloc(2, sizeof *words);
    for (long turn = 1; turn <= 30; turn++) {
        long value = 100 * turn + check_me;
        shmem_long_put_nbi(&words[0], &value, 1, right);
        void *block = turn % 3 == 0   ? shmem_malloc(64)
                      : turn % 3 == 1 ? shmem_align(64, 64)
                                      : shmem_malloc_with_hints(64, SHMEM_MALLOC_SIGNAL_REMOTE);
        CHECK(words[0] == 100 * turn + left, 65, "turn %ld: a put before an allocation has not come", turn);
        shmem_long_put_nbi(&words[1], &value, 1, right);
        shmem_free(block);
        CHECK(words[1] == 100 * turn + left, 65, "turn %ld: a put before free has not come", turn);
        shmem_barrier_all();
    }
    shmem_free(words);
}

/* Random allocations and frees, the same on all PEs; the contents of blocks remain. */
static void mixture(void) {
    enum { SLOTS = 30, TURNS = 400 };
    unsigned char *blocks[SLOTS] = {0};
    size_t sizes[SLOTS];
    for (int turn = 0; turn < TURNS; turn++) {
        uint64_t dice = check_mix(turn);
        int slot = dice % SLOTS;
        if (blocks[slot]) {
            CHECK(check_pattern(blocks[slot], sizes[slot], 1000 * check_me + slot) < 0, 65, "turn %d: a block was overwritten",
                  turn);
            shmem_free(blocks[slot]);
            blocks[slot] = NULL;
        } else {
            sizes[slot] = 1 + (dice >> 20) % 3000;
            blocks[slot] = dice >> 60 ? shmem_malloc(sizes[slot]) : shmem_align(512, sizes[slot]);
            CHECK(blocks[slot] != NULL, 65, "turn %d: no memory", turn);
            if (blocks[slot])
                check_fill(blocks[slot], sizes[slot], 1000 * check_me + slot);
        }
    }
    for (int slot = 0; slot < SLOTS; slot++)
        shmem_free(blocks[slot]);
}

/* The deprecated names. */
static void old_names(void) {
    void *a = shmalloc(100), *b = shmemalign(128, 100);
    symmetric(a, 100, 65, "shmalloc");
    symmetric(b, 100, 68, "shmemalign");
    CHECK((uintptr_t)b % 128 == 0, 68, "shmemalign(128) gave %p", b);
    a = shrealloc(a, 1000);
    symmetric(a, 1000, 67, "shrealloc");
    shfree(b);
    shfree(a);
}

int main(void) {
    check_begin();
    every_allocator();
    calloc_is_zero_everywhere();
    nothing();
    reallocate();
    exhausted();
    barriers();
    mixture();
    old_names();
    exhausted();
    return check_end();
}
