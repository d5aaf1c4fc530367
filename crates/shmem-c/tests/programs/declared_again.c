/* A program that repeats declarations of the headers, as programs do that follow a manual page.
 * They must agree, also with other names of the parameters. */
#include "check.h"
#include <mpp/shmem.h>
#include <shmemx.h>

#define MAX_OF(N, T)                                                                                                   \
    void shmem_##N##_max_to_all(T *into, const T *of, int count, int first, int log_step, int members, T *work,        \
                                long *sync);
MAX_OF(short, short)
MAX_OF(int, int)
MAX_OF(long, long)
MAX_OF(longlong, long long)
MAX_OF(float, float)
MAX_OF(double, double)
MAX_OF(longdouble, long double)

void shmemx_team_split_strided(shmem_team_t of, int first, int step, int members, shmem_team_t *made);

static long sync_words[_SHMEM_REDUCE_SYNC_SIZE];
static short work[_SHMEM_REDUCE_MIN_WRKDATA_SIZE], mine, most;

int main(void) {
    start_pes(0);
    check_start();
    for (int i = 0; i < _SHMEM_REDUCE_SYNC_SIZE; i++)
        sync_words[i] = _SHMEM_SYNC_VALUE;
    mine = (short)(7 * check_me);
    shmem_barrier_all();
    shmem_short_max_to_all(&most, &mine, 1, 0, 0, check_n, work, sync_words);
    CHECK(most == 7 * (check_n - 1), 86, "the largest is %d", most);

    /* A team of one, made by all PEs. */
    shmem_team_t alone = SHMEM_TEAM_INVALID;
    shmemx_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, &alone);
    CHECK((alone == SHMEM_TEAM_NULL) == (check_me > 0), 85, "who is in the team");
    return check_verdict(check_agree());
}
