/* Jobs that hang as the argument says. oshrun must explain why. */
#include <pthread.h>
#include <shmem.h>
#include <shmemx.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *how;
static long flag[4] = {0, 0, 7, 0}, words[4] = {1, 0, 0, 0}, locks[3], token, source, dest;
static uint64_t sig;
static pid_t process_of_1;
static volatile long sum;

static int is(const char *name) {
    return strcmp(how, name) == 0;
}

/* PE 1 computes here forever. */
static void compute_row(void) {
    for (;;)
        sum++;
}

static void before_init(void) {
    const char *local = getenv("SHMEM_LOCAL_ID");
    if (is("init") && local && strcmp(local, "1") == 0)
        sleep(1000);
}

static void *lock_again(void *lock) {
    shmem_set_lock(lock);
    return NULL;
}

static void *sleep_in_thread(void *unused) {
    sleep(1000);
    return unused;
}

static void sleep_at_exit(void) {
    sleep(1000);
}

/* Leaves the program that the library knows: its main thread, or the program itself. */
static void leave_program(void) {
    pthread_t thread;
    if (is("no_main_thread")) {
        pthread_create(&thread, NULL, sleep_in_thread, NULL);
        pthread_exit(NULL);
    } else if (is("vfork") && vfork() == 0) {
        for (;;)
            pause();
    } else if (is("exec"))
        execlp("sleep", "sleep", "1000", (char *)NULL);
    else if (is("exit_handler"))
        atexit(sleep_at_exit);
}

/* Repeats a call that does not wait, forever. */
static void poll_word(void) {
    if (is("polls_test"))
        while (!shmem_long_test(&flag[2], SHMEM_CMP_GE, 8))
            ;
    else if (is("polls_any"))
        while (shmem_long_test_any(words + 1, 3, NULL, SHMEM_CMP_EQ, 1) == SIZE_MAX)
            ;
    else if (is("polls_get"))
        while (shmem_long_g(&flag[2], 0) < 8)
            ;
    else if (is("polls_fetch"))
        while (shmem_long_atomic_fetch(&flag[2], 0) < 8)
            ;
    else if (is("polls_signal"))
        while (shmem_signal_fetch(&sig) != 5)
            ;
    else if (is("polls_lock"))
        while (shmem_test_lock(locks))
            ;
}

/* Activities of PE 1 while the others wait in the barrier. */
static void of_pe_1(void) {
    shmem_team_t other;
    if (is("mismatch"))
        shmem_long_broadcast(SHMEM_TEAM_WORLD, &flag[1], &flag[0], 1, 0);
    else if (is("split"))
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 2, NULL, 0, &other);
    else if (is("word"))
        shmem_long_wait_until(&flag[2], SHMEM_CMP_GE, 8);
    else if (is("words"))
        shmem_long_wait_until_all(words, 4, NULL, SHMEM_CMP_EQ, 1);
    else if (is("signal"))
        shmem_signal_wait_until(&sig, SHMEM_CMP_EQ, 5);
    else if (is("computes") || is("late"))
        compute_row();
    else if (strncmp(how, "polls_", 6) == 0)
        poll_word();
    else if (is("sleeps"))
        sleep(1000);
    else if (is("own_lock")) {
        pthread_t thread;
        shmem_set_lock(locks);
        pthread_create(&thread, NULL, lock_again, locks);
        pthread_join(thread, NULL);
    }
    else if (is("stopped"))
        /* A debugger that comes at that moment takes the signal for its own. */
        for (;;)
            raise(SIGSTOP);
    else
        leave_program();
}

/* Activities of all PEs before the barrier. */
static void of_all(int me, int n, shmem_team_t pair[2], shmem_team_t even, long *heap) {
    if (is("locks") || is("three_locks")) {
        /* Each of these PEs holds a lock and then wants that of the next one. */
        const int cycle = is("locks") ? 2 : 3;
        if (me < cycle)
            shmem_set_lock(&locks[me]);
        shmem_barrier_all();
        if (me < cycle)
            shmem_set_lock(&locks[(me + 1) % cycle]);
    } else if (is("lock_and_barrier")) {
        if (me == 1) {
            shmem_set_lock(locks);
            shmem_barrier_all();
        } else {
            shmem_barrier_all();
            shmem_set_lock(locks);
        }
    } else if (is("holder")) {
        if (me == 1)
            shmem_set_lock(locks);
        shmem_barrier_all();
        me == 1 ? compute_row() : shmem_set_lock(locks);
    } else if (is("polls_lock")) {
        if (me == 0)
            shmem_set_lock(locks);
        shmem_barrier_all();
    } else if (is("request")) {
        shmemx_req_t request;
        if (me == 1)
            compute_row();
        shmemx_long_sum_reduce_nb(SHMEM_TEAM_WORLD, &dest, &source, 1, &request);
        shmemx_req_wait(&request);
    } else if (is("tokens")) {
        /* Each PE waits for the one before it, and none starts. */
        shmem_long_wait_until(&token, SHMEM_CMP_EQ, 1);
        shmem_long_p(&token, 1, (me + 1) % n);
    } else if (is("teams")) {
        shmem_team_sync(pair[me % 2]);
        shmem_team_sync(pair[1 - me % 2]);
    } else if (is("writer") || is("signaler") || is("adder")) {
        /* PE 2 writes too little. */
        if (me == 2) {
            shmem_long_put(&flag[1], (long[]){6, 7}, 2, 1);
            shmem_long_put_signal(&token, &dest, 1, &sig, 4, SHMEM_SIGNAL_SET, 1);
            shmem_long_atomic_add(heap, 3, 1);
            shmem_long_p(&flag[2], 9, 3);
            shmem_long_g(&flag[2], 1);
        }
        if (me == 3) {
            /* A swap that finds another value writes nothing. */
            shmem_long_wait_until(&flag[2], SHMEM_CMP_EQ, 9);
            shmem_long_atomic_compare_swap(heap, 100, 1, 1);
        }
        if (me == 1 && is("writer"))
            shmem_long_wait_until(&flag[2], SHMEM_CMP_GE, 8);
        else if (me == 1 && is("signaler"))
            shmem_signal_wait_until(&sig, SHMEM_CMP_EQ, 5);
        else if (me == 1)
            shmem_long_wait_until(heap, SHMEM_CMP_EQ, 8);
    } else if (is("registered")) {
        /* PE 2 adds too little to a word of the program's own memory. */
        long *own = aligned_alloc(4096, 4096);
        own[1] = 0;
        shmemx_buffer_register(own, 4096, 0);
        if (me == 2)
            shmem_long_atomic_add(own + 1, 3, 1);
        if (me == 1)
            shmem_long_wait_until(own + 1, SHMEM_CMP_EQ, 8);
    } else if (is("in_flight")) {
        /* Operations on the last PE, which is stopped and on another node than PE 0, do not end. */
        if (me == n - 1)
            raise(SIGSTOP);
        while (me == 0) {
            for (int i = 0; i < 14; i++)
                shmem_long_put_nbi(&words[i % 4], &source, 1, n - 1);
            shmem_quiet();
        }
        if (me == 1)
            shmem_long_wait_until(&flag[2], SHMEM_CMP_GE, 8);
    } else if (is("paused")) {
        /* PE 1 is stopped for a second after the others have begun to wait for it. */
        process_of_1 = getpid();
        shmem_barrier_all();
        if (me == n - 1) {
            shmem_getmem(&process_of_1, &process_of_1, sizeof process_of_1, 1);
            sleep(1);
            kill(process_of_1, SIGSTOP);
            sleep(1);
            kill(process_of_1, SIGCONT);
        }
        if (me == 1)
            shmem_long_wait_until(&flag[2], SHMEM_CMP_GE, 8);
    } else if (is("even")) {
        /* PE 2 never comes to the collective of the even PEs, for which the odd ones wait. */
        if (me == 2)
            shmem_long_wait_until(&token, SHMEM_CMP_EQ, 1);
        if (me % 2 == 0)
            shmem_long_sum_reduce(even, &dest, &source, 1);
    }
}

int main(int argc, char **argv) {
    how = argc > 1 ? argv[1] : "";
    before_init();
    int provided;
    shmem_init_thread(is("own_lock") ? SHMEM_THREAD_MULTIPLE : SHMEM_THREAD_SINGLE, &provided);
    const int me = shmem_my_pe(), n = shmem_n_pes();
    shmem_team_t pair[2], even;
    for (int team = 0; team < 2; team++)
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &pair[team]);
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (n + 1) / 2, NULL, 0, &even);
    long *heap = shmem_calloc(4, sizeof(long));
    shmem_barrier_all();
    of_all(me, n, pair, even, heap);
    if (me == 1)
        of_pe_1();
    if (!is("late"))
        shmem_barrier_all();
    shmem_finalize();
    printf("did not hang\n");
    return 0;
}
