/* Times 1, 4, 16, .. atomic operations of PE 0 on random PEs of other nodes until they are
 * complete, in a session for that number of operations and without one. shmem-perf starts no
 * sessions.
 *
 *     oshcc -O2 benches/sessions.c -o sessions
 *     SHMEM_TRANSPORT=ucx SHMEM_VIRTUAL_NODES=2+2+2+2 oshrun -n 8 ./sessions [MOST_OPERATIONS]
 */
#define _GNU_SOURCE
#include "timing.h"
#include <stdint.h>

enum { WORDS = 1024, REPETITIONS = 101, MOST_OPERATIONS = 16384 };

static uint64_t state = 88172645463325252u;
static uint64_t *words;
static int first_other; /* PEs from this number on are on other nodes */

static uint64_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Returns the microseconds that `n` operations take. */
static double measure(size_t n, int in_session)
{
    const uint64_t others = shmem_n_pes() - first_other;
    const double start = now();
    if (in_session) {
        const shmem_ctx_session_config_t config = { .total_ops = n };
        shmem_ctx_session_start(SHMEM_CTX_DEFAULT, SHMEM_CTX_SESSION_BATCH, &config, SHMEM_CTX_SESSION_TOTAL_OPS);
    }
    for (size_t i = 0; i < n; i++) {
        const uint64_t random = next();
        shmem_uint64_atomic_inc(words + (random >> 20) % WORDS, first_other + (int)((random & 0xffff) % others));
    }
    if (in_session)
        shmem_ctx_session_stop(SHMEM_CTX_DEFAULT);
    else
        shmem_quiet();
    return (now() - start) / 1e3;
}

static int by_size(const void *one, const void *other)
{
    const double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

int main(int argc, char **argv)
{
    static double times[2][REPETITIONS];
    shmem_init();
    words = symmetric(WORDS * sizeof *words);
    while (first_other < shmem_n_pes() && shmem_ptr(words, first_other) != NULL)
        first_other++;
    if (shmem_my_pe() == 0 && first_other == shmem_n_pes())
        give_up("there is no other node");
    const size_t most = argc > 1 ? strtoul(argv[1], NULL, 10) : MOST_OPERATIONS;
    for (size_t n = 1; n <= most; n *= 4) {
        for (int i = 0; i < 2 * REPETITIONS; i++) {
            shmem_barrier_all();
            if (shmem_my_pe() == 0)
                times[i % 2][i / 2] = measure(n, i % 2);
        }
        for (int in_session = 0; in_session < 2 && shmem_my_pe() == 0; in_session++) {
            double *const sorted = times[in_session];
            qsort(sorted, REPETITIONS, sizeof *sorted, by_size);
            printf("%zu operations, %s: %.1f (%.1f-%.1f) us\n", n, in_session ? "a session" : "no session",
                   sorted[REPETITIONS / 2], sorted[REPETITIONS / 4], sorted[3 * REPETITIONS / 4]);
        }
    }
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
