/* A signal handler of PE 1 calls the library while the thread is in malloc. The program has a
 * malloc of its own, so that the thread certainly holds the lock of malloc. */
#include <pthread.h>
#include <shmem.h>
#include <signal.h>
#include <stddef.h>

static pthread_mutex_t in_malloc = PTHREAD_MUTEX_INITIALIZER;
static volatile sig_atomic_t interrupts;

void *__libc_malloc(size_t nbytes);

void *malloc(size_t nbytes) {
    pthread_mutex_lock(&in_malloc);
    if (interrupts) {
        interrupts = 0;
        raise(SIGUSR1);
    }
    void *block = __libc_malloc(nbytes);
    pthread_mutex_unlock(&in_malloc);
    return block;
}

static void handler(int number) {
    (void)number;
    shmem_barrier_all();
}

int main(void) {
    signal(SIGUSR1, handler);
    shmem_init();
    interrupts = shmem_my_pe() == 1;
    void *volatile block = malloc(8);
    shmem_barrier_all();
    shmem_finalize();
    return block == NULL;
}
