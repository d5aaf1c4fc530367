/* Two threads use one buffer, with a mutex or without.
 * PEs: 2 */
#include "suite.h"

static long x[8], from;
static pthread_mutex_t mutex __attribute__((unused)) = PTHREAD_MUTEX_INITIALIZER;
static void *body(void *argument) {
    ORDER(pthread_mutex_lock(&mutex));
    shmem_long_put(x, &from, 1, 1); /* RACE */
    ORDER(pthread_mutex_unlock(&mutex));
    return argument;
}

static void run(int me, int n) {
    (void)me, (void)n;
    pthread_t thread;
    if (me == 0) {
        pthread_create(&thread, NULL, body, NULL);
        ORDER(pthread_mutex_lock(&mutex));
        from = 2; /* RACE */
        ORDER(pthread_mutex_unlock(&mutex));
        pthread_join(thread, NULL);
    }
}
