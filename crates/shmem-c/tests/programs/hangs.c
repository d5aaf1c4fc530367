/* Jobs that hang, each in its way: oshrun must explain why. The argument chooses the way. */
#include <shmem.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static long flag[4] = {0, 0, 7, 0};
static long locks[2];
static long token;
static volatile long sum;

/* PE 1 computes in here for ever. */
static void compute_row(void) {
    for (;;)
        sum++;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    shmem_team_t pair[2];
    for (int team = 0; team < 2; team++)
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n, NULL, 0, &pair[team]);
    shmem_barrier_all();

    if (strcmp(how, "mismatch") == 0 && me == 1) {
        shmem_long_broadcast(SHMEM_TEAM_WORLD, &flag[1], &flag[0], 1, 0);
    } else if (strcmp(how, "word") == 0 && me == 1) {
        shmem_long_wait_until(&flag[2], SHMEM_CMP_GE, 8);
    } else if (strcmp(how, "locks") == 0 && me < 2) {
        shmem_set_lock(&locks[me]);
        shmem_long_p(&flag[3], 1, 1 - me);
        shmem_long_wait_until(&flag[3], SHMEM_CMP_EQ, 1);
        shmem_set_lock(&locks[1 - me]);
    } else if (strcmp(how, "computes") == 0 && me == 1) {
        compute_row();
    } else if (strcmp(how, "sleeps") == 0 && me == 1) {
        sleep(1000);
    } else if (strcmp(how, "stopped") == 0 && me == 1) {
        raise(SIGSTOP);
    } else if (strcmp(how, "tokens") == 0) {
        /* Each waits for the one before it, and none begins. */
        shmem_long_wait_until(&token, SHMEM_CMP_EQ, 1);
        shmem_long_p(&token, 1, (me + 1) % n);
    } else if (strcmp(how, "teams") == 0) {
        shmem_team_sync(pair[me % 2]);
        shmem_team_sync(pair[1 - me % 2]);
    }
    shmem_barrier_all();
    printf("did not hang\n");
    shmem_finalize();
    return 0;
}
