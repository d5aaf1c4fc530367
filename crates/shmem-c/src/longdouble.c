/*
 * The parts of long double that Rust lacks: passing it by value, and its arithmetic.
 *
 * The functions with a long double by value are the targets of jumps in longdouble.rs, which add
 * the last argument: the Rust function that moves one element between addresses.
 */

#include <math.h>
#include <stddef.h>

typedef long double ld;
typedef void move_fn(ld *dest, const ld *source, int pe);
typedef void ctx_move_fn(void *ctx, ld *dest, const ld *source, int pe);

void rushmem_longdouble_p(ld *dest, ld value, int pe, move_fn *put) {
    put(dest, &value, pe);
}

void rushmem_longdouble_ctx_p(void *ctx, ld *dest, ld value, int pe, ctx_move_fn *put) {
    put(ctx, dest, &value, pe);
}

ld rushmem_longdouble_g(const ld *source, int pe, move_fn *get) {
    ld value;
    get(&value, source, pe);
    return value;
}

ld rushmem_longdouble_ctx_g(void *ctx, const ld *source, int pe, ctx_move_fn *get) {
    ld value;
    get(ctx, &value, source, pe);
    return value;
}

/* As for float and double: the result is NaN if one is NaN, and +0 is greater than -0. */
static ld max(ld a, ld b) {
    if (isnan(a) || isnan(b))
        return (ld)NAN;
    return a > b || (a == b && !signbit(a)) ? a : b;
}

static ld min(ld a, ld b) {
    if (isnan(a) || isnan(b))
        return (ld)NAN;
    return a < b || (a == b && signbit(a)) ? a : b;
}

static ld sum(ld a, ld b) { return a + b; }
static ld prod(ld a, ld b) { return a * b; }

#define OPERATOR(op)                                                                               \
    void rushmem_longdouble_##op(ld *dest, const ld *left, const ld *right, size_t nelems) {       \
        for (size_t i = 0; i < nelems; i++)                                                        \
            dest[i] = op(left[i], right[i]);                                                       \
    }
OPERATOR(max)
OPERATOR(min)
OPERATOR(sum)
OPERATOR(prod)
