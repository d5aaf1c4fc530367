/* PE 1 enters finalize while PE 0 waits for it, or only seems to, in the call that argv[1] names.
 * The other PEs are in finalize, too. */
#include <shmem.h>
#include <shmemx.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long source[64], dest[64], token, pids[64];
static long lock, psync[SHMEM_BARRIER_SYNC_SIZE];
static int me, n;

/* Continues a stopped process, after more time than a hopeless wait lasts. */
static void continue_later(long pid) {
    if (fork() == 0) {
        sleep(3);
        kill((pid_t)pid, SIGCONT);
        _exit(0);
    }
}

/* PE 0 waits for another one; `team` has PEs 0 and 1. */
static void wait_for_another(const char *how, shmem_team_t team) {
    shmemx_req_t req = SHMEMX_REQ_NULL;
    if (!strcmp(how, "barrier") || !strcmp(how, "nested") || !strcmp(how, "again"))
        shmem_barrier_all();
    else if (!strcmp(how, "team"))
        shmem_team_sync(team);
    else if (!strcmp(how, "broadcast"))
        shmem_long_broadcast(SHMEM_TEAM_WORLD, dest, source, 1, 1);
    else if (!strcmp(how, "alltoall"))
        shmem_long_alltoall(SHMEM_TEAM_WORLD, dest, source, 1);
    else if (!strcmp(how, "malloc"))
        shmem_malloc(64);
    else if (!strcmp(how, "set"))
        shmem_barrier(0, 0, n, psync);
    else if (!strcmp(how, "split"))
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 2, NULL, 0, &team);
    else if (!strcmp(how, "request")) {
        shmemx_long_sum_reduce_nb(SHMEM_TEAM_WORLD, dest, source, 1, &req);
        shmemx_req_wait(&req);
    } else if (!strcmp(how, "word"))
        shmem_long_wait_until(&token, SHMEM_CMP_EQ, 1);
    else if (!strcmp(how, "lock"))
        shmem_long_wait_until(&token, SHMEM_CMP_EQ, 1), shmem_set_lock(&lock);
    else
        fprintf(stderr, "unknown way %s\n", how), exit(99);
}

/* Cases in which no PE waits in vain. Returns whether argv[1] names one of them. */
static int is_patient(const char *how) {
    if (!strcmp(how, "computes")) {
        /* The other PEs serve its operations while they are in finalize. */
        if (me == 0) {
            sleep(2);
            for (int pe = 0; pe < n; pe++)
                shmem_long_p(&token, 1, pe), shmem_long_atomic_add(&token, 1, pe), shmem_long_g(&token, pe);
            sleep(1);
        }
    } else if (!strcmp(how, "left")) {
        /* The root and PE 1 return from the broadcast before the others enter it. */
        if (me == 2)
            sleep(2);
        source[0] = 7;
        shmem_long_broadcast(SHMEM_TEAM_WORLD, dest, source, 1, 0);
        if (dest[0] != 7)
            printf("PE %d: dest is %ld\n", me, dest[0]);
    } else if (!strcmp(how, "signaled")) {
        /* The other PEs wait for words that PEs in finalize have written. */
        if (me == 0)
            sleep(2), shmem_long_p(&token, 1, 1);
        if (me == 1)
            shmem_long_wait_until(&token, SHMEM_CMP_EQ, 1);
    } else if (!strcmp(how, "stopped")) {
        /* PE 1 is stopped in a finalize from which PE 0 has returned. */
        shmem_init();
        if (me == 0) {
            sleep(1);
            kill((pid_t)pids[1], SIGSTOP);
            continue_later(pids[1]);
        }
        shmem_finalize();
        shmem_barrier_all();
    } else
        return 0;
    return 1;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    if (!strcmp(how, "start_pes")) {
        start_pes(0);
        if (shmem_my_pe() == 0)
            printf("n_pes %d\n", shmem_n_pes()), fflush(stdout), shmem_barrier_all();
        return 0;
    }
    shmem_init();
    if (!strcmp(how, "again"))
        shmem_finalize(), shmem_init();
    if (!strcmp(how, "nested"))
        shmem_init();
    me = shmem_my_pe(), n = shmem_n_pes();
    for (int pe = 0; pe < n; pe++)
        shmem_long_p(&pids[me], getpid(), pe);
    shmem_team_t team = SHMEM_TEAM_INVALID;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 2, NULL, 0, &team);
    shmem_barrier_all();
    if (me == 0)
        printf("n_pes %d\n", n), fflush(stdout);
    if (!strcmp(how, "lock") && me == 1)
        shmem_set_lock(&lock), shmem_long_p(&token, 1, 0);
    if (is_patient(how)) {
        shmem_finalize();
        if (me == 0)
            puts("PASS");
        return 0;
    }
    if (me == 0) {
        wait_for_another(how, team);
        puts("the wait ended");
    }
    shmem_finalize();
    if (!strcmp(how, "nested"))
        shmem_finalize();
    return 0;
}
