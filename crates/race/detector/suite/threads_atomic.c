/* A thread announces by an atomic variable that its get is done.
 * PEs: 2 */
#include "suite.h"

static long x[8], from;
static atomic_int ready;
static void *body(void *argument) {
    shmem_long_get(&from, x, 1, 1); /* RACE */
    ready = 1;
    return argument;
}

static void run(int me, int n) {
    (void)me, (void)n;
    pthread_t thread;
    if (me == 0) {
        pthread_create(&thread, NULL, body, NULL);
        while (IF_CLEAN(1, 0) && !ready) {
        }
        used = from; /* RACE */
        pthread_join(thread, NULL);
    }
}
