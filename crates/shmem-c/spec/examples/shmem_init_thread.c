/* Two threads of each PE add to a counter of PE 0 at the same time. */
#include <shmem.h>
#include <stdio.h>
#include <pthread.h>

static long count;

static void *add(void *times) {
    for (int i = 0; i < *(int *)times; i++)
        shmem_long_atomic_inc(&count, 0);
    return NULL;
}

int main(void) {
    int level, times[2] = {50, 100};
    if (shmem_init_thread(SHMEM_THREAD_MULTIPLE, &level) != 0)
        return 1;
    if (level != SHMEM_THREAD_MULTIPLE)
        shmem_global_exit(1);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, add, &times[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    shmem_barrier_all();
    if (shmem_my_pe() == 0)
        printf("the counter is %ld\n", count);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   the counter is 600 */
