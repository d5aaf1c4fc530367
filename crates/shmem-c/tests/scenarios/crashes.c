/* PE 1 crashes as argv[1] says while the others are in a barrier. In "large_array" and "early", all
 * PEs crash before they initialize the library. */
#include <pthread.h>
#include <shmemx.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static long dest[4];
static long *const bad = (long *)0x10;

static void store(volatile int *address) {
    *address = 1;
}

static void *store_in_thread(void *address) {
    store(address);
    return NULL;
}

static void two_threads(void) {
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, store_in_thread, (void *)8);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

static void call_null(void) {
    void (*volatile function)(void) = NULL;
    function();
}

/* Overwrites the head of the next block, too, which the allocator probably uses next. */
static void damage_heap(void) {
    char *volatile block = malloc(2000);
    memset(block - 16, 255, 2048);
    free(block);
}

static void free_twice(void) {
    char *volatile block = malloc(24);
    free(block);
    free(block);
}

/* A program that handles signals on another stack, as in the manual page sigaltstack(2). */
static void store_with_small_stack(void) {
    static char memory[8192];
    const stack_t stack = {.ss_sp = memory, .ss_size = sizeof memory};
    sigaltstack(&stack, NULL);
    store((int *)8);
}

static int sum_to(volatile int n) {
    return n ? n + sum_to(n - 1) : 0;
}

/* The thread has a stack for handlers. */
static void *overflow_in_thread(void *unused) {
    const stack_t stack = {.ss_sp = malloc(64 << 10), .ss_size = 64 << 10};
    sigaltstack(&stack, NULL);
    exit(sum_to(1 << 30));
    return unused;
}

static void large_array(void) {
    volatile char array[64 << 20];
    array[0] = 1;
    shmem_init();
    exit(array[0]);
}

/* As a batch system does that finds no progress. */
static void abort_in_wait(void) {
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGABRT};
    const struct itimerspec second = {.it_value.tv_sec = 1};
    timer_t timer;
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &second, NULL);
    shmem_long_wait_until(dest, SHMEM_CMP_EQ, 1);
}

static char *block;

/* Leaves a hole in the symmetric heap behind the block. */
static void make_hole(void) {
    block = shmem_malloc(100);
    void *hole = shmem_malloc(100);
    shmem_malloc(100);
    shmem_free(hole);
}

/* Stores over the hole, in which the allocator has its data. */
static void damage_symmetric_heap(void) {
    for (int i = 100; i < 160; i++)
        ((volatile char *)block)[i] = 0x7f;
    shmem_malloc(100);
}

static void crash(const char *how) {
    if (!strcmp(how, "null_call"))
        call_null();
    else if (!strcmp(how, "threads"))
        two_threads();
    else if (!strcmp(how, "heap"))
        damage_heap();
    else if (!strcmp(how, "symmetric_heap"))
        damage_symmetric_heap();
    else if (!strcmp(how, "free_twice"))
        free_twice();
    else if (!strcmp(how, "free_symmetric"))
        free(shmem_malloc_with_hints(800, SHMEMX_MALLOC_NO_BARRIER));
    else if (!strcmp(how, "small_stack"))
        store_with_small_stack();
    else if (!strcmp(how, "deep"))
        exit(sum_to(1 << 30));
    else if (!strcmp(how, "overflow_in_thread")) {
        pthread_t thread;
        pthread_create(&thread, NULL, overflow_in_thread, NULL);
        pthread_join(thread, NULL);
    } else if (!strcmp(how, "null_source"))
        shmem_long_put(dest, NULL, 1, 0);
    else if (!strcmp(how, "bad_source"))
        shmem_long_put(dest, bad, 4, 0);
    else if (!strcmp(how, "bad_dest"))
        shmem_long_get(bad, dest, 4, 0);
    else if (!strcmp(how, "bad_strided"))
        shmem_long_iput(dest, bad, 1, 1, 4, 0);
    else if (!strcmp(how, "bad_fetch"))
        shmem_long_atomic_fetch_nbi(bad, dest, 0);
    else if (!strcmp(how, "bad_word"))
        shmem_long_wait_until(bad, SHMEM_CMP_EQ, 1);
    else if (!strcmp(how, "abort_in_wait"))
        abort_in_wait();
    else if (!strcmp(how, "pointer"))
        store((int *)0x123456789000);
    else if (!strcmp(how, "text"))
        store((int *)"a constant");
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    if (!strcmp(how, "large_array"))
        large_array();
    if (!strcmp(how, "early"))
        store((int *)8);
    shmem_init();
    make_hole();
    if (shmem_my_pe() == 1)
        crash(how);
    shmem_barrier_all();
    puts("a barrier ended that one PE never reached");
    shmem_finalize();
    return 98;
}
