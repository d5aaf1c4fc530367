/* Non-blocking collectives: in each round, 20 are outstanding on teams that overlap. Each PE starts
 * them in its own order, except for the order within a team, and completes them in another order.
 * The results are compared with a model.
 *
 *     nonblocking [SEED [ROUNDS [multiple]]]     another program, a longer one, at SHMEM_THREAD_MULTIPLE
 */
#include <shmemx.h>
#include <unistd.h>

#include "members.h"

enum { TEAMS = 8, REQUESTS = 20, FEW = 60, MANY = 6000, ROOM = 48000 };
enum kind { SYNC, BROADCAST, COLLECT, FCOLLECT, ALLTOALL, GATHER, SCATTER, SUM_BLOCKS, SUM_TO, SUM, MAX, MAX_INSCAN, INSCAN, EXSCAN, KINDS };

struct started {
    struct members m;
    enum kind kind;
    size_t nelems;
    int root, id;
    long *dest, *source; /* symmetric */
    shmemx_req_t req;
};

static struct members teams[TEAMS];
static struct started started[REQUESTS];
static uint64_t seed = 1;

static uint64_t of_all(int round, int i) { return check_mix(seed * 1000003 + (uint64_t)round * REQUESTS + (uint64_t)i); }

static uint64_t of_pe(int pe, int round, int i) { return check_mix(of_all(round, i) * 31 + (uint64_t)pe + 1); }

static long given(const struct started *s, int member, size_t i) {
    return (long)(of_pe(s->m.world[member], s->id, (int)i) >> 40);
}

static size_t collected(const struct started *s, int member) { return s->nelems + (size_t)member % 3; }

static void start(struct started *s) {
    shmem_team_t team = s->m.team;
    size_t n = s->nelems;
    int me = members_me(s->m), status = 0;
    for (size_t i = 0; i < ROOM; i++)
        s->source[i] = given(s, me, i);
    switch (s->kind) {
    case SYNC: status = shmemx_team_sync_nb(team, &s->req); break;
    case BROADCAST: status = shmemx_broadcast_nb(team, s->dest, s->source, n, s->root, &s->req); break;
    case COLLECT: status = shmemx_long_collect_nb(team, s->dest, s->source, collected(s, me), &s->req); break;
    case FCOLLECT: status = shmemx_fcollectmem_nb(team, s->dest, s->source, n * sizeof(long), &s->req); break;
    case ALLTOALL: status = shmemx_long_alltoall_nb(team, s->dest, s->source, n, &s->req); break;
    case GATHER: status = shmemx_long_gather_nb(team, s->dest, s->source, n, s->root, &s->req); break;
    case SCATTER: status = shmemx_scattermem_nb(team, s->dest, s->source, n * sizeof(long), s->root, &s->req); break;
    case SUM_BLOCKS: status = shmemx_sum_reduce_scatter_nb(team, s->dest, s->source, n, &s->req); break;
    case SUM_TO: status = shmemx_long_sum_reduce_to_nb(team, s->dest, s->source, n, s->root, &s->req); break;
    case MAX_INSCAN: status = shmemx_max_inscan_nb(team, s->dest, s->source, n, &s->req); break;
    case SUM: status = shmemx_sum_reduce_nb(team, s->dest, s->source, n, &s->req); break;
    case MAX: status = shmemx_long_max_reduce_nb(team, s->dest, s->source, n, &s->req); break;
    case INSCAN: status = shmemx_long_sum_inscan_nb(team, s->dest, s->source, n, &s->req); break;
    default: status = shmemx_long_sum_exscan_nb(team, s->dest, s->source, n, &s->req);
    }
    CHECK(status == 0 && s->req != SHMEMX_REQ_NULL, 0, "kind %d was not started", s->kind);
}

/* Element i of the result at member `me`. */
static long due(const struct started *s, int me, size_t i) {
    long sum = 0, most = 0;
    size_t first = 0;
    switch (s->kind) {
    case BROADCAST: return given(s, s->root, i);
    case SCATTER: return given(s, s->root, (size_t)me * s->nelems + i);
    case GATHER:
    case FCOLLECT: return given(s, (int)(i / s->nelems), i % s->nelems);
    case ALLTOALL: return given(s, (int)(i / s->nelems), (size_t)me * s->nelems + i % s->nelems);
    case COLLECT:
        for (int k = 0;; first += collected(s, k++))
            if (i < first + collected(s, k))
                return given(s, k, i - first);
    default: break;
    }
    if (s->kind == SUM_BLOCKS)
        i += (size_t)me * s->nelems;
    int end = s->kind == INSCAN || s->kind == MAX_INSCAN ? me + 1 : s->kind == EXSCAN ? me : s->m.size;
    for (int k = 0; k < end; k++) {
        long value = given(s, k, i);
        sum += value;
        most = value > most ? value : most;
    }
    return s->kind == MAX || s->kind == MAX_INSCAN ? most : sum;
}

static void judge(struct started *s) {
    int me = members_me(s->m);
    size_t n = s->nelems;
    CHECK(s->req == SHMEMX_REQ_NULL, 0, "the request of kind %d is still set", s->kind);
    if ((s->kind == GATHER || s->kind == SUM_TO) && me != s->root)
        return;
    if (s->kind == FCOLLECT || s->kind == ALLTOALL || s->kind == GATHER)
        n *= (size_t)s->m.size;
    if (s->kind == COLLECT) {
        n = 0;
        for (int k = 0; k < s->m.size; k++)
            n += collected(s, k);
    }
    for (size_t i = 0; i < n && s->kind != SYNC; i += n > FEW * 8 ? 97 : 1)
        if (s->dest[i] != due(s, me, i)) {
            CHECK(0, 0, "collective %d of kind %d over %d PEs: element %zu of %zu is %ld, not %ld", s->id, s->kind,
                  s->m.size, i, n, s->dest[i], due(s, me, i));
            return;
        }
}

/* Starts the collectives of a round, those of each team in order. */
static int start_all(int round) {
    int next[TEAMS] = {0}, count = 0, team_of[REQUESTS], left = 0;
    for (int i = 0; i < REQUESTS; i++) {
        uint64_t bits = of_all(round, i);
        int t = team_of[i] = (int)(bits % TEAMS);
        struct started *s = &started[i];
        s->m = teams[t];
        s->kind = (enum kind)((bits >> 8) % KINDS);
        s->id = round * REQUESTS + i;
        s->root = (int)((bits >> 16) % (uint64_t)s->m.size);
        s->nelems = 1 + (bits >> 24) % ((bits >> 56) % 4 ? FEW : MANY / (s->kind <= SUM_BLOCKS ? (unsigned)check_n : 1));
        s->req = SHMEMX_REQ_NULL;
        left += members_me(s->m) >= 0;
    }
    for (uint64_t turn = 0; count < left; turn++) {
        int t = (int)(of_pe(check_me, round, 1000 + (int)turn) % TEAMS);
        while (next[t] < REQUESTS && team_of[next[t]] != t)
            next[t]++;
        if (next[t] == REQUESTS || members_me(teams[t]) < 0)
            continue;
        start(&started[next[t]++]);
        count++;
    }
    return left;
}

/* Waits for all collectives, one after the other in an order of this PE. */
static void end_all(int round, int left) {
    for (uint64_t turn = 0; left > 0; turn++) {
        uint64_t bits = of_pe(check_me, round, 100000 + (int)turn);
        struct started *s = &started[bits % REQUESTS];
        int is_done = 0;
        if (s->req == SHMEMX_REQ_NULL)
            continue;
        if (bits >> 32 & 1)
            shmemx_req_test(&s->req, &is_done);
        else
            is_done = shmemx_req_wait(&s->req) == 0;
        if (is_done) {
            judge(s);
            left--;
        }
    }
}

/* The program uses its default context while a thread of the library waits for a member that is late. */
static void transfer_meanwhile(void) {
    long *words = check_malloc((size_t)check_n * sizeof(long)), *sum = check_malloc(2 * sizeof(long));
    int next = (check_me + 1) % check_n, is_done = 0;
    shmemx_req_t req = SHMEMX_REQ_NULL;
    sum[0] = 1;
    shmem_barrier_all();
    if (check_me == 0)
        usleep(50000);
    shmemx_long_sum_reduce_nb(SHMEM_TEAM_WORLD, &sum[1], &sum[0], 1, &req);
    for (long turn = 1; !is_done; turn++) {
        long back = 0;
        shmem_long_put_nbi(&words[check_me], &turn, 1, next);
        shmem_quiet();
        shmem_long_get(&back, &words[check_me], 1, next);
        CHECK(back == turn, 0, "a get after a quiet found %ld, not %ld", back, turn);
        shmemx_req_test(&req, &is_done);
    }
    CHECK(sum[1] == check_n, 0, "a reduction with a late member gave %ld, not %d", sum[1], check_n);
    shmem_barrier_all();
    shmem_free(words);
    shmem_free(sum);
}

int main(int argc, char **argv) {
    int provided, rounds = 12, flag = 0;
    if (argc > 1)
        seed = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        rounds = atoi(argv[2]);
    shmem_init_thread(argc > 3 ? SHMEM_THREAD_MULTIPLE : SHMEM_THREAD_SINGLE, &provided);
    check_start();
    members_begin();
    for (int i = 0; i < REQUESTS; i++) {
        started[i].dest = check_malloc(ROOM * sizeof(long));
        started[i].source = check_malloc(ROOM * sizeof(long));
    }
    teams[0] = members_world();
    for (int t = 1; t < TEAMS; t++) {
        uint64_t bits = of_all(-1, t);
        int start = (int)(bits % (uint64_t)check_n), stride = 1 + (int)(bits >> 16 & 1);
        int most = (check_n - 1 - start) / stride + 1, size = 1 + (int)((bits >> 32) % (uint64_t)most);
        teams[t] = members_strided(teams[0], start, stride, size);
        shmem_team_split_strided(SHMEM_TEAM_WORLD, start, stride, size, NULL, 0, &teams[t].team);
    }
    long *sum = check_malloc(2 * sizeof(long));
    for (int round = 0; round < rounds; round++) {
        shmem_barrier_all();
        int left = start_all(round);
        /* A blocking collective behind unfinished ones on the same team. */
        sum[0] = check_me + round;
        shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sum[1], &sum[0], 1);
        long expected = (long)check_n * (check_n - 1) / 2 + (long)round * check_n;
        CHECK(sum[1] == expected, 0, "a blocking reduction gave %ld, not %ld", sum[1], expected);
        for (int i = 0; i < REQUESTS; i++)
            if (started[i].m.team == SHMEM_TEAM_WORLD) {
                shmemx_req_test(&started[i].req, &flag);
                CHECK(flag, 0, "a blocking collective overtook a non-blocking one of its team");
                judge(&started[i]);
                left--;
            }
        end_all(round, left);
    }
    CHECK(shmemx_req_wait(&started[0].req) == 0 && shmemx_req_test(&started[0].req, &flag) == 0 && flag, 0,
          "no request is done");
    /* A team is destroyed, and the library finalized, while collectives are unfinished. */
    shmem_barrier_all();
    int left = start_all(rounds);
    for (int t = 1; t < TEAMS; t++)
        shmem_team_destroy(teams[t].team);
    end_all(rounds, left);
    shmem_free(sum);
    transfer_meanwhile();
    shmemx_req_t forgotten;
    shmemx_team_sync_nb(SHMEM_TEAM_WORLD, &forgotten);
    int total = check_agree();
    shmemx_team_sync_nb(SHMEM_TEAM_WORLD, &forgotten);
    shmem_finalize();
    return check_verdict(total);
}
