/* Mistakes that SHMEM_CHECK finds. argv[1] names one, or "none" for correct uses. The test reads
 * this file: the line of the call in the message must be one after the name of the mistake. */
#include <shmem.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *how;
static long word, sync_a[SHMEM_BCAST_SYNC_SIZE], sync_b[SHMEM_BCAST_SYNC_SIZE];
static int data, copies[2], turn;
static volatile sig_atomic_t handled;

static int is(const char *name) { return strcmp(how, name) == 0; }

static void handler(int number) {
    (void)number;
    handled++;
    if (is("handler_waits") || is("handler_interrupts_wait"))
        shmem_long_wait_until(&word, SHMEM_CMP_EQ, 0);
    if (is("handler_synchronizes"))
        shmem_barrier_all();
}

/* A child that is created by a system call, so that no handler of fork runs in it. */
static void child_of_the_kernel(void) {
    const long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        if (is("child_of_the_kernel"))
            shmem_long_p(&word, 1, 0);
        _exit(0);
    }
    waitpid((pid_t)child, NULL, 0);
}

/* The destination is one of two in turn, which is enough on an active set. */
static void broadcast(long *sync) { shmem_broadcast32(&copies[turn++ % 2], &data, 1, 0, 0, 0, shmem_n_pes(), sync); }

/* Mistakes in which all PEs take part. Returns false if argv[1] is not one of them. */
static int by_all(int me) {
    long *block = shmem_calloc(8, sizeof *block), *other = shmem_malloc(64);
    if (me == 1 && (is("lock_in_freed_block") || is("lock_in_reallocated_block")))
        shmem_set_lock(block + 3);
    if (is("lock_in_freed_block"))
        shmem_free(block);
    else if (is("lock_in_reallocated_block"))
        shmem_realloc(block, 1024);
    else if (is("wait_on_freed_block")) {
        shmem_free(block);
        if (me == 1)
            shmem_long_wait_until(block, SHMEM_CMP_NE, 4711); /* freed */
        shmem_barrier_all();
    } else if (is("collective_on_freed_block"))
        shmem_free(block), shmem_long_sum_reduce(SHMEM_TEAM_WORLD, other, block, 1);
    else if (is("psync_in_freed_block"))
        shmem_free(block), broadcast(block); /* freed */
    else if (is("order_of_sizes"))
        shmem_malloc(me == 1 ? 64 : 128);
    else if (is("order_of_calls"))
        me == 1 ? shmem_calloc(1, 64) : shmem_malloc(64);
    else if (is("order_of_counts"))
        me == 1 ? shmem_calloc(2, 50) : shmem_calloc(50, 2);
    else if (is("order_of_frees"))
        shmem_free(me == 1 ? block : other);
    else
        return 0;
    return 1;
}

static void by_one(void) {
    long *words = calloc(4, sizeof *words);
    struct itimerval soon = {{0, 20000}, {0, 20000}};
    if (is("handler_waits") || is("handler_synchronizes"))
        raise(SIGUSR1);
    else if (is("handler_interrupts_wait")) {
        setitimer(ITIMER_REAL, &soon, NULL);
        shmem_long_wait_until(&word, SHMEM_CMP_EQ, 4711);
    } else if (is("child_of_the_kernel"))
        child_of_the_kernel();
    else if (is("signal_in_data"))
        shmem_putmem_signal_nbi(&word, words, 8, (uint64_t *)(void *)&word, 1, SHMEM_SIGNAL_SET, 0);
    free(words);
}

/* A mistake that has no consequence here. */
static void harmless(void) {
    if (is("psync_at_once")) {
        broadcast(sync_a);
        broadcast(sync_a);
    } else if (is("psync_of_barrier")) {
        shmem_barrier(0, 0, shmem_n_pes(), sync_a);
        broadcast(sync_a);
    } else if (is("psync_without_value")) {
        sync_a[0] = 5;
        broadcast(sync_a);
    }
}

/* Correct uses, which must not be reported. */
static int correct(int me, int n) {
    for (int i = 0; i < 3; i++) {
        long *old = shmem_malloc(128);
        shmem_free(old);
        long *lock = shmem_calloc(16, sizeof *lock);
        shmem_set_lock(lock + 2);
        shmem_clear_lock(lock + 2);
        shmem_long_p(lock, me, (me + 1) % n);
        lock = shmem_realloc(lock, 4096);
        shmem_free(lock);
        broadcast(sync_a);
        broadcast(sync_b);
        broadcast(sync_a);
        shmem_barrier_all();
        broadcast(sync_a);
        shmem_sync_all();
        shmem_barrier(0, 0, n, sync_b);
        shmem_barrier(0, 0, n, sync_b);
        shmem_sync(0, 0, n, sync_b);
        raise(SIGUSR1);
        child_of_the_kernel();
    }
    sigset_t set;
    sigemptyset(&set), sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    shmem_long_p(&word, me, (me + 1) % n);
    shmem_barrier_all();
    return handled == 3 && word == (me + n - 1) % n;
}

int main(int argc, char **argv) {
    how = argc > 1 ? argv[1] : "none";
    signal(SIGUSR1, handler), signal(SIGALRM, handler);
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    if (is("none") && !correct(me, n))
        printf("FAIL on PE %d\n", me);
    harmless();
    if (!by_all(me) && me == 1 % n)
        by_one();
    shmem_barrier_all();
    if (me == 0)
        printf("n_pes %d\nPASS\n", n);
    shmem_finalize();
    return 0;
}
