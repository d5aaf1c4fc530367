/*
 * The arithmetic of Fortran's REAL*16, an IEEE number of 128 bits, which stable Rust lacks.
 */

#include <stddef.h>
#include <string.h>

#if defined(__x86_64__)
typedef __float128 quad;
#else
typedef long double quad;
#endif

/* A number in a program's memory, where a COMMON block may align it to less than its size. */
typedef quad placed __attribute__((aligned(1)));

static int is_nan(quad a) { return a != a; }

static int is_negative(quad a) {
    unsigned char bytes[sizeof a];
    memcpy(bytes, &a, sizeof a);
    return bytes[sizeof a - 1] >> 7;
}

/* As for REAL*4 and REAL*8: the result is NaN if one is NaN, and +0 is greater than -0. */
static quad max(quad a, quad b) {
    if (is_nan(a) || is_nan(b))
        return (quad)__builtin_nan("");
    return a > b || (a == b && !is_negative(a)) ? a : b;
}

static quad min(quad a, quad b) {
    if (is_nan(a) || is_nan(b))
        return (quad)__builtin_nan("");
    return a < b || (a == b && is_negative(a)) ? a : b;
}

static quad sum(quad a, quad b) { return a + b; }
static quad prod(quad a, quad b) { return a * b; }

#define OPERATOR(op)                                                                               \
    void rushmem_quad_##op(placed *dest, const placed *left, const placed *right, size_t nelems) { \
        for (size_t i = 0; i < nelems; i++)                                                        \
            dest[i] = op(left[i], right[i]);                                                       \
    }
OPERATOR(max)
OPERATOR(min)
OPERATOR(sum)
OPERATOR(prod)
