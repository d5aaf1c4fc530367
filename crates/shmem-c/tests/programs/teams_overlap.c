/* Many teams and active sets that share PEs: a random program of collectives, splits and puts.
 *
 *     teams_overlap [SEED [STEPS [multiple]]]     another program, a longer one, at SHMEM_THREAD_MULTIPLE
 */
#include "splits.h"

enum { TEAMS = 48, SETS = 12, GROUPS = TEAMS + SETS };

static struct group groups[GROUPS]; /* the first is the world */
static uint64_t seed = 1;
static long *tally, *mail;

/* Random numbers of this PE, which all PEs can compute. */
static uint64_t of_pe(int pe, int step) { return check_mix(seed * 77 + ((uint64_t)pe << 32) + (uint64_t)step); }

/* Random numbers of the program, the same on every PE. */
static uint64_t of_all(int step) { return check_mix(seed * 1000003 + (uint64_t)step); }

/* This PE's own puts and increments, whichever group executes the step. */
static void traffic(int step) {
    uint64_t bits = of_pe(check_me, step);
    int pe = (int)(bits % (uint64_t)check_n);
    long value = step + 1;
    if (bits >> 32 & 1)
        return;
    shmem_long_atomic_inc(tally, pe);
    shmem_fence(); /* An earlier put to the same word must not come later. */
    shmem_long_p(&mail[check_me], value, pe);
    if (bits >> 33 & 1) {
        shmem_quiet();
        long back = shmem_long_g(&mail[check_me], pe);
        CHECK(back == value, 40, "step %d: %ld came back from PE %d", step, back, pe);
    }
}

static void judge_traffic(int steps) {
    shmem_barrier_all();
    long increments = 0;
    for (int pe = 0; pe < check_n; pe++) {
        long last = 0;
        for (int step = 0; step < steps; step++) {
            uint64_t bits = of_pe(pe, step);
            if ((int)(bits % (uint64_t)check_n) == check_me && !(bits >> 32 & 1)) {
                last = step + 1;
                increments++;
            }
        }
        CHECK(mail[pe] == last, 40, "the last word of PE %d is %ld, not %ld", pe, mail[pe], last);
    }
    CHECK(*tally == increments, 35, "%ld of %ld increments came", *tally, increments);
}

int main(int argc, char **argv) {
    int provided, steps = 300;
    if (argc > 1)
        seed = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        steps = atoi(argv[2]);
    shmem_init_thread(argc > 3 ? SHMEM_THREAD_MULTIPLE : SHMEM_THREAD_SINGLE, &provided);
    check_start();
    members_begin();
    tally = shmem_calloc(1, sizeof *tally);
    mail = shmem_calloc((size_t)check_n, sizeof *mail);
    struct buffers buffers = buffers_new(of_pe(check_me, -1));
    for (int i = 0; i < GROUPS; i++) {
        uint64_t bits = of_all(-1 - i);
        int start = (int)(bits % (uint64_t)check_n), log_stride = (int)(bits >> 16) & 1;
        int most = (check_n - 1 - start) / (1 << log_stride) + 1;
        groups[i] = i < TEAMS ? group_new() : group_set(start, log_stride, 1 + (int)((bits >> 32) % (uint64_t)most));
    }
    members_free(groups[0].m);
    groups[0].m = members_world();
    shmem_barrier_all();
    for (int id = 1; id < TEAMS; id++)
        group_split(groups, id, TEAMS, of_all(-1000 - id) | 1);
    for (int id = 1; id < TEAMS; id += 7)
        members_check(groups[id].m, 9, "a team among many");
    for (int step = 0; step < steps; step++) {
        uint64_t bits = of_all(step);
        int id = (int)((bits >> 8) % GROUPS);
        traffic(step);
        if (bits % 16 == 0 && id > 0 && id < TEAMS)
            group_split(groups, id, TEAMS, check_mix(bits));
        else if (group_has_me(&groups[id]))
            group_step(&buffers, &groups[id], id, check_mix(bits));
    }
    judge_traffic(steps);
    groups[0].m.team = SHMEM_TEAM_INVALID; /* The world must not be destroyed. */
    for (int i = 0; i < GROUPS; i++)
        group_free(groups[i]);
    buffers_free(buffers);
    shmem_free(mail);
    shmem_free(tally);
    members_end();
    return check_end();
}
