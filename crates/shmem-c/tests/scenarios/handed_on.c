/* A thread stores data, and another thread of the PE loads them after a call of the library that orders the two. `nothing`
 * orders them by nothing that ThreadSanitizer may know. */
#include <pthread.h>
#include <sched.h>
#include <shmem.h>
#include <stdio.h>
#include <string.h>

static long flag, back, lock, data;
static uint64_t signal;
static const char *how;

static int is(const char *name) { return strcmp(how, name) == 0; }

static void *producer(void *unused) {
    int me = shmem_my_pe();
    long one = 1;
    if (is("lock"))
        shmem_set_lock(&lock);
    data = 42;

    if (is("set"))
        shmem_long_atomic_set(&flag, 1, me);
    else if (is("put"))
        shmem_long_p(&flag, 1, me);
    else if (is("signal"))
        shmem_long_put_signal(&flag, &one, 1, &signal, 1, SHMEM_SIGNAL_SET, me);
    else if (is("add"))
        shmem_long_atomic_add(&flag, 1, me);
    else if (is("way_back")) /* the main thread of the next PE sends it back */
        shmem_long_atomic_set(&flag, 1, (me + 1) % shmem_n_pes());
    else if (is("lock")) {
        flag = 1;
        shmem_clear_lock(&lock);
    } else
        __atomic_store_n(&flag, 1, __ATOMIC_RELAXED);
    return unused;
}

static void await(void) {
    int me = shmem_my_pe(), n = shmem_n_pes();
    if (is("signal"))
        shmem_signal_wait_until(&signal, SHMEM_CMP_EQ, 1);
    else if (is("add"))
        while (shmem_long_atomic_fetch(&flag, me) != 1)
            ;
    else if (is("way_back")) {
        shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1);
        shmem_long_atomic_set(&back, 1, (me + n - 1) % n);
        shmem_long_wait_until(&back, SHMEM_CMP_EQ, 1);
    } else if (is("lock")) {
        for (long done = 0; !done;) {
            shmem_set_lock(&lock);
            done = flag;
            shmem_clear_lock(&lock);
        }
    } else if (is("nothing"))
        while (__atomic_load_n(&flag, __ATOMIC_RELAXED) != 1)
            sched_yield();
    else
        shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1);
}

int main(int argc, char **argv) {
    int provided;
    how = argc > 1 ? argv[1] : "";
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    shmem_barrier_all();

    pthread_t thread;
    pthread_create(&thread, NULL, producer, NULL);
    await();
    long found = data;
    pthread_join(thread, NULL);

    shmem_barrier_all();
    if (shmem_my_pe() == 0)
        printf("n_pes %d\n%s\n", shmem_n_pes(), found == 42 ? "PASS" : "FAIL");
    shmem_finalize();
    return found != 42;
}
