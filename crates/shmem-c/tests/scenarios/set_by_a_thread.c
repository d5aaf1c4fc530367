/* A variable that a thread sets in the environment is not lost while another thread opens endpoints
 * of contexts, and a variable that the program removes does not disturb them.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "../programs/check.h"

enum { CONTEXTS = 12, LOOKS = 1000, LONG = 40000 };

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
    if (check_me == 0)
        unsetenv("FI_OFI_RXM_EAGER_LIMIT");
    shmem_ctx_t last;
    CHECK(shmem_ctx_create(SHMEM_CTX_PRIVATE, &last) == 0, 0, "no context");
    char *there = (char *)shmem_malloc(LONG), *here = (char *)calloc(LONG, 1);
    uint64_t *signal = (uint64_t *)shmem_calloc(1, sizeof *signal);
    shmem_ctx_putmem_signal(last, there, here, LONG, signal, 1, SHMEM_SIGNAL_SET, (check_me + 1) % check_n);
    shmem_signal_wait_until(signal, SHMEM_CMP_EQ, 1);
    free(here);
    shmem_barrier_all();
    CHECK(*word == CONTEXTS, 0, "%ld increments", *word);
    return check_end();
}
