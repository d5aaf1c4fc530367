/* Hangs in this number of threads, each of which waits for a word that no PE writes. */
#include <pthread.h>
#include <shmem.h>
#include <stdlib.h>

static long word[1024];

static void *wait_for(void *at) {
    shmem_long_wait_until(at, SHMEM_CMP_EQ, 1);
    return NULL;
}

int main(int argc, char **argv) {
    const int n = argc > 1 ? atoi(argv[1]) : 1;
    pthread_t threads[1024];
    int provided;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    for (int i = 0; i < n; i++)
        if (pthread_create(&threads[i], NULL, wait_for, &word[i]))
            shmem_global_exit(1);
    shmem_barrier_all();
    for (int i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    shmem_finalize();
    return 0;
}
