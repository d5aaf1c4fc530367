/* A thread announces a put by an atomic store, with release order or with none.
 * PEs: 2 */
#include "suite.h"

static long x[8], to;
static atomic_int ready;
static void *body(void *argument) {
    long one = 1;
    shmem_long_put(x, &one, 1, 1); /* RACE */
    shmem_quiet();
    atomic_store_explicit(&ready, 1, IF_CLEAN(memory_order_release, memory_order_relaxed));
    return argument;
}

static void run(int me, int n) {
    (void)me, (void)n;
    pthread_t thread;
    if (me == 0) {
        pthread_create(&thread, NULL, body, NULL);
        while (atomic_load_explicit(&ready, IF_CLEAN(memory_order_acquire, memory_order_relaxed)) == 0) {
        }
        shmem_long_get(&to, x, 1, 1); /* RACE */
        pthread_join(thread, NULL);
    }
}
