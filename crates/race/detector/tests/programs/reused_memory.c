/* Threads free memory, which other threads then get, without any other order between them: blocks of malloc, mappings and the
 * stacks of threads that nobody joins. PEs: 1 */
#define _GNU_SOURCE
#include <pthread.h>
#include <shmem.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROUNDS 30
#define NBYTES (4 << 20)

static long x[8];
static int from_thread[2], to_thread[2];

static void get(volatile long *into) {
    into[1] = 1;
    shmem_long_get((long *)into, x, 4, 0);
    into[2] = into[0];
}

/* The threads take turns by system calls, of which the detector does not know. */
static void give_turn(int pipe) {
    if (syscall(SYS_write, pipe, "", 1) != 1)
        abort();
}
static void take_turn(int pipe) {
    char byte;
    if (syscall(SYS_read, pipe, &byte, 1) != 1)
        abort();
}

static volatile long *use(volatile long *last) {
    long *block = malloc(NBYTES);
    get(block);
    block = realloc(block, 2 * NBYTES);
    get(block);
    free(block);
    /* Gets the address of the mapping that the other thread had. */
    volatile long *mapping = mmap((void *)last, NBYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    get(mapping);
    munmap((void *)mapping, NBYTES);
    return mapping;
}

static void *alternate(void *argument) {
    for (int i = 0; i < ROUNDS; i++) {
        take_turn(to_thread[0]);
        argument = (void *)use(argument);
        give_turn(from_thread[1]);
    }
    return argument;
}

static void *end_soon(void *argument) {
    volatile long local[8];
    get(local);
    give_turn(from_thread[1]);
    return argument;
}

int main(void) {
    int provided;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    if (pipe(from_thread) || pipe(to_thread))
        return 1;
    volatile long *mapping = use(NULL);
    pthread_t thread;
    pthread_create(&thread, NULL, alternate, (void *)mapping);
    for (int i = 0; i < ROUNDS; i++) {
        mapping = use(mapping);
        give_turn(to_thread[1]);
        take_turn(from_thread[0]);
    }
    pthread_join(thread, NULL);
    for (int i = 0; i < ROUNDS; i++) {
        pthread_create(&thread, NULL, end_soon, NULL);
        pthread_detach(thread);
        take_turn(from_thread[0]);
        usleep(1000); /* The next thread gets its stack. */
    }
    shmem_finalize();
    return 0;
}
