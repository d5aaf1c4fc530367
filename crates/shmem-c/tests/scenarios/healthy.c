/* Jobs in which PEs wait for long although nothing is wrong. They end once the file argv[2] exists.
 * argv[1] names the activity of PE 1. oshrun must not report a hang. */
#include <pthread.h>
#include <shmem.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCK = 1 << 20 };

static const char *how, *file;
static long token, lock, flags[2];

static int is(const char *name) {
    return strcmp(how, name) == 0;
}

static int is_over(void) {
    return access(file, F_OK) == 0;
}

static void compute(void) {
    volatile unsigned long count = 0;
    while (!is_over())
        while (++count % 1000000)
            ;
}

static void doze(void) {
    while (!is_over())
        usleep(10000);
}

static void *puts_later(void *unused) {
    doze();
    shmem_long_p(&token, 1, 1);
    return unused;
}

/* The child writes one byte at the end. */
static void read_from_child(void) {
    int ends[2];
    char byte;
    if (pipe(ends) != 0)
        abort();
    pid_t child = fork();
    if (child == 0) {
        doze();
        _exit(write(ends[1], "x", 1) != 1);
    }
    if (read(ends[0], &byte, 1) != 1)
        abort();
    waitpid(child, NULL, 0);
}

/* The child is the debugger of this process. */
static void be_traced(void) {
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (ptrace(PTRACE_SEIZE, parent, 0, 0) != 0)
            usleep(1000);
        ptrace(PTRACE_INTERRUPT, parent, 0, 0);
        waitpid(parent, NULL, __WALL);
        doze();
        _exit(ptrace(PTRACE_DETACH, parent, 0, 0) != 0);
    }
    prctl(PR_SET_PTRACER, child, 0, 0, 0);
    while (waitpid(child, NULL, WNOHANG) == 0)
        usleep(1000);
}

static void write_much(void) {
    static char block[BLOCK];
    FILE *much = tmpfile();
    while (!is_over()) {
        if (!much || fwrite(block, sizeof block, 1, much) != 1 || fflush(much) || fsync(fileno(much)))
            abort();
        rewind(much);
    }
    fclose(much);
}

static void of_pe_1(void) {
    pthread_t thread;
    if (is("computes") || is("lock"))
        compute();
    else if (is("sleeps"))
        doze();
    else if (is("reads"))
        read_from_child();
    else if (is("traced"))
        be_traced();
    else if (is("writes"))
        write_much();
    else if (is("thread")) {
        if (pthread_create(&thread, NULL, puts_later, NULL) != 0)
            abort();
        shmem_long_wait_until(&token, SHMEM_CMP_EQ, 1);
        pthread_join(thread, NULL);
    } else if (is("polls"))
        while (!shmem_long_test(&token, SHMEM_CMP_EQ, 1))
            usleep(100);
}

/* PE 1 stops the rounds when the time is over. */
static void rounds(int me, int n, char *to, char *from) {
    do {
        if (is("nbi"))
            for (int pe = 0; pe < n; pe++)
                shmem_putmem_nbi(to, from, BLOCK, pe);
        else
            for (volatile long count = 0; count < 10000000;)
                count++;
        shmem_quiet();
        flags[0] = me == 1 && is_over();
        shmem_long_max_reduce(SHMEM_TEAM_WORLD, &flags[1], &flags[0], 1);
    } while (!flags[1]);
}

int main(int argc, char **argv) {
    int provided;
    if (argc < 3)
        return 2;
    how = argv[1];
    file = argv[2];
    if (shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) != 0)
        return 3;
    const int me = shmem_my_pe(), n = shmem_n_pes();
    char *to = shmem_malloc(BLOCK), *from = calloc(1, BLOCK);
    if (is("rounds") || is("nbi"))
        rounds(me, n, to, from);
    if (is("lock") && me == 1)
        shmem_set_lock(&lock);
    shmem_barrier_all();
    if (me == 1)
        of_pe_1();
    if (is("polls") && me == 0) {
        compute();
        shmem_long_p(&token, 1, 1);
    } else if (is("pipeline")) {
        /* PE 0 computes, and each other one waits for the one before it. */
        me == 0 ? compute() : shmem_long_wait_until(&token, SHMEM_CMP_EQ, 1);
        if (me + 1 < n)
            shmem_long_p(&token, 1, me + 1);
    } else if (is("lock") && me != 1)
        shmem_set_lock(&lock);
    if (is("lock"))
        shmem_clear_lock(&lock);
    shmem_barrier_all();
    shmem_finalize();
    return 0;
}
