/* PE 0 waits in the call that argv[1] names. PE 1 ends the wait once the file argv[2] exists. Until
 * then it sleeps outside of the library, computes ("computes"), or is stopped ("get", "quiet"). */
#include <shmem.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *how, *file;
static int flags[4], source[2], dest[2];
static uint64_t sig;
static long pid, lock, psync[SHMEM_BARRIER_SYNC_SIZE];

static int is(const char *name) {
    return !strcmp(how, name);
}

static void until_file_exists(void) {
    volatile unsigned long count = 0;
    while (access(file, F_OK))
        if (is("computes"))
            while (++count % 1000000)
                ;
        else
            usleep(10000);
}

/* A child process that continues this one once the file exists. */
static void continue_later(void) {
    pid_t parent = getpid();
    if (fork())
        return;
    until_file_exists();
    kill(parent, SIGCONT);
    _exit(0);
}

/* Returns once the process is stopped. */
static void until_stopped(long pid) {
    char name[64], text[512], state = 0;
    snprintf(name, sizeof name, "/proc/%ld/stat", pid);
    while (state != 'T') {
        FILE *stat = fopen(name, "r");
        if (stat && fgets(text, sizeof text, stat) && strrchr(text, ')'))
            state = strrchr(text, ')')[2];
        if (stat)
            fclose(stat);
        usleep(1000);
    }
}

/* Calls in which one PE waits, and the calls by which the other PE ends the wait. */
static void one_sided(int me, int *heap) {
    if (is("wait_until"))
        me ? shmem_int_p(&flags[2], 8, 0) : shmem_int_wait_until(&flags[2], SHMEM_CMP_GE, 8);
    else if (is("wait_until_all"))
        me ? shmem_int_put(heap, (int[]){1, 1}, 2, 0) : shmem_int_wait_until_all(heap, 2, NULL, SHMEM_CMP_NE, 0);
    else if (is("signal"))
        me ? shmem_uint64_atomic_set(&sig, 5, 0) : (void)shmem_signal_wait_until(&sig, SHMEM_CMP_EQ, 5);
    else if (is("set_lock"))
        me ? shmem_clear_lock(&lock) : shmem_set_lock(&lock);
    else if (is("get") && me == 0)
        shmem_int_g(heap, 1);
    else if (is("quiet") && me == 0)
        shmem_int_p(heap, 1, 1), shmem_quiet();
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    how = argv[1];
    file = argv[2];
    int stops = is("get") || is("quiet");
    if (stops)
        continue_later();
    shmem_init();
    int me = shmem_my_pe();
    int *heap = shmem_calloc(2, sizeof(int));
    shmem_team_t team, other;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 2, NULL, 0, &team);
    if (is("set_lock") && me == 1)
        shmem_set_lock(&lock);
    if (me == 1)
        shmem_long_p(&pid, getpid(), 0);
    shmem_barrier_all();
    if (me == 0 && stops)
        until_stopped(pid);
    if (me == 1 && stops)
        kill(getpid(), SIGSTOP);
    else if (me == 1)
        until_file_exists();
    if (is("barrier_all") || is("computes"))
        shmem_barrier_all();
    else if (is("team_sync"))
        shmem_team_sync(team);
    else if (is("active_set"))
        shmem_barrier(0, 0, 2, psync);
    else if (is("reduce"))
        shmem_int_sum_reduce(SHMEM_TEAM_WORLD, dest, source, 2);
    else if (is("malloc"))
        shmem_free(shmem_malloc(8));
    else if (is("split"))
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 2, NULL, 0, &other);
    else
        one_sided(me, heap);
    if (is("set_lock") && me == 0)
        shmem_clear_lock(&lock);
    shmem_finalize();
    return 0;
}
