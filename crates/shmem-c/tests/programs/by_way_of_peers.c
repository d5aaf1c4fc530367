/* Only messages of peers order what threads of one PE do with its memory: a race detector that is not told of that takes it for
 * races. */
#include "check.h"
#include <pthread.h>

enum { STORES = 60, PUTS = 200, FEW = 3, MANY = 1024, OWNERS = 3 };

static long *words;     /* accessed by one at a time, of whichever PE */
static long *told;      /* the last round of which this PE was told */
static long *seen;      /* the last round whose words were read */
static long *elsewhere; /* of no meaning */
static int is_over;

static void tell(long *what, long round, int pe) { shmem_long_atomic_set(what, round, pe); }

/* What networks copy, and what they take where it is. */
static int size_of(long round) { return round % 2 ? FEW : MANY; }

static void fill(long *row, long round) {
    for (int i = 0; i < size_of(round); i++)
        row[i] = round * 10000 + i;
}

static void read_from(int pe, long round) {
    long now[MANY] = {0};
    shmem_getmem(now, words, size_of(round) * sizeof *now, pe);
    for (int i = 0; i < size_of(round); i++)
        CHECK(now[i] == round * 10000 + i, 40, "round %ld: word %d of PE %d is %ld", round, i, pe, now[i]);
}

/* The owner stores and tells a peer, which tells another one, which gets. Meanwhile the owner calls nothing, so that the
 * library's own thread answers. */
static void stored(int owner, int relay, int reader) {
    for (long round = 1; round <= STORES; round++) {
        if (check_me == owner) {
            fill(words, round);
            tell(told, round, relay);
            while (__atomic_load_n(seen, __ATOMIC_ACQUIRE) != round)
                sched_yield();
        }
        if (check_me == relay) {
            shmem_long_wait_until(told, SHMEM_CMP_EQ, round);
            tell(&told[1], round, reader);
        }
        if (check_me == reader) {
            shmem_long_wait_until(&told[1], SHMEM_CMP_EQ, round);
            read_from(owner, round);
            tell(seen, round, owner);
        }
    }
}

/* Whoever waits for a PE carries out what that one asks. */
static void *ask(void *argument) {
    int pe = *(int *)argument;
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
        shmem_long_g(elsewhere, pe);
    return NULL;
}

/* A peer puts and tells another one, which gets: of the owner's threads one carries out the put while it waits for the first
 * peer, and another one answers the get. */
static void put(int owner, int writer, int reader) {
    pthread_t asking;
    if (check_me == owner)
        CHECK(pthread_create(&asking, NULL, ask, &writer) == 0, 77, "no thread can be had");
    for (long round = 1; round <= PUTS; round++) {
        if (check_me == writer) {
            long row[MANY];
            fill(row, round);
            shmem_putmem(words, row, size_of(round) * sizeof *row, owner);
            shmem_quiet();
            tell(told, round, reader);
            shmem_long_wait_until(seen, SHMEM_CMP_EQ, round);
        }
        if (check_me == reader) {
            shmem_long_wait_until(told, SHMEM_CMP_EQ, round);
            read_from(owner, round);
            tell(seen, round, writer);
        }
    }
    if (check_me == reader)
        tell(seen, PUTS + 1, owner);
    if (check_me == owner) {
        shmem_long_wait_until(seen, SHMEM_CMP_EQ, PUTS + 1);
        __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
        pthread_join(asking, NULL);
    }
}

static void between(void (*body)(int, int, int), int owner) {
    *seen = told[0] = told[1] = 0;
    is_over = 0;
    shmem_barrier_all();
    body(owner, (owner + 1) % check_n, (owner + 2) % check_n);
    shmem_barrier_all();
}

int main(void) {
    int provided = -1;
    CHECK(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0 && provided == SHMEM_THREAD_MULTIPLE, 76, "%d", provided);
    check_start();
    words = shmem_calloc(MANY, sizeof *words);
    told = shmem_calloc(2, sizeof *told);
    seen = shmem_calloc(1, sizeof *seen);
    elsewhere = shmem_calloc(1, sizeof *elsewhere);
    /* Of two, both would be peers of themselves. */
    for (int owner = 0; check_n > 2 && owner < OWNERS; owner++) {
        between(stored, owner);
        between(put, owner);
    }
    shmem_free(elsewhere);
    shmem_free(seen);
    shmem_free(told);
    shmem_free(words);
    return check_end();
}
