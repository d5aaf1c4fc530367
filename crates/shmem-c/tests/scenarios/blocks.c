/* PE 1 makes one access that is not within a block of the symmetric heap or a static variable.
 * argv[1] names the access; "none" makes only correct ones. */
#include <shmem.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 100, AREA = 4000 };

static char area[AREA];
static long table[8], beside[8];
static _Alignas(8) unsigned half;

static int is(const char *how, const char *name) { return strcmp(how, name) == 0; }

/* Makes an access by a call of the library. Returns whether argv[1] names one. */
static int by_call(const char *how, char *block, char *other, char *freed, int pe) {
    uint64_t *word = (uint64_t *)(void *)(block + 96), *gone = (uint64_t *)(void *)freed;
    if (is(how, "put_beyond"))
        shmem_putmem(block + 50, area, 60, pe);
    else if (is(how, "put_nbi_beyond"))
        shmem_putmem_nbi(block + 50, area, 60, pe);
    else if (is(how, "get_beyond"))
        shmem_getmem(area, block + 99, 2, pe);
    else if (is(how, "get_to_beyond"))
        shmem_getmem(block + 50, other, 60, pe);
    else if (is(how, "put_from_beyond"))
        shmem_putmem(other, block + 50, 60, pe);
    else if (is(how, "p_before"))
        shmem_char_p(other - 1, 1, pe);
    else if (is(how, "g_after"))
        area[0] = shmem_char_g(block + SIZE, pe);
    else if (is(how, "iput_beyond"))
        shmem_char_iput(block, area, 11, 1, 10, pe), shmem_char_iput(block, area, 11, 1, 11, pe);
    else if (is(how, "amo_beyond"))
        shmem_uint64_atomic_inc(word, pe);
    else if (is(how, "fetch_freed"))
        area[0] = (char)shmem_uint64_atomic_fetch_add(gone, 1, pe);
    else if (is(how, "put_freed"))
        shmem_putmem(freed, area, 8, pe);
    else if (is(how, "signal_freed"))
        shmem_putmem_signal(block, area, 8, gone, 1, SHMEM_SIGNAL_SET, pe);
    else if (is(how, "put_nowhere"))
        shmem_putmem(block + (1 << 20), area, 8, pe);
    else if (is(how, "put_static_beyond"))
        shmem_long_put(&table[4], (long *)(void *)area, 5, pe);
    else if (is(how, "get_static_beyond"))
        shmem_get64(area, table, 9, pe);
    else if (is(how, "put_from_static_beyond"))
        shmem_put64(block, beside, 9, pe);
    else if (is(how, "iget_static_beyond"))
        shmem_long_iget((long *)(void *)area, table, 1, 4, 3, pe);
    else if (is(how, "amo_static_beyond"))
        shmem_uint64_atomic_inc((uint64_t *)(void *)&half, pe);
    else
        return 0;
    return 1;
}

/* Makes an access by a load or a store of the program, at one of these addresses. */
static void by_itself(const char *how, char *block, char *freed) {
    volatile char *at = block;
    if (is(how, "store_after"))
        at[SIZE] = 1;
    else if (is(how, "store_before"))
        at[-2] = 1;
    else if (is(how, "store_through_ptr"))
        at = shmem_ptr(block, 0), at[SIZE + 3] = 1;
    else if (is(how, "store_freed"))
        at = freed, at[8] = 1;
    else if (is(how, "load_after"))
        area[0] = at[SIZE];
}

/* Accesses blocks correctly, up to the last byte, and returns true if all contents are right. If
 * `leaves`, every second block is left for finalize to check. */
static int within(int me, int n, int leaves) {
    int good = 1, right = (me + 1) % n, left = (me + n - 1) % n;
    for (size_t size = 1; size <= AREA; size = 2 * size + 1) {
        char *block = shmem_malloc(size), *zero = shmem_calloc(size, 1);
        char *aligned = shmem_align(4096, size);
        good &= ((size_t)aligned & 4095) == 0 && zero[0] == 0 && zero[size - 1] == 0;
        memset(area, me + 1, size), memset(zero, me + 1, size);
        shmem_putmem(block, area, size, right);
        shmem_putmem_nbi(aligned, zero, size, right);
        shmem_barrier_all();
        good &= block[0] == left + 1 && block[size - 1] == left + 1;
        good &= aligned[size - 1] == left + 1;
        shmem_getmem(zero, block, size, right);
        good &= zero[0] == me + 1 && zero[size - 1] == me + 1;
        block = shmem_realloc(block, 3 * size);
        good &= block[0] == left + 1 && block[size - 1] == left + 1;
        memset(block, 7, 3 * size);
        block = shmem_realloc(block, size);
        good &= block[size - 1] == 7;
        shmem_broadcastmem(SHMEM_TEAM_WORLD, aligned, block, size, 0);
        good &= aligned[size - 1] == 7;
        if (!leaves || size % 3 == 0)
            shmem_free(block);
        shmem_free(aligned), shmem_free(zero);
    }
    long *words = shmem_calloc(2, sizeof *words);
    shmem_long_atomic_add(words + 1, me + 1, right);
    shmem_long_p(words, me, right);
    shmem_barrier_all();
    good &= words[1] == left + 1 && words[0] == left && shmem_long_g(words, me) == left;
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, words + 1, words, 1);
    good &= words[1] == (long)n * (n - 1) / 2;
    long value = shmem_long_atomic_fetch_inc(words, me);
    shmem_long_wait_until(words, SHMEM_CMP_EQ, value + 1);
    shmem_free(words);
    return good;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "none";
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    int is_none = is(how, "none");
    if (!within(me, n, is_none))
        printf("FAIL on PE %d\n", me);
    char *block = shmem_malloc(SIZE), *other = shmem_malloc(SIZE), *freed = shmem_malloc(SIZE);
    shmem_free(freed);
    if (!is_none && me == 1 % n && !by_call(how, block, other, freed, 0))
        by_itself(how, block, freed);
    if (is(how, "store_after_and_free"))
        block[SIZE] = 1, shmem_free(block);
    shmem_barrier_all();
    shmem_free(other);
    if (me == 0)
        printf("n_pes %d\nPASS\n", n);
    shmem_finalize();
    return 0;
}
