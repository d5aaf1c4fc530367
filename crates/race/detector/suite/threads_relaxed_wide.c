/* A compare-and-swap of 16 bytes that succeeds, with acquire order or with none.
 * PEs: 2
 * FLAGS: -mcx16 */
#include "suite.h"

static long x[8], from;
static __int128 ready;
static void *body(void *argument) {
    shmem_long_get(&from, x, 1, 1); /* RACE */
    __atomic_store_n(&ready, 1, __ATOMIC_RELEASE);
    return argument;
}

static void run(int me, int n) {
    (void)me, (void)n;
    pthread_t thread;
    if (me == 0) {
        pthread_create(&thread, NULL, body, NULL);
        for (__int128 one = 1; !__atomic_compare_exchange_n(
                 &ready, &one, 2, 0, IF_CLEAN(__ATOMIC_ACQUIRE, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
             one = 1) {
        }
        used = from; /* RACE */
        pthread_join(thread, NULL);
    }
}
