/* Sums of 16-bit floating-point numbers, passed as bits: exact ones, rounded ones, and those that
 * are not finite, for few and many elements. */
#include <shmemx.h>

#include "members.h"

enum { COUNT = 40003 };

static uint16_t *source, *dest;

/* The bits of a small integer. */
static uint16_t half_of(unsigned value) {
    unsigned exponent = 15, fraction = value;
    if (value == 0)
        return 0;
    for (; fraction >> 10 == 0; exponent--)
        fraction <<= 1;
    return (uint16_t)((exponent + 10) << 10 | (fraction & 0x3ff));
}

static uint16_t bfloat_of(unsigned value) {
    float number = (float)value;
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return (uint16_t)(bits >> 16);
}

/* Sums of up to 255 are exact in both formats, so the summands are smaller the more PEs there are. */
static unsigned summand(int pe, size_t i) {
    unsigned most = 255 / (unsigned)check_n;
    return (unsigned)(check_mix((uint64_t)pe * 7919 + i) % ((most < 7 ? most : 7) + 1));
}

static void sums(struct members m, size_t n) {
    uint16_t (*const of[])(unsigned) = {half_of, bfloat_of};
    for (int format = 0; format < 2 && members_me(m) >= 0; format++)
        for (int is_started = 0; is_started < 2; is_started++) {
            shmemx_req_t req = SHMEMX_REQ_NULL;
            int status = 0;
            for (size_t i = 0; i < n; i++)
                source[i] = of[format](summand(check_me, i)), dest[i] = 0xffff;
            shmem_team_sync(m.team);
            if (is_started)
                status = format ? shmemx_bfloat16_sum_reduce_nb(m.team, dest, source, n, &req)
                                : shmemx_float16_sum_reduce_nb(m.team, dest, source, n, &req);
            else
                status = format ? shmemx_bfloat16_sum_reduce(m.team, dest, source, n)
                                : shmemx_float16_sum_reduce(m.team, dest, source, n);
            CHECK(status == 0, 53, "a sum failed");
            shmemx_req_wait(&req);
            size_t wrong = 0;
            for (size_t i = 0; i < n; i++) {
                unsigned due = 0;
                for (int k = 0; k < m.size; k++)
                    due += summand(m.world[k], i);
                wrong += dest[i] != of[format](due);
            }
            CHECK(wrong == 0, 59, "%zu of %zu sums differ in format %d", wrong, n, format);
            shmem_team_sync(m.team);
        }
    shmem_barrier_all();
}

/* Element by element: infinite and infinite with the other sign, a NaN, the largest number and
 * itself, zeros of both signs. */
static void special(void) {
    static const uint16_t first[] = {0x7c00, 0x7c00, 0x7e00, 0x7bff, 0x8000, 0x0000};
    static const uint16_t others[] = {0x7c00, 0xfc00, 0x3c00, 0x7bff, 0x8000, 0x8000};
    enum { N = sizeof first / sizeof *first };
    memcpy(source, check_me ? others : first, sizeof first);
    shmem_barrier_all();
    shmemx_float16_sum_reduce(SHMEM_TEAM_WORLD, dest, source, N);
    int has_others = check_n > 1;
    CHECK(dest[0] == 0x7c00, 59, "infinite sums are %#x", dest[0]);
    CHECK(has_others ? (dest[1] & 0x7fff) > 0x7c00 : dest[1] == 0x7c00, 59, "inf - inf is %#x", dest[1]);
    CHECK((dest[2] & 0x7fff) > 0x7c00, 59, "the sum with a NaN is %#x", dest[2]);
    CHECK(dest[3] == (has_others ? 0x7c00 : 0x7bff), 59, "the sum of the largest is %#x", dest[3]);
    CHECK(dest[4] == 0x8000 && dest[5] == 0x0000, 59, "sums of zeros are %#x and %#x", dest[4], dest[5]);
    shmem_barrier_all();
}

int main(void) {
    check_begin();
    members_begin();
    source = check_malloc(COUNT * sizeof *source);
    dest = check_malloc(COUNT * sizeof *dest);
    struct shapes shapes = shapes_begin();
    static const size_t lengths[] = {1, 4, 5, 100, 2049, COUNT};
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        sums(shapes.world, lengths[k]);
        sums(shapes.reversed, lengths[k]);
        sums(shapes.odd, lengths[k]);
    }
    special();
    shapes_end(shapes);
    shmem_free(dest);
    shmem_free(source);
    members_end();
    return check_end();
}
