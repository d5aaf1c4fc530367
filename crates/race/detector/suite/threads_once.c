/* One of two threads gets into a word, once, and the other one stores to it, after that or at any time.
 * PEs: 2 */
#include "suite.h"

static long x[8], to;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void initialize(void) {
    shmem_long_get(&to, x, 1, 1); /* RACE */
}

static void *body(void *argument) {
    pthread_once(&once, initialize);
    return argument;
}

static void run(int me, int n) {
    (void)n;
    pthread_t thread;
    if (me == 0) {
        pthread_create(&thread, NULL, body, NULL);
        ORDER(pthread_once(&once, initialize));
        to = 2; /* RACE */
        pthread_join(thread, NULL);
    }
}
