/* A large heap of which a network registers only allocated blocks: operations across the borders of
 * registrations. argv[1] is the MiB to allocate, argv[2] the distance of the borders in MiB. */
#include "../programs/check.h"

enum { AROUND = 4096, POINT = 65 };

/* Puts, gets, strided puts, a put with a signal and atomic operations at a border. */
static void around(unsigned char *border, unsigned char *source, int seed) {
    int right = (check_me + 1) % check_n, left = (check_me + check_n - 1) % check_n;
    unsigned char *low = border - AROUND / 2, *copy = malloc(AROUND);
    uint64_t *words = (uint64_t *)border - 2, *signal = (uint64_t *)(border + AROUND);

    check_fill(source, AROUND, seed + check_me);
    *signal = 0;
    shmem_barrier_all();
    shmem_putmem(low, source, AROUND, right);
    shmem_barrier_all();
    CHECK(check_pattern(low, AROUND, seed + left) < 0, POINT, "a put is not around %p", (void *)border);
    shmem_getmem(copy, low, AROUND, right);
    CHECK(check_pattern(copy, AROUND, seed + check_me) < 0, POINT, "a get is not from around %p", (void *)border);
    shmem_barrier_all();

    /* From memory around the border as well. */
    check_fill(low, AROUND, seed + check_n + check_me);
    shmem_barrier_all();
    shmem_getmem(source, low, AROUND, right);
    CHECK(check_pattern(source, AROUND, seed + check_n + right) < 0, POINT, "another get around %p", (void *)border);
    shmem_barrier_all();
    shmem_putmem_nbi(source, low, AROUND, right);
    shmem_barrier_all();
    CHECK(check_pattern(source, AROUND, seed + check_n + left) < 0, POINT, "a put from around %p", (void *)border);

    shmem_uint64_iput((uint64_t *)low, (uint64_t *)source, 2, 1, AROUND / 16, right);
    shmem_barrier_all();
    shmem_uint64_iget((uint64_t *)copy, (uint64_t *)low, 1, 2, AROUND / 16, right);
    CHECK(!memcmp(copy, source, AROUND / 2), POINT, "strided operations around %p", (void *)border);
    shmem_barrier_all();

    check_fill(copy, AROUND, seed + check_me);
    shmem_putmem_signal(low, copy, AROUND, signal, 7, SHMEM_SIGNAL_SET, right);
    shmem_signal_wait_until(signal, SHMEM_CMP_EQ, 7);
    CHECK(check_pattern(low, AROUND, seed + left) < 0, POINT, "a put with a signal around %p", (void *)border);
    memset(words, 0, 4 * sizeof *words);
    shmem_barrier_all();
    for (int i = 0; i < 4 * check_n; i++)
        shmem_uint64_atomic_fetch_add(&words[i % 4], 1, i / 4);
    shmem_barrier_all();
    for (int i = 0; i < 4; i++)
        CHECK(words[i] == (uint64_t)check_n, POINT, "word %d around %p", i, (void *)border);
    shmem_barrier_all();
    free(copy);
}

static void each_border(unsigned char *block, size_t nbytes, size_t distance, unsigned char *source) {
    uintptr_t end = (uintptr_t)block + nbytes - 2 * AROUND;
    /* The heap is aligned to more than the distance. */
    for (uintptr_t at = ((uintptr_t)block + AROUND + distance) / distance * distance; at < end; at += distance)
        around((unsigned char *)at, source, (int)(at / distance % 1000));
}

int main(int argc, char **argv) {
    check_begin();
    size_t nbytes = strtoull(argc > 1 ? argv[1] : "192", NULL, 0) << 20;
    size_t distance = strtoull(argc > 2 ? argv[2] : "16", NULL, 0) << 20;
    unsigned char *source = check_malloc(AROUND), *block = check_malloc(nbytes);
    each_border(block, nbytes, distance, source);
    shmem_free(block);
    /* The same memory again, and the memory to which a larger block is moved. */
    unsigned char *first = check_malloc(nbytes / 4), *second = shmem_align(4096, nbytes / 4);
    CHECK(first && second, POINT, "what was freed cannot be had again");
    shmem_free(first);
    second = shmem_realloc(second, nbytes / 2);
    CHECK(second != NULL, POINT, "a block of %zu bytes does not grow", nbytes / 4);
    each_border(second, nbytes / 2, distance, source);
    shmem_free(second);
    shmem_free(source);
    return check_end();
}
