/* A thread of C gets into a word under a mutex, and another thread stores to it under the mutex or without.
 * PEs: 2 */
#include "suite.h"
#include <threads.h>

static long x[8], to;
static mtx_t mutex;

static int body(void *argument) {
    (void)argument;
    ORDER(mtx_lock(&mutex));
    shmem_long_get(&to, x, 1, 1); /* RACE */
    ORDER(mtx_unlock(&mutex));
    return 0;
}

static void run(int me, int n) {
    (void)n;
    thrd_t thread;
    if (me == 0) {
        mtx_init(&mutex, mtx_plain);
        thrd_create(&thread, body, NULL);
        ORDER(mtx_lock(&mutex));
        to = 2; /* RACE */
        ORDER(mtx_unlock(&mutex));
        thrd_join(thread, NULL);
    }
}
