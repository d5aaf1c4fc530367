/* Collectives of several threads on several teams and active sets at once, in a different order on
 * each PE.
 *
 *     threads_overlap [SEED [STEPS]]     other programs, longer ones
 */
#include <pthread.h>

#include "splits.h"

enum { THREADS = 5, TEAMS = 6, SETS = 2, GROUPS = TEAMS + SETS, ROUNDS = 24 };

/* A thread's program and its groups. The first group is a team of all PEs; for the first thread it
 * is the world. */
struct program {
    int thread, steps;
    struct buffers buffers;
    struct group groups[GROUPS];
    pthread_t id;
};

static struct program programs[THREADS];
static uint64_t seed = 1;

/* Random numbers of a thread, the same on all PEs. */
static uint64_t random_bits(int thread, int step) {
    return check_mix(seed * 999983 + ((uint64_t)thread << 32) + (uint64_t)step);
}

static void step_of(struct program *p, int id, uint64_t bits) {
    group_step(&p->buffers, &p->groups[id], p->thread * GROUPS + id, bits);
}

/* Splits are collectives, too: each thread splits its own teams while other threads split
 * theirs. */
static void *run(void *argument) {
    struct program *p = argument;
    for (int id = 1; id < TEAMS; id++)
        group_split(p->groups, id, TEAMS, random_bits(p->thread, -1 - id) | 1);
    for (int step = 0; step < p->steps; step++) {
        uint64_t bits = random_bits(p->thread, step);
        int id = (int)((bits >> 8) % GROUPS);
        pause_randomly(&p->buffers);
        if (bits % 16 == 0 && id > 0 && id < TEAMS)
            group_split(p->groups, id, TEAMS, check_mix(bits));
        else if (group_has_me(&p->groups[id]))
            step_of(p, id, check_mix(bits));
    }
    return NULL;
}

/* One step of the thread on the team of all PEs. */
static void *run_once(void *argument) {
    struct program *p = argument;
    step_of(p, 0, random_bits(-1, p->steps));
    return NULL;
}

/* Starts a thread for each program, in a different order on each PE. */
static void all_at_once(void *(*body)(void *)) {
    for (int i = 0; i < THREADS; i++) {
        struct program *p = &programs[(i + check_me) % THREADS];
        CHECK(pthread_create(&p->id, NULL, body, p) == 0, 77, "no thread can be had");
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(programs[i].id, NULL);
}

/* The same collective on all of the threads' teams: by threads at once on some PEs, one team after the other on the rest,
 * which begin with the team that is likely to be last there. */
static void crossed(int round) {
    for (int i = 0; i < THREADS; i++)
        programs[i].steps = round;
    if ((check_me + round) % 2) {
        all_at_once(run_once);
        return;
    }
    usleep(round % 4 ? 0 : 1000);
    for (int i = THREADS; i-- > 0;)
        run_once(&programs[i]);
}

int main(int argc, char **argv) {
    int provided, steps = 80;
    if (argc > 1)
        seed = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        steps = atoi(argv[2]);
    CHECK(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) == 0 && provided == SHMEM_THREAD_MULTIPLE, 76, "%d", provided);
    check_start();
    struct members world = members_world();
    for (int thread = 0; thread < THREADS; thread++) {
        struct program *p = &programs[thread];
        p->thread = thread, p->steps = steps, p->buffers = buffers_new(check_mix(seed + (uint64_t)(check_me * THREADS + thread)));
        for (int i = 0; i < TEAMS; i++)
            p->groups[i] = group_new();
        for (int i = TEAMS; i < GROUPS; i++)
            p->groups[i] = group_set(i % 2 ? check_n / 3 : 0, 0, check_n - check_n / 3);
        members_free(p->groups[0].m);
        p->groups[0].m = thread == 0  ? members_world()
                         : thread % 2 ? members_split(world, check_n - 1, -1, check_n)
                                      : members_split(world, 0, 1, check_n);
    }
    shmem_barrier_all();
    all_at_once(run);
    for (int round = 0; round < ROUNDS; round++)
        crossed(round);
    shmem_barrier_all();
    programs[0].groups[0].m.team = SHMEM_TEAM_INVALID; /* The world must not be destroyed. */
    for (int thread = 0; thread < THREADS; thread++) {
        for (int i = 0; i < GROUPS; i++)
            group_free(programs[thread].groups[i]);
        buffers_free(programs[thread].buffers);
    }
    members_free(world);
    return check_end();
}
