/* A thread gets, and another one uses what it got.
 * PEs: 2 */
#include "suite.h"

static long x[8], from;
static void *body(void *argument) {
    shmem_long_get(&from, x, 1, 1); /* RACE */
    return argument;
}

static void run(int me, int n) {
    (void)me, (void)n;
    pthread_t thread;
    if (me == 0) {
        pthread_create(&thread, NULL, body, NULL);
        ORDER(pthread_join(thread, NULL));
        used = from; /* RACE */
        if (IF_CLEAN(0, 1))
            pthread_join(thread, NULL);
    }
}
