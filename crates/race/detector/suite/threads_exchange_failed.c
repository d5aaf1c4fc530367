/* A thread waits for another one by a compare-and-swap that fails, whose order for that case is acquire or none.
 * PEs: 2 */
#include "suite.h"

static long x[8], from;
static atomic_int ready;
static void *body(void *argument) {
    shmem_long_get(&from, x, 1, 1); /* RACE */
    atomic_store_explicit(&ready, 1, memory_order_release);
    return argument;
}

static void run(int me, int n) {
    (void)me, (void)n;
    pthread_t thread;
    if (me == 0) {
        pthread_create(&thread, NULL, body, NULL);
        int none = 0;
        while (atomic_compare_exchange_strong_explicit(&ready, &none, 0, memory_order_acq_rel,
                                                       IF_CLEAN(memory_order_acquire, memory_order_relaxed))) {
        }
        used = from; /* RACE */
        pthread_join(thread, NULL);
    }
}
