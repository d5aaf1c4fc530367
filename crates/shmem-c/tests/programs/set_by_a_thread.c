/* What a thread sets in the environment stays while another one opens endpoints of contexts. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "check.h"

enum { CONTEXTS = 12, LOOKS = 1000 };

static atomic_int over;

static void *set(void *ignored) {
    char value[32];
    for (long i = 0; !over; i++) {
        snprintf(value, sizeof value, "%ld", i);
        setenv("SET_BY_A_THREAD", value, 1);
        for (int k = 0; k < LOOKS; k++)
            CHECK(!strcmp(getenv("SET_BY_A_THREAD"), value), 0, "%s was lost", value);
    }
    return ignored;
}

int main(void) {
    int provided;
    setenv("SET_BY_A_THREAD", "", 1);
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    check_start();
    long *word = (long *)shmem_calloc(1, sizeof *word);
    pthread_t thread;
    pthread_create(&thread, NULL, set, NULL);
    for (int i = 0; i < CONTEXTS; i++) {
        shmem_ctx_t ctx;
        CHECK(shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx) == 0, 0, "no context");
        shmem_ctx_long_atomic_inc(ctx, word, (check_me + 1) % check_n);
        shmem_ctx_quiet(ctx);
    }
    over = 1;
    pthread_join(thread, NULL);
    shmem_barrier_all();
    CHECK(*word == CONTEXTS, 0, "%ld increments", *word);
    return check_end();
}
