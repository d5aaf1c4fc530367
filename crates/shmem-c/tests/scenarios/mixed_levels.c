/* One PE has threads, the others have none. Its threads split two teams at once; the other PEs
 * split them one after the other.
 *
 *     mixed_levels FILE     the PE that creates FILE has the threads
 */
#include "../programs/check.h"
#include <fcntl.h>
#include <pthread.h>
#include <shmemx.h>
#include <unistd.h>

static void make(shmem_team_t parent) {
    shmem_team_t team;
    shmemx_team_split_strided(parent, 0, 1, check_n, &team);
    CHECK(shmemx_team_my_pe(team) == check_me, 85, "PE %d of the team", shmemx_team_my_pe(team));
    shmem_team_sync(team);
    shmemx_team_destroy(&team);
}

static void *make_second(void *unused) {
    (void)unused;
    make(SHMEM_TEAM_NODE);
    return NULL;
}

int main(int argc, char **argv) {
    int provided, is_one = open(argv[argc - 1], O_CREAT | O_EXCL | O_WRONLY, 0600) >= 0;
    int level = is_one ? SHMEM_THREAD_MULTIPLE : SHMEM_THREAD_SINGLE;
    CHECK(shmem_init_thread(level, &provided) == 0 && provided == level, 76, "level %d became %d", level, provided);
    check_start();
    CHECK(shmem_team_n_pes(SHMEM_TEAM_NODE) == check_n, 85, "all PEs of this test are on one machine");
    pthread_t other;
    if (is_one) {
        CHECK(pthread_create(&other, NULL, make_second, NULL) == 0, 77, "no thread can be had");
        usleep(100000); /* Most likely, the other PEs get messages of the second team first. */
    }
    make(SHMEM_TEAM_WORLD);
    if (is_one)
        pthread_join(other, NULL);
    else
        make(SHMEM_TEAM_NODE);
    return check_end();
}
