/* A transfer of more than 2 GiB from the first PE to the last one, and back, and operations on words
 * beyond 2 GiB of a block. Both PEs get as much memory. Does nothing if the heap has no room for the
 * block: set SHMEM_SYMMETRIC_SIZE=2200m. */
#include "check.h"
#include <shmemx.h>

enum { AROUND = 4096, POINT = 27 };

static const size_t BORDER = (size_t)2 << 30, NBYTES = ((size_t)2 << 30) + 5 * AROUND + 3;

/* The offsets of the places whose bytes are compared: both ends, and around the border. */
enum { PLACES = 3 };
static size_t place(int i) { return i == 0 ? 0 : i == 1 ? BORDER - AROUND / 2 : NBYTES - AROUND; }

static void fill(unsigned char *block, int seed) {
    for (int i = 0; i < PLACES; i++)
        check_fill(block + place(i), AROUND, seed + i);
}

static void expect(const unsigned char *block, int seed, const char *what) {
    for (int i = 0; i < PLACES; i++) {
        const long at = check_pattern(block + place(i), AROUND, seed + i);
        CHECK(at < 0, POINT, "%s of %zu bytes: byte %zu is wrong", what, NBYTES, place(i) + (size_t)at);
    }
}

/* The last PE gets the whole block of the first one, and puts it back. */
static void whole_block(unsigned char *block, int last) {
    if (check_me == 0)
        fill(block, 100);
    shmem_barrier_all();
    if (check_me == last) {
        shmem_getmem(block, block, NBYTES, 0);
        expect(block, 100, "get");
        fill(block, 200);
        shmem_putmem(block, block, NBYTES, 0);
    }
    shmem_barrier_all();
    if (check_me == 0)
        expect(block, 200, "put");
    shmem_barrier_all();
}

/* Words behind the border of the last PE's block. */
static void words(unsigned char *block, int last) {
    long *word = (long *)(block + BORDER + AROUND);
    if (check_me == last)
        memset(word, 0, 16 * sizeof *word);
    shmem_barrier_all();
    shmem_long_atomic_add(&word[0], check_me + 1, last);
    shmem_long_p(&word[2 + check_me % 8], 7, last);
    shmem_barrier_all();
    const long sum = shmem_long_g(&word[0], last);
    CHECK(sum == (long)check_n * (check_n + 1) / 2, POINT, "a word beyond 2 GiB is %ld", sum);
    CHECK(shmem_long_g(&word[2 + check_me % 8], last) == 7, POINT, "p did not write beyond 2 GiB");
    shmem_barrier_all();
}

int main(void) {
    check_begin();
    shmemx_heap_info_t heap;
    shmemx_heap_info(&heap);
    if (check_n == 1)
        verify_not_there("it needs two PEs");
    else if (heap.largest_free < NBYTES)
        verify_not_there("it needs SHMEM_SYMMETRIC_SIZE=2200m, and that much memory for two of the PEs");
    else {
        unsigned char *block = check_malloc(NBYTES);
        whole_block(block, check_n - 1);
        words(block, check_n - 1);
        shmem_free(block);
    }
    return check_end();
}
