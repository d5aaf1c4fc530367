/* The function of shmemx_register_gettid is called only in threads that use private contexts, and
 * not in the main thread. Sandia OpenSHMEM does the same, and its test numbers no other threads. */
#include "../programs/check.h"
#include <pthread.h>
#include <shmemx.h>

static __thread uint64_t number;
static int calls_elsewhere;

static uint64_t get(void) {
    if (number == 0)
        __atomic_fetch_add(&calls_elsewhere, 1, __ATOMIC_RELAXED);
    return number;
}

static void *use(void *unused) {
    static long x;
    shmem_ctx_t ctx;
    (void)unused;
    number = 7;
    if (shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx) == 0) {
        shmem_ctx_long_atomic_add(ctx, &x, 1, 0);
        shmem_ctx_quiet(ctx);
        shmem_ctx_destroy(ctx);
    }
    return NULL;
}

int main(void) {
    int level;
    pthread_t thread;
    shmem_ctx_t ctx;
    shmemx_register_gettid(get);
    CHECK(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &level) == 0, 76, "shmem_init_thread failed");
    check_start();
    CHECK(pthread_create(&thread, NULL, use, NULL) == 0, 22, "no thread can be had");
    pthread_join(thread, NULL);
    if (shmem_ctx_create(0, &ctx) == 0)
        shmem_ctx_destroy(ctx);
    shmem_barrier_all();
    CHECK(calls_elsewhere == 0, 0, "it was called %d times in the main thread", calls_elsewhere);
    int status = check_end();
    if (calls_elsewhere != 0)
        fprintf(stderr, "it was called in the main thread, by shmem_finalize at the latest\n");
    return calls_elsewhere != 0 ? 1 : status;
}
