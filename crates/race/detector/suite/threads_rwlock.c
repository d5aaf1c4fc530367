/* A thread puts from an array under a read lock, and another one changes it with a write lock or without.
 * PEs: 2 */
#include "suite.h"

static long x[8], from;
static pthread_rwlock_t lock __attribute__((unused)) = PTHREAD_RWLOCK_INITIALIZER;
static void *body(void *argument) {
    ORDER(pthread_rwlock_rdlock(&lock));
    shmem_long_put(x, &from, 1, 1); /* RACE */
    ORDER(pthread_rwlock_unlock(&lock));
    return argument;
}

static void run(int me, int n) {
    (void)me, (void)n;
    pthread_t thread;
    if (me == 0) {
        pthread_create(&thread, NULL, body, NULL);
        ORDER(pthread_rwlock_wrlock(&lock));
        from = 2; /* RACE */
        ORDER(pthread_rwlock_unlock(&lock));
        pthread_join(thread, NULL);
    }
}
