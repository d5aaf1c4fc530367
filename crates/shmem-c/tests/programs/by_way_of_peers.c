/* Threads of one PE access its memory, and only messages of peers order the accesses. A race
 * detector that does not know these messages would report races. */
#include "check.h"
#include <pthread.h>

enum { STORES = 60, PUTS = 200, FEW = 3, MANY = 1024, OWNERS = 3 };

static long *words;     /* accessed by one thread at a time, of any PE */
static long *notified;  /* the last round of which this PE was notified */
static long *seen;      /* the last round whose words were read */
static long *elsewhere; /* not read by the test */
static int is_over;

static void notify(long *what, long round, int pe) { shmem_long_atomic_set(what, round, pe); }

/* Lengths that networks copy, and lengths that they transfer without a copy. */
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

/* The owner stores and notifies a peer, which notifies another one, which gets. Meanwhile the owner
 * calls nothing, so that the library's own thread answers. */
static void stored(int owner, int relay, int reader) {
    for (long round = 1; round <= STORES; round++) {
        if (check_me == owner) {
            fill(words, round);
            notify(notified, round, relay);
            while (__atomic_load_n(seen, __ATOMIC_ACQUIRE) != round)
                sched_yield();
        }
        if (check_me == relay) {
            shmem_long_wait_until(notified, SHMEM_CMP_EQ, round);
            notify(&notified[1], round, reader);
        }
        if (check_me == reader) {
            shmem_long_wait_until(&notified[1], SHMEM_CMP_EQ, round);
            read_from(owner, round);
            notify(seen, round, owner);
        }
    }
}

/* A PE that waits for another PE executes that PE's requests. */
static void *ask(void *argument) {
    int pe = *(int *)argument;
    while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
        shmem_long_g(elsewhere, pe);
    return NULL;
}

/* A peer puts and notifies another one, which gets: of the owner's threads one carries out the put
 * while it waits for the first peer, and another one answers the get. */
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
            notify(notified, round, reader);
            shmem_long_wait_until(seen, SHMEM_CMP_EQ, round);
        }
        if (check_me == reader) {
            shmem_long_wait_until(notified, SHMEM_CMP_EQ, round);
            read_from(owner, round);
            notify(seen, round, writer);
        }
    }
    if (check_me == reader)
        notify(seen, PUTS + 1, owner);
    if (check_me == owner) {
        shmem_long_wait_until(seen, SHMEM_CMP_EQ, PUTS + 1);
        __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
        pthread_join(asking, NULL);
    }
}

static void between(void (*body)(int, int, int), int owner) {
    *seen = notified[0] = notified[1] = 0;
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
    notified = shmem_calloc(2, sizeof *notified);
    seen = shmem_calloc(1, sizeof *seen);
    elsewhere = shmem_calloc(1, sizeof *elsewhere);
    /* In a job of two PEs, the other peer would be the owner itself. */
    for (int owner = 0; check_n > 2 && owner < OWNERS; owner++) {
        between(stored, owner);
        between(put, owner);
    }
    shmem_free(elsewhere);
    shmem_free(seen);
    shmem_free(notified);
    shmem_free(words);
    return check_end();
}
