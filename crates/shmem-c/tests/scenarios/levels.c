/* A thread level: the requested level is provided, and remains if the library is initialized again.
 *
 *     levels LEVEL      0 to 3
 */
#include "../programs/check.h"
#include <pthread.h>

static const int levels[] = {SHMEM_THREAD_SINGLE, SHMEM_THREAD_FUNNELED, SHMEM_THREAD_SERIALIZED, SHMEM_THREAD_MULTIPLE};
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long *word;
static int provided;

static int level(void) {
    int now = -1;
    shmem_query_thread(&now);
    return now;
}

/* Calls that a thread may make at a level: none, one at a time, or any. */
static void *call(void *unused) {
    (void)unused;
    if (provided < SHMEM_THREAD_SERIALIZED)
        return NULL;
    for (int i = 0; i < 100; i++) {
        if (provided == SHMEM_THREAD_SERIALIZED)
            pthread_mutex_lock(&mutex);
        shmem_long_atomic_inc(word, (check_me + i) % check_n);
        if (provided == SHMEM_THREAD_SERIALIZED)
            pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

int main(int argc, char **argv) {
    int requested = levels[argc > 1 ? atoi(argv[1]) % 4 : 0], again = -1;
    CHECK(shmem_init_thread(requested, &provided) == 0, 76, "shmem_init_thread failed");
    check_start();
    CHECK(provided == requested && level() == requested, 76, "level %d was requested, %d is provided", requested, provided);
    for (int i = 0; i < 4; i++) {
        CHECK(shmem_init_thread(levels[i], &again) == 0, 76, "a further init asking for %d failed", levels[i]);
        CHECK(again == requested && level() == requested, 76, "a request for %d changed the level to %d", levels[i], again);
    }
    CHECK(shmem_init_thread(SHMEM_THREAD_MULTIPLE + 1, &again) != 0, 76, "a level that is none");
    for (int i = 0; i < 4; i++)
        shmem_finalize();
    pthread_t threads[2];
    word = shmem_calloc(1, sizeof *word);
    for (int i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, call, NULL) == 0, 77, "no thread can be had");
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    shmem_barrier_all();
    long sum = 0;
    for (int pe = 0; pe < check_n; pe++)
        sum += shmem_long_g(word, pe);
    CHECK(sum == (provided < SHMEM_THREAD_SERIALIZED ? 0 : 200L * check_n), 77, "%ld calls are counted", sum);
    shmem_barrier_all();
    shmem_free(word);
    /* The last finalize closes the library; the thread level of the process remains. */
    int total = check_agree();
    shmem_finalize();
    CHECK(shmem_init_thread(SHMEM_THREAD_SINGLE, &again) == 0 && again == requested, 76, "the level became %d", again);
    total += check_agree();
    shmem_finalize();
    return check_verdict(total);
}
