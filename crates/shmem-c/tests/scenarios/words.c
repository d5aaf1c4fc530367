/* Peers put and get words while this PE loads, stores and waits for them: no PE sees a part of a
 * word. The lengths and addresses of transfers vary, so that the network divides its stream within
 * words. */
#include "../programs/check.h"

enum { N = 1 << 16, WAITS = 300, GETS = 20, JUNK = 4096 };

static uint64_t words[N], got[N];
static uint16_t shorts[4 * N];
static char junk[JUNK];
static long acknowledged[2];

/* The word of a round, all of whose bytes are equal. */
static uint64_t of(int round) { return 0x0101010101010101u * (uint64_t)(1 + round % 200); }

static int is_torn(uint64_t word) {
    const uint64_t first = word & 0xff;
    return word != first * 0x0101010101010101u;
}

/* PE 1 puts to PE 0, which waits for each word. */
static void waits(int round) {
    static uint64_t source[N];
    if (check_me == 1) {
        for (int i = 0; i < N; i++)
            source[i] = of(round);
        char bytes[JUNK] = {0};
        shmem_putmem(junk, bytes, (size_t)(1 + round * 37 % (JUNK - 1)), 0);
        shmem_putmem(shorts + 1, source, (size_t)(2 * (1 + round * 977 % N)), 0);
        shmem_uint64_put(words, source, N, 0);
        shmem_long_wait_until(&acknowledged[1], SHMEM_CMP_GE, round);
    } else if (check_me == 0) {
        long torn = 0;
        for (int i = 0; i < N; i++) {
            shmem_uint64_wait_until(&words[i], SHMEM_CMP_NE, round == 1 ? 0 : of(round - 1));
            torn += *(volatile uint64_t *)&words[i] != of(round);
        }
        for (int i = 0; i < N; i++)
            torn += (shorts[1 + i] >> 8) != (shorts[1 + i] & 0xff);
        CHECK(torn == 0, 50, "round %d: a wait has seen %ld words in part", round, torn);
        shmem_long_p(&acknowledged[1], round, 1);
    }
}

/* PE 1 gets from PE 0, which stores meanwhile, to symmetric memory. */
static void gets(int round) {
    static uint64_t here[N + 1];
    if (check_me == 0) {
        for (unsigned i = 0; (i & 1023) != 0 || shmem_long_test(&acknowledged[0], SHMEM_CMP_LT, round); i++)
            *(volatile uint64_t *)&words[i % N] = of((int)(i / N % 200));
        return;
    }
    if (check_me != 1)
        return;
    uint64_t *const to = round % 2 ? got : here;
    long torn = 0;
    for (int i = 0; i < 4; i++) {
        char byte[8];
        shmem_getmem(byte, junk, (size_t)(1 + i), 0);
        shmem_getmem_nbi(byte, junk, 3, 0);
        shmem_uint64_get(to, words, (size_t)(N >> (i * 4)), 0);
        for (int k = 0; k < N >> (i * 4); k++)
            torn += is_torn(to[k]);
    }
    shmem_quiet();
    CHECK(torn == 0, 0, "round %d: %ld words were got in part", round, torn);
    shmem_long_p(&acknowledged[0], round, 0);
}

int main(void) {
    check_begin();
    for (int round = 1; round <= WAITS; round++)
        waits(round);
    shmem_barrier_all();
    for (int round = 1; round <= GETS; round++)
        gets(round);
    return check_end();
}
