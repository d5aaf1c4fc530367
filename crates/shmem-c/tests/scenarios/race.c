/* Two threads put to the same address without order, which a race detector must report. */
#include "../programs/check.h"
#include <pthread.h>

static char *place;

static void *put(void *unused) {
    for (long i = 0; i < 1000; i++)
        shmem_putmem(place, &i, 7, check_me);
    return unused;
}

int main(void) {
    int provided;
    pthread_t threads[2];
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    check_start();
    place = check_malloc(8);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, put, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    shmem_free(place);
    return check_end();
}
