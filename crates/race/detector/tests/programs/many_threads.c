/* Threads that end, and teams of OpenMP, one after another: the memory that they use does not grow. PEs: 1 */
#include <pthread.h>
#include <shmem.h>
#include <stdio.h>

#define MOST_KIB 1024

static long x[8];

static void *body(void *argument) {
    x[1]++;
    return argument;
}

static void threads(int n) {
    for (int i = 0; i < n; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, body, NULL);
        pthread_join(thread, NULL);
    }
}

static void teams(int n) {
    for (int i = 0; i < n; i++) {
#pragma omp parallel num_threads(2)
#pragma omp single
        x[2]++;
    }
}

static long kib(void) {
    long all, resident;
    FILE *file = fopen("/proc/self/statm", "r");
    if (fscanf(file, "%ld %ld", &all, &resident) != 2)
        return 0;
    fclose(file);
    return resident * 4;
}

int main(void) {
    int provided;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    threads(200);
    teams(200);
    long before = kib();
    threads(2000);
    long between = kib();
    teams(6000);
    long after = kib();
    shmem_finalize();
    if (between - before > MOST_KIB || after - between > MOST_KIB)
        return printf("%ld KiB for threads, %ld KiB for teams\n", between - before, after - between), 1;
    return 0;
}
