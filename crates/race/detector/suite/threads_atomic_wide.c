/* A thread announces by an atomic variable of 16 bytes that its get is done.
 * PEs: 2 */
#include "suite.h"

static long x[8], from;
static _Atomic __int128 ready;
static const __int128 STEP = ((__int128)1 << 100) + 1;

/* Returns whether all operations give what they should. */
static int are_right(void) {
    __int128 seen = STEP;
    int right = atomic_fetch_add(&ready, STEP) == 0 && atomic_fetch_sub(&ready, 1) == STEP;
    right &= !atomic_compare_exchange_strong(&ready, &seen, 5) && seen == STEP - 1;
    right &= atomic_compare_exchange_strong(&ready, &seen, STEP) && atomic_exchange(&ready, 6) == STEP;
    right &= atomic_fetch_or(&ready, STEP) == 6 && atomic_fetch_and(&ready, ~STEP) == (6 | STEP);
    right &= atomic_fetch_xor(&ready, 6) == 6;
    return right && ready == 0;
}

static void *body(void *argument) {
    shmem_long_get(&from, x, 1, 1); /* RACE */
    ready = STEP;
    return argument;
}

static void run(int me, int n) {
    (void)me, (void)n;
    pthread_t thread;
    if (!are_right())
        shmem_global_exit(1);
    if (me == 0) {
        pthread_create(&thread, NULL, body, NULL);
        while (IF_CLEAN(1, 0) && ready != STEP) {
        }
        used = from; /* RACE */
        pthread_join(thread, NULL);
    }
}
