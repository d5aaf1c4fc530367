/* Two threads put to the same word while both hold a lock for writing, or both for reading.
 * PEs: 2 */
#include "suite.h"

static long x[8], from;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static void *body(void *argument) {
    IF_CLEAN(pthread_rwlock_wrlock, pthread_rwlock_rdlock)(&lock);
    shmem_long_put(x, &from, 1, 1); /* RACE with itself */
    shmem_quiet();
    pthread_rwlock_unlock(&lock);
    return argument;
}

static void run(int me, int n) {
    (void)me, (void)n;
    pthread_t threads[2];
    if (me == 0) {
        pthread_create(&threads[0], NULL, body, NULL);
        pthread_create(&threads[1], NULL, body, NULL);
        pthread_join(threads[0], NULL);
        pthread_join(threads[1], NULL);
    }
}
