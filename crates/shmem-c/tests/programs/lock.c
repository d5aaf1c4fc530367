/* Locks: exclusion, results of test_lock, the order of waiting PEs, the quiet of clear_lock,
 * threads, a static lock. */
#include "check.h"
#include <pthread.h>

enum { TURNS = 60 };

static long *lock, *other, *word;

/* Reads a word of PE 0, waits, and writes it, protected only by the lock. clear_lock completes the
 * put. */
static void exclusion(int by_test) {
    *word = 0;
    shmem_barrier_all();
    for (int i = 0; i < TURNS; i++) {
        if (by_test)
            while (shmem_test_lock(lock))
                sched_yield();
        else
            shmem_set_lock(lock);
        long seen = shmem_long_g(word, 0), next = seen + 1;
        if (i % 5 == 0)
            sched_yield();
        shmem_long_put_nbi(word, &next, 1, 0);
        shmem_clear_lock(lock);
    }
    shmem_barrier_all();
    CHECK(check_me != 0 || *word == (long)TURNS * check_n, by_test ? 70 : 71, "%ld of %ld turns are counted", *word,
          (long)TURNS * check_n);
    shmem_barrier_all();
}

static void answers(void) {
    if (check_me == 0)
        CHECK(shmem_test_lock(lock) == 0, 70, "test_lock of a free lock");
    shmem_barrier_all();
    if (check_me != 0)
        for (int i = 0; i < 3; i++)
            CHECK(shmem_test_lock(lock) == 1, 70, "test_lock of a taken lock");
    shmem_barrier_all();
    if (check_me == 0)
        shmem_clear_lock(lock);
    shmem_barrier_all();
}

/* Two locks at once, which all PEs acquire in the same order. */
static void nested(void) {
    *word = 0;
    shmem_barrier_all();
    for (int i = 0; i < TURNS / 3; i++) {
        shmem_set_lock(lock);
        shmem_set_lock(other);
        shmem_long_p(word, shmem_long_g(word, check_n - 1) + 1, check_n - 1);
        shmem_clear_lock(other);
        shmem_clear_lock(lock);
    }
    shmem_barrier_all();
    CHECK(check_me != check_n - 1 || *word == (long)(TURNS / 3) * check_n, 71, "%ld turns", *word);
    shmem_barrier_all();
}

/* Returns the last PE of the queue, plus one, from the lock's word on its home PE. Only this test
 * reads it: programs must not. */
static long last_in_queue(void) {
    long last = 0;
    for (int pe = 0; pe < check_n; pe++)
        last |= shmem_long_g(lock, pe) & 0xffffffff;
    return last;
}

/* PE 0 holds the lock until all others wait, each of which called when the one before it was seen in the queue. */
static void in_order(void) {
    long *go = shmem_calloc(1, sizeof *go), *served = shmem_calloc(1, sizeof *served);
    if (check_me == 0)
        shmem_set_lock(lock);
    shmem_barrier_all();
    if (check_me == 0) {
        for (int pe = check_n - 1; pe > 0; pe--) {
            shmem_long_p(go, 1, pe);
            while (last_in_queue() != pe + 1)
                sched_yield();
        }
    } else {
        shmem_long_wait_until(go, SHMEM_CMP_EQ, 1);
        shmem_set_lock(lock);
        long before = shmem_long_atomic_fetch_inc(served, 0);
        CHECK(before == check_n - 1 - check_me, 70, "called as number %d, served as number %ld", check_n - 1 - check_me, before);
    }
    shmem_clear_lock(lock);
    shmem_barrier_all();
    shmem_free(served);
    shmem_free(go);
}

/* Threads of one PE exclude each other, too. Each adds to a word that only the lock protects. */
static void *thread_turns(void *unused) {
    (void)unused;
    for (int i = 0; i < TURNS; i++) {
        if (i % 3)
            shmem_set_lock(lock);
        else
            while (shmem_test_lock(lock))
                sched_yield();
        shmem_long_p(word, shmem_long_g(word, 0) + 1, 0);
        shmem_clear_lock(lock);
    }
    return NULL;
}

static void threads(void) {
    enum { THREADS = 3 };
    pthread_t others[THREADS];
    *word = 0;
    shmem_barrier_all();
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&others[i], NULL, thread_turns, NULL) == 0, 77, "no thread can be had");
    for (int i = 0; i < THREADS; i++)
        pthread_join(others[i], NULL);
    shmem_barrier_all();
    CHECK(check_me != 0 || *word == (long)THREADS * TURNS * check_n, 70, "threads: %ld turns are counted", *word);
    shmem_barrier_all();
}

/* A thread may clear what another thread of its PE has set: the PE holds a lock. */
static void *clear_it(void *unused) {
    (void)unused;
    shmem_clear_lock(lock);
    return NULL;
}

static void held_by_the_pe(void) {
    pthread_t other;
    for (int i = 0; i < 5; i++) {
        shmem_set_lock(lock);
        CHECK(shmem_test_lock(lock) == 1, 70, "test_lock of a lock that this PE holds");
        CHECK(pthread_create(&other, NULL, clear_it, NULL) == 0, 77, "no thread can be had");
        pthread_join(other, NULL);
    }
    shmem_barrier_all();
}

/* A block that moves leaves no held lock behind at its old address, where a new block may begin.
 * SHMEM_CHECK ends a job that reallocates a block with a held lock. */
static void in_blocks_that_move(void) {
    long *moved = shmem_calloc(8, sizeof *moved);
    long *next = shmem_malloc(64);
    long *old = moved;
    if (check_me == 0)
        shmem_set_lock(moved);
    moved = shmem_realloc(moved, 1 << 16);
    CHECK(moved != old, 67, "the block grew into the one behind it");
    long *reused = shmem_calloc(8, sizeof *reused);
    CHECK(reused == old, 67, "the next block does not begin where the one that moved was");
    if (check_me == 0) {
        CHECK(shmem_test_lock(reused) == 0, 70, "a lock is held where one was in a block that has moved");
        shmem_clear_lock(reused);
    }
    shmem_free(reused);
    shmem_free(next);
    shmem_free(moved);
}

int main(void) {
    int provided;
    static long static_lock;
    CHECK(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0, 76, "shmem_init_thread failed");
    check_start();
    lock = shmem_calloc(1, sizeof *lock);
    other = shmem_calloc(1, sizeof *other);
    word = shmem_calloc(1, sizeof *word);
    answers();
    exclusion(0);
    exclusion(1);
    nested();
    in_order();
    threads();
    held_by_the_pe();
    if (!getenv("SHMEM_CHECK"))
        in_blocks_that_move();
    long *on_heap = lock;
    lock = &static_lock;
    answers();
    exclusion(0);
    exclusion(1);
    in_order();
    lock = on_heap;
    shmem_free(word);
    shmem_free(other);
    shmem_free(lock);
    return check_end();
}
