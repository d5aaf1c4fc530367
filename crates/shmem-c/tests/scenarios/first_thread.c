/* The first thread of each PE ends by pthread_exit. With argv[1] "alone", PE 1 then has no thread
 * left. With "others", another thread of each PE goes on and finalizes, after some seconds in which
 * no PE may end. With "again" or "again-alone", a thread has initialized and finalized the library
 * before, and has ended. */
#include "../programs/check.h"
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { ROUNDS = 5, PAUSE = 500000 };

static long *word;
static atomic_int ends;

static void *go_on(void *nothing) {
    int me = shmem_my_pe(), n = shmem_n_pes();
    while (!ends)
        sched_yield();
    for (int round = 1; round <= ROUNDS; round++) {
        shmem_long_atomic_add(word, 1, (me + 1) % n);
        shmem_long_wait_until(word, SHMEM_CMP_EQ, round);
        usleep(PAUSE);
        shmem_barrier_all();
    }
    check_end();
    return nothing;
}

static void *begin_and_end(void *nothing) {
    int provided;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    shmem_finalize();
    return nothing;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "alone";
    int provided;
    if (!strncmp(how, "again", 5)) {
        pthread_t before;
        CHECK(pthread_create(&before, NULL, begin_and_end, NULL) == 0, 1, "no thread to be had");
        pthread_join(before, NULL);
    }
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    check_start();
    word = shmem_calloc(1, sizeof *word);
    shmem_barrier_all();
    if (!strcmp(how, "others") || !strcmp(how, "again")) {
        pthread_t other;
        CHECK(pthread_create(&other, NULL, go_on, NULL) == 0, 1, "no thread to be had");
        ends = 1;
        pthread_exit(NULL);
    }
    if (check_me == 1)
        pthread_exit(NULL);
    shmem_barrier_all();
    puts("a barrier ended that one PE never reached");
    shmem_finalize();
    return 98;
}
