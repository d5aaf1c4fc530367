/* What the programs of this suite have in common: each has a race, which ORDER or IF_CLEAN prevents if CLEAN is defined.
 * The two accesses that race are marked by a comment. */
#include <pthread.h>
#include <shmem.h>
#ifndef __cplusplus
#include <stdatomic.h>
#endif
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef CLEAN
#define ORDER(...) __VA_ARGS__
#define IF_CLEAN(a, b) (a)
#else
#define ORDER(...) (void)0
#define IF_CLEAN(a, b) (b)
#endif

#ifndef LEVEL
#define LEVEL SHMEM_THREAD_MULTIPLE
#endif

/* A load whose value is used. */
static volatile long used __attribute__((unused));

static void run(int me, int n);

int main(void) {
    int provided;
    shmem_init_thread(LEVEL, &provided);
    shmem_barrier_all();
    run(shmem_my_pe(), shmem_n_pes());
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
