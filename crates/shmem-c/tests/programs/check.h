/* Common code of the test programs: numbered checks, patterns, and the result of all PEs.
 *
 * PE 0 first prints `n_pes N`, so that a test finds processes that were started as jobs of one PE,
 * and in the end `PASS` or `FAILED`. A failed check prints `FAIL point N PE p: ...`, where N is a
 * point of crates/shmem-c/spec/semantics.md, or 0.
 *
 * In shmem-verify, which consists of some of these programs, nothing is printed: `verify.c` counts
 * the failures and prints what it found.
 */
#ifndef CHECK_H
#define CHECK_H

#include <sched.h>
#include <shmem.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CHECK_SHOWN = 12 };

#ifdef SHMEM_VERIFY
enum { CHECK_PRINTS = 0 };
void verify_failed(const char *text, const char *file, int line);
void verify_not_there(const char *why);
#else
enum { CHECK_PRINTS = 1 };
static inline void verify_failed(const char *text, const char *file, int line) { (void)text, (void)file, (void)line; }
static inline void verify_not_there(const char *why) { (void)why; }
#endif

static int check_me, check_n;
static int check_failures;

#define CHECK(condition, point, ...)                                                                                   \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            check_fail(point, __FILE__, __LINE__, __VA_ARGS__);                                                        \
    } while (0)

__attribute__((format(printf, 4, 5))) static inline void check_fail(int point, const char *file, int line,
                                                                    const char *format, ...) {
    if (__atomic_fetch_add(&check_failures, 1, __ATOMIC_RELAXED) >= CHECK_SHOWN) {
        verify_failed(NULL, file, line);
        return;
    }
    char text[400];
    __builtin_va_list arguments;
    __builtin_va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    __builtin_va_end(arguments);
    const char *slash = strrchr(file, '/');
    const char *name = slash ? slash + 1 : file;
    verify_failed(text, name, line);
    if (!CHECK_PRINTS)
        return;
    printf("FAIL point %d PE %d: %s (%s:%d)\n", point, check_me, text, name, line);
    fflush(stdout);
}

/* Sets check_me and check_n, and prints the number of PEs. The library is initialized. */
static inline void check_start(void) {
    check_me = shmem_my_pe();
    check_n = shmem_n_pes();
    CHECK(check_me >= 0 && check_me < check_n, 0, "shmem_my_pe is %d of %d", check_me, check_n);
    if (CHECK_PRINTS && check_me == 0) {
        printf("n_pes %d\n", check_n);
        fflush(stdout);
    }
}

static inline void check_begin(void) {
    shmem_init();
    check_start();
}

/* Adds up the failures of all PEs; the library stays initialized. */
static inline int check_agree(void) {
    int *sums = (int *)shmem_malloc(2 * sizeof(int));
    if (!sums) {
        check_fail(0, __FILE__, __LINE__, "no symmetric memory is left for the closing agreement");
        return 1;
    }
    sums[0] = check_failures;
    sums[1] = -1;
    shmem_barrier_all();
    shmem_int_sum_reduce(SHMEM_TEAM_WORLD, &sums[1], &sums[0], 1);
    int total = sums[1];
    shmem_free(sums);
    return total;
}

static inline int check_verdict(int total) {
    if (CHECK_PRINTS && check_me == 0)
        puts(total ? "FAILED" : "PASS");
    fflush(stdout);
    return total != 0;
}

static inline int check_end(void) {
    int total = check_agree();
    shmem_finalize();
    return check_verdict(total);
}

/* A hash of `k`, so that all bytes of values made from it vary. */
static inline uint64_t check_mix(uint64_t k) {
    k += 0x9e3779b97f4a7c15u;
    k = (k ^ (k >> 30)) * 0xbf58476d1ce4e5b9u;
    k = (k ^ (k >> 27)) * 0x94d049bb133111ebu;
    return k ^ (k >> 31);
}

#define VALUE(T, k) ((T)check_mix((uint64_t)(k)))

/* Byte i of the pattern of `seed`. */
static inline unsigned char check_byte(int seed, size_t i) { return (unsigned char)check_mix(((uint64_t)seed << 32) + i); }

static inline void check_fill(void *buffer, size_t nbytes, int seed) {
    for (size_t i = 0; i < nbytes; i++)
        ((unsigned char *)buffer)[i] = check_byte(seed, i);
}

/* The first index at which `buffer` differs from the pattern of `seed`, or -1. */
static inline long check_pattern(const void *buffer, size_t nbytes, int seed) {
    for (size_t i = 0; i < nbytes; i++)
        if (((const unsigned char *)buffer)[i] != check_byte(seed, i))
            return (long)i;
    return -1;
}

/* The first index at which `buffer` is not `byte`, or -1. */
static inline long check_constant(const void *buffer, size_t nbytes, int byte) {
    for (size_t i = 0; i < nbytes; i++)
        if (((const unsigned char *)buffer)[i] != (unsigned char)byte)
            return (long)i;
    return -1;
}

static inline void *check_malloc(size_t nbytes) {
    void *block = shmem_malloc(nbytes);
    if (!block) {
        printf("FAIL point 65 PE %d: shmem_malloc(%zu) gave a null pointer\n", check_me, nbytes);
        fflush(stdout);
        shmem_global_exit(1);
    }
    return block;
}

#endif
