/* Times the on-node operations of an OpenSHMEM library and, for comparison, plain memory accesses.
 *
 * It runs on two PEs and prints one line `name nanoseconds` for each row. It calls only routines of OpenSHMEM 1.4, so any
 * implementation can build it unchanged. PE i runs on the i-th processor that the job may use. PE 0 works while PE 1 sleeps,
 * except in the ping-pongs and in the row of the static variable, for which Open MPI needs a PE that waits in the library.
 * The bare rows use the pointer that shmem_ptr returns.
 */
#define _GNU_SOURCE
#include "timing.h"

enum {
    LARGE = 1 << 20,          /* bytes of the large transfers */
    ENOUGH = 8 * 1000 * 1000, /* nanoseconds that a loop must last to be believed */
    ROUNDS = 100 * 1000,      /* of a ping-pong: both PEs must know the number */
};

/* The compiler may neither keep memory in registers across this nor know what `value` holds after it. */
#define UNKNOWN(value) __asm__ volatile("" : "+r"(value) : : "memory")

static long *word;         /* symmetric: the target of the 8-byte operations */
static long *word_there;   /* the same on PE 1, as plain memory */
static char *block;        /* symmetric: LARGE bytes */
static char *block_there;  /* the same on PE 1, as plain memory */
static char *local;        /* LARGE bytes of ordinary memory */
static long *flag;         /* symmetric: the flag of the ping-pongs */
static long *flag_there;   /* the same on the other PE, as plain memory */
static size_t eight = 8;   /* bytes of a word; made unknown to the compiler where it matters */
static long global;        /* symmetric: a static variable */
static volatile long sink; /* what is fetched ends here */
static long *lock;         /* symmetric: nobody else wants it */
static shmem_ctx_t own;    /* a private context */

static void put8(long count)
{
    for (long i = 0; i < count; i++)
        shmem_putmem(word, &i, eight, 1);
    shmem_quiet();
}

static void put8_private(long count)
{
    for (long i = 0; i < count; i++)
        shmem_ctx_putmem(own, word, &i, eight, 1);
    shmem_ctx_quiet(own);
}

static void lock_alone(long count)
{
    for (long i = 0; i < count; i++) {
        shmem_set_lock(lock);
        shmem_clear_lock(lock);
    }
}

static void p8(long count)
{
    for (long i = 0; i < count; i++)
        shmem_long_p(word, i, 1);
    shmem_quiet();
}

static void p8_static(long count)
{
    for (long i = 0; i < count; i++)
        shmem_long_p(&global, i, 1);
    shmem_quiet();
}

static void put8_nbi(long count)
{
    for (long i = 0; i < count; i++)
        shmem_putmem_nbi(word, local, eight, 1);
    shmem_quiet();
}

static void bare_put8(long count)
{
    for (long i = 0; i < count; i++) {
        size_t bytes = eight;
        UNKNOWN(bytes);
        memcpy(word_there, &i, bytes);
    }
}

static void get8(long count)
{
    for (long i = 0; i < count; i++)
        shmem_getmem(local, word, eight, 1);
}

static void g8(long count)
{
    long sum = 0;
    for (long i = 0; i < count; i++)
        sum += shmem_long_g(word, 1);
    sink = sum;
}

static void bare_get8(long count)
{
    for (long i = 0; i < count; i++) {
        size_t bytes = eight;
        UNKNOWN(bytes);
        memcpy(local, word_there, bytes);
    }
}

static void fetch_add(long count)
{
    long sum = 0;
    for (long i = 0; i < count; i++)
        sum += shmem_long_atomic_fetch_add(word, 1, 1);
    sink = sum;
}

static void inc(long count)
{
    for (long i = 0; i < count; i++)
        shmem_long_atomic_inc(word, 1);
    shmem_quiet();
}

static void bare_fetch_add(long count)
{
    long sum = 0;
    for (long i = 0; i < count; i++)
        sum += __atomic_fetch_add(word_there, 1, __ATOMIC_SEQ_CST);
    sink = sum;
}

static void put_large(long count)
{
    for (long i = 0; i < count; i++) {
        shmem_putmem(block, local, LARGE, 1);
        shmem_quiet();
    }
}

static void get_large(long count)
{
    for (long i = 0; i < count; i++)
        shmem_getmem(local, block, LARGE, 1);
}

static void bare_put_large(long count)
{
    for (long i = 0; i < count; i++) {
        char *to = block_there;
        UNKNOWN(to);
        memcpy(to, local, LARGE);
    }
}

static void bare_get_large(long count)
{
    for (long i = 0; i < count; i++) {
        char *from = block_there;
        UNKNOWN(from);
        memcpy(local, from, LARGE);
    }
}

static void pingpong(int me, long count)
{
    for (long round = 1; round <= count; round++) {
        if (me == 0)
            shmem_long_p(flag, round, 1);
        shmem_long_wait_until(flag, SHMEM_CMP_EQ, round);
        if (me == 1)
            shmem_long_p(flag, round, 0);
    }
}

static void bare_pingpong(int me, long count)
{
    for (long round = 1; round <= count; round++) {
        if (me == 0)
            __atomic_store_n(flag_there, round, __ATOMIC_RELEASE);
        while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != round)
            ;
        if (me == 1)
            __atomic_store_n(flag_there, round, __ATOMIC_RELEASE);
    }
}

static void time_alone(const char *name, void (*loop)(long))
{
    report(name, each(loop, ENOUGH));
}

static void time_together(const char *name, void (*rounds)(int, long))
{
    *flag = 0;
    const double nanoseconds = each_round(rounds, ROUNDS);
    if (shmem_my_pe() == 0)
        report(name, nanoseconds);
}

/* Sleeps until PE 0 has put a word, so that it does not disturb what PE 0 measures. */
static void sleep_until(volatile long *done)
{
    const struct timespec pause = { .tv_nsec = 500 * 1000 };
    while (*done == 0)
        nanosleep(&pause, NULL);
}

int main(void)
{
    shmem_init();
    const int me = one_of_two();

    block = symmetric(LARGE);
    char *words = symmetric(4 * LINE);
    word = (long *)words;
    flag = (long *)(words + LINE);
    long *done = (long *)(words + 2 * LINE);
    lock = (long *)(words + 3 * LINE);
    word_there = shmem_ptr(word, 1);
    block_there = shmem_ptr(block, 1);
    flag_there = shmem_ptr(flag, 1 - me);
    local = aligned_alloc(4096, LARGE);
    if (local == NULL || word_there == NULL || block_there == NULL || flag_there == NULL)
        give_up("it cannot reach the other PE's memory");
    memset(local, 1, LARGE);
    if (shmem_ctx_create(SHMEM_CTX_PRIVATE, &own) != 0)
        give_up("it gets no private context");
    shmem_barrier_all();

    if (me == 0) {
        time_alone("put8", put8);
        time_alone("put8_private", put8_private);
        time_alone("p8", p8);
        time_alone("put8_nbi", put8_nbi);
        time_alone("bare_put8", bare_put8);
        time_alone("get8", get8);
        time_alone("g8", g8);
        time_alone("bare_get8", bare_get8);
        time_alone("fetch_add", fetch_add);
        time_alone("inc", inc);
        time_alone("bare_fetch_add", bare_fetch_add);
        time_alone("lock_alone", lock_alone);
        time_alone("put_large", put_large);
        time_alone("bare_put_large", bare_put_large);
        time_alone("get_large", get_large);
        time_alone("bare_get_large", bare_get_large);
        shmem_long_p(done, 1, 1);
        shmem_quiet();
        time_alone("p8_static", p8_static);
        shmem_long_p(done, 2, 1);
        shmem_quiet();
    } else {
        sleep_until(done);
        shmem_long_wait_until(done, SHMEM_CMP_EQ, 2);
    }
    time_together("pingpong", pingpong);
    time_together("bare_pingpong", bare_pingpong);

    shmem_ctx_destroy(own);
    free(local);
    shmem_free(words);
    shmem_free(block);
    shmem_finalize();
    return 0;
}
