/* The memory model as litmus tests, which are the table of docs/c.md ("The memory model"). Each shape
 * is a few operations of two to four PEs, and an outcome that may be forbidden. It is run many times
 * by PEs of one node and of several, on each kind of symmetric memory.
 *
 * The outcomes that the standard forbids are those of fence (point 39), quiet (point 40), signals
 * (point 44) and waits (point 50). `shmem-verify --litmus` prints how often each outcome was seen.
 */
#include "check.h"
#include <shmemx.h>

/* A batch is the rounds between two barriers. */
enum { BATCH = 256, USUAL_ROUNDS = 250, MOST_ROLES = 4 };
/* Each round has words of its own, in cache lines of their own. */
enum { LINE = 64 / sizeof(long), WORDS = 2 * BATCH * LINE };

/* The words of the rounds of a batch: 0 at its start on each PE. */
static long *x, *y;
/* What this PE has seen in each round of the batch. */
static unsigned char seen[BATCH];
/* The round to which the PE with each role has come. */
static long turn[MOST_ROLES];
/* The PEs of this group by their roles, and the role of this PE. */
static int pes[MOST_ROLES], role;

/* ---- Kinds of symmetric memory. Another kind is a row here. ---- */

static long *heap_words(void) { return check_malloc(WORDS * sizeof(long)); }

static long *static_words(void) {
    static long words[WORDS];
    return words;
}

static void free_nothing(void *words) { (void)words; }

static char *allocated;

/* Memory that the program has already, at another place on each PE. */
static long *buffer_words(void) {
    const size_t nbytes = WORDS * sizeof(long), before = 16 * (size_t)(check_me % 200);
    allocated = malloc(before + nbytes);
    long *words = shmemx_buffer_register(allocated + before, nbytes, 0);
    CHECK(words != NULL, 0, "a buffer is refused");
    return words;
}

static void end_buffer(void *words) {
    shmemx_buffer_unregister(words);
    free(allocated);
}

static const struct memory {
    const char *name;
    long *(*words)(void);
    void (*end)(void *words);
} memories[] = {
    {"heap", heap_words, shmem_free},
    {"static", static_words, free_nothing},
    {"buffer", buffer_words, end_buffer},
};
enum { MEMORIES = sizeof memories / sizeof *memories };

/* ---- What the shapes consist of ---- */

static const long one = 1;

static long load(const long *word) { return *(const volatile long *)word; }

static long load_until_new(const long *word) {
    long value;
    while ((value = load(word)) == 0)
        sched_yield();
    return value;
}

static void store(long *word, long value) { *(volatile long *)word = value; }

static void await(long *word) { shmem_long_wait_until(word, SHMEM_CMP_NE, 0); }

static void await_by_test(long *word) {
    while (!shmem_long_test(word, SHMEM_CMP_NE, 0))
        sched_yield();
}

static uint64_t *signal_of(long *word) { return (uint64_t *)word; }

static void await_signal(long *word) { shmem_signal_wait_until(signal_of(word), SHMEM_CMP_EQ, 1); }

/* Passes no time or a short one, each time another one, so that PEs meet at all points of a shape. */
static void delay(void) {
    static unsigned state;
    state = state * 1103515245u + 12345u + (unsigned)check_me;
    const unsigned turns = state >> 30 ? (state >> 16) % 128 : 0;
    for (volatile unsigned i = turns; i > 0; i--)
        ;
}

/* ---- The shapes. Each PE of a group calls the function with the place of the round's words, and
 * returns whether it has seen its part of the outcome; a PE that sees nothing returns true. A PE
 * waits only for PEs with smaller roles, so PEs may be in different rounds. ---- */

static int mp_fence(int i) {
    if (role == 0) {
        shmem_long_p(&x[i], 1, pes[1]);
        shmem_fence();
        shmem_long_p(&y[i], 1, pes[1]);
        return 1;
    }
    await(&y[i]);
    return load(&x[i]) == 0;
}

static int mp_quiet(int i) {
    if (role == 0) {
        shmem_long_p(&x[i], 1, pes[1]);
        shmem_quiet();
        shmem_long_p(&y[i], 1, pes[1]);
        return 1;
    }
    await(&y[i]);
    return load(&x[i]) == 0;
}

static int mp_signal(int i) {
    if (role == 0) {
        shmem_long_put_signal(&x[i], &one, 1, signal_of(&y[i]), 1, SHMEM_SIGNAL_SET, pes[1]);
        return 1;
    }
    await_signal(&y[i]);
    return load(&x[i]) == 0;
}

static int mp_nbi_amo(int i) {
    if (role == 0) {
        shmem_long_put_nbi(&x[i], &one, 1, pes[1]);
        shmem_fence();
        shmem_long_atomic_add(&y[i], 1, pes[1]);
        return 1;
    }
    await(&y[i]);
    return load(&x[i]) == 0;
}

static int mp_amo_nbi(int i) {
    if (role == 0) {
        shmem_long_atomic_set(&x[i], 1, pes[1]);
        shmem_fence();
        shmem_long_put_nbi(&y[i], &one, 1, pes[1]);
        return 1;
    }
    await_by_test(&y[i]);
    return load(&x[i]) == 0;
}

static int mp_amo_signal(int i) {
    if (role == 0) {
        shmem_long_atomic_set(&x[i], 1, pes[1]);
        shmem_fence();
        shmem_signal_set(signal_of(&y[i]), 1, pes[1]);
        return 1;
    }
    await_signal(&y[i]);
    return load(&x[i]) == 0;
}

static int mp_pointer(int i) {
    if (role == 0) {
        long *there = shmem_ptr(&x[i], pes[1]);
        if (there != NULL)
            store(there, 1);
        else
            shmem_long_p(&x[i], 1, pes[1]);
        shmem_fence();
        shmem_long_p(&y[i], 1, pes[1]);
        return 1;
    }
    await(&y[i]);
    return load(&x[i]) == 0;
}

static int mp_own_store(int i) {
    if (role == 0) {
        store(&x[i], 1);
        shmem_quiet();
        shmem_long_p(&y[i], 1, pes[1]);
        return 1;
    }
    await(&y[i]);
    return shmem_long_g(&x[i], pes[0]) == 0;
}

static int mp_of_two_pes_quiet(int i) {
    if (role == 0) {
        shmem_long_p(&x[i], 1, pes[2]);
        shmem_quiet();
        shmem_long_p(&y[i], 1, pes[1]);
    }
    if (role != 1)
        return 1;
    await(&y[i]);
    return shmem_long_g(&x[i], pes[2]) == 0;
}

static int mp_relayed(int i) {
    if (role == 0) {
        shmem_long_p(&x[i], 1, pes[2]);
        shmem_quiet();
        shmem_signal_set(signal_of(&y[i]), 1, pes[1]);
        return 1;
    }
    await_signal(&y[i]);
    if (role == 2)
        return load(&x[i]) == 0;
    shmem_signal_set(signal_of(&y[i]), 1, pes[2]);
    return 1;
}

static int sb_put(int i) {
    long *const written = role == 0 ? &x[i] : &y[i], *const read = role == 0 ? &y[i] : &x[i];
    shmem_long_p(written, 1, pes[1 - role]);
    shmem_quiet();
    return shmem_long_g(read, check_me) == 0;
}

static int sb_amo(int i) {
    long *const written = role == 0 ? &x[i] : &y[i], *const read = role == 0 ? &y[i] : &x[i];
    shmem_long_atomic_set(written, 1, pes[1 - role]);
    shmem_quiet();
    return shmem_long_atomic_fetch(read, check_me) == 0;
}

static int sb_of_a_third_pe(int i) {
    if (role == 2)
        return 1;
    long *const written = role == 0 ? &x[i] : &y[i], *const read = role == 0 ? &y[i] : &x[i];
    shmem_long_p(written, 1, pes[2]);
    shmem_quiet();
    return shmem_long_g(read, pes[2]) == 0;
}

static int wrc(int i) {
    switch (role) {
    case 0:
        shmem_long_p(&x[i], 1, pes[2]);
        return 1;
    case 1:
        while (shmem_long_g(&x[i], pes[2]) == 0)
            sched_yield();
        shmem_long_p(&y[i], 1, pes[2]);
        return 1;
    default:
        await(&y[i]);
        return load(&x[i]) == 0;
    }
}

static int isa2(int i) {
    switch (role) {
    case 0:
        shmem_long_put_signal(&x[i], &one, 1, signal_of(&y[i]), 1, SHMEM_SIGNAL_SET, pes[1]);
        return 1;
    case 1:
        await_signal(&y[i]);
        shmem_long_p(&y[i], 1, pes[2]);
        return 1;
    default:
        await(&y[i]);
        return shmem_long_g(&x[i], pes[1]) == 0;
    }
}

static int corr_gets(int i) {
    if (role == 0)
        shmem_long_p(&x[i], 1, pes[2]);
    if (role != 1)
        return 1;
    while (shmem_long_g(&x[i], pes[2]) == 0)
        sched_yield();
    return shmem_long_g(&x[i], pes[2]) == 0;
}

static int corr_loads(int i) {
    if (role == 0) {
        shmem_long_p(&x[i], 1, pes[1]);
        return 1;
    }
    load_until_new(&x[i]);
    return load(&x[i]) == 0;
}

/* A word of 8, 4 or 2 bytes, by its place, changes from all zeros to all ones. */
static int torn_put(int i) {
    const size_t nbytes = 8 >> i % 3;
    if (role == 0) {
        switch (nbytes) {
        case 8: shmem_int64_p((int64_t *)&x[i], -1, pes[1]); break;
        case 4: shmem_int32_p((int32_t *)&x[i], -1, pes[1]); break;
        default: shmem_int16_p((int16_t *)&x[i], -1, pes[1]); break;
        }
        return 1;
    }
    const unsigned long all = ~0ul >> (64 - 8 * nbytes);
    return (unsigned long)load_until_new(&x[i]) != all;
}

static int torn_amo(int i) {
    if (role == 0) {
        shmem_long_atomic_set(&x[i], -1, pes[1]);
        return 1;
    }
    return load_until_new(&x[i]) != -1;
}

static int mp_unordered(int i) {
    if (role == 0) {
        shmem_long_p(&x[i], 1, pes[1]);
        shmem_long_p(&y[i], 1, pes[1]);
        return 1;
    }
    await(&y[i]);
    return load(&x[i]) == 0;
}

static int mp_put_before_signal(int i) {
    if (role == 0) {
        shmem_long_p(&x[i], 1, pes[1]);
        shmem_signal_set(signal_of(&y[i]), 1, pes[1]);
        return 1;
    }
    await_signal(&y[i]);
    return load(&x[i]) == 0;
}

static int mp_of_two_pes_fence(int i) {
    if (role == 0) {
        shmem_long_p(&x[i], 1, pes[2]);
        shmem_fence();
        shmem_long_p(&y[i], 1, pes[1]);
    }
    if (role != 1)
        return 1;
    await(&y[i]);
    return shmem_long_g(&x[i], pes[2]) == 0;
}

static int sb_fence(int i) {
    long *const written = role == 0 ? &x[i] : &y[i], *const read = role == 0 ? &y[i] : &x[i];
    shmem_long_p(written, 1, pes[1 - role]);
    shmem_fence();
    return shmem_long_g(read, check_me) == 0;
}

static int iriw(int i) {
    long *const word = role % 2 == 0 ? &x[i] : &y[i], *const other = role % 2 == 0 ? &y[i] : &x[i];
    if (role < 2) {
        shmem_long_p(word, 1, pes[2 + role]);
        return 1;
    }
    await(word);
    return shmem_long_g(other, pes[5 - role]) == 0;
}

/* Who forbids an outcome. WHOLE_WORDS: Rushmem, where it stores words itself: not over UCX and
 * libfabric, which may store a word in parts. */
enum rule { STANDARD, RUSHMEM, WHOLE_WORDS, ALLOWED };

/* Whether the group meets before each round. Where it does not, a PE that waits for gets falls
 * behind, and sees only puts that are done. */
enum meeting { USUALLY, ALWAYS };

static const struct shape {
    enum rule rule;
    int roles;
    enum meeting meets;
    int (*run)(int place);
    const char *name, *outcome;
} shapes[] = {
    {STANDARD, 2, USUALLY, mp_fence, "MP: put, fence, put | wait, load", "the old x"},
    {STANDARD, 2, USUALLY, mp_quiet, "MP: put, quiet, put | wait, load", "the old x"},
    {STANDARD, 2, USUALLY, mp_signal, "MP: put with signal | wait, load", "the old x"},
    {STANDARD, 2, USUALLY, mp_nbi_amo, "MP: nbi put, fence, AMO | wait, load", "the old x"},
    {STANDARD, 2, USUALLY, mp_amo_nbi, "MP: AMO, fence, nbi put | test, load", "the old x"},
    {STANDARD, 2, USUALLY, mp_amo_signal, "MP: AMO, fence, signal | wait, load", "the old x"},
    {STANDARD, 2, USUALLY, mp_pointer, "MP: store by pointer, fence, put | wait, load", "the old x"},
    {STANDARD, 2, ALWAYS, mp_own_store, "MP: own store, quiet, put | wait, get", "the old x"},
    {STANDARD, 3, ALWAYS, mp_of_two_pes_quiet, "MP of 2 PEs: put, quiet, put | wait, get", "the old x"},
    {STANDARD, 3, USUALLY, mp_relayed, "MP: put, quiet, signal | wait, signal | wait, load", "the old x"},
    {STANDARD, 2, USUALLY, sb_put, "SB: put, quiet, get | the same", "both old"},
    {STANDARD, 2, USUALLY, sb_amo, "SB: AMO, quiet, fetch | the same", "both old"},
    {STANDARD, 3, USUALLY, sb_of_a_third_pe, "SB of a third PE: put, quiet, get | the same", "both old"},
    {RUSHMEM, 3, ALWAYS, wrc, "WRC: put | get, put | wait, load", "the old x"},
    {RUSHMEM, 3, ALWAYS, isa2, "ISA2: put with signal | wait, put | wait, get", "the old x"},
    {RUSHMEM, 3, ALWAYS, corr_gets, "CoRR: put | get, get", "new, then old"},
    {RUSHMEM, 2, USUALLY, corr_loads, "CoRR: put | load, load", "new, then old"},
    {RUSHMEM, 2, USUALLY, torn_amo, "torn word: AMO | load", "a part"},
    {WHOLE_WORDS, 2, USUALLY, torn_put, "torn word: put | load", "a part"},
    {ALLOWED, 2, USUALLY, mp_unordered, "MP: put, put | wait, load", "the old x"},
    {ALLOWED, 2, USUALLY, mp_put_before_signal, "MP: put, signal | wait, load", "the old x"},
    {ALLOWED, 3, ALWAYS, mp_of_two_pes_fence, "MP of 2 PEs: put, fence, put | wait, get", "the old x"},
    {ALLOWED, 2, USUALLY, sb_fence, "SB: put, fence, get | the same", "both old"},
    {ALLOWED, 4, ALWAYS, iriw, "IRIW: put | put | wait, get | wait, get", "two orders"},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

/* How often this PE has found the outcome of each shape, and of how many rounds; and of all PEs. */
struct counts {
    long outcomes, rounds;
};
static struct counts found[MEMORIES][SHAPES], all[MEMORIES][SHAPES];

/* Returns who forbids the outcome of a shape in this job, or null. */
static const char *forbidden_by(const struct shape *shape) {
    /* How PEs reach each other, without the reason, which follows a colon. */
    char path[80];
    snprintf(path, sizeof path, "%s", shmemx_transport());
    path[strcspn(path, ":")] = '\0';
    const int is_stored_by_others = strstr(path, "ucx") != NULL || strstr(path, "ofi") != NULL;
    switch (shape->rule) {
    case STANDARD: return "OpenSHMEM";
    case RUSHMEM: return "Rushmem";
    case WHOLE_WORDS: return is_stored_by_others ? NULL : "Rushmem";
    default: return NULL;
    }
}

/* Finds the group of this PE. In the first placements, the PEs of a group are neighbors, beginning
 * with each PE once; in the last one they are far apart, so that they are on several nodes. Returns
 * false if this PE has no group. */
static int join_group(int roles, int placement) {
    const int groups = check_n / roles, is_far = placement == roles;
    const int first = is_far ? 0 : placement, place = (check_me - first + check_n) % check_n;
    const int group = is_far ? place % groups : place / roles;
    role = is_far ? place / groups : place % roles;
    for (int other = 0; other < roles; other++)
        pes[other] = (first + (is_far ? other * groups + group : group * roles + other)) % check_n;
    return place < groups * roles;
}

/* Lets the PEs of a group begin a round together. A barrier would order more than a shape does, and
 * so would a fence between the rounds, so the turns are counted: additions need no order. */
static void meet(int roles, long round) {
    for (int other = 0; other < roles; other++)
        if (other != role)
            shmem_long_atomic_inc(&turn[role], pes[other]);
    /* At first without giving up the CPU: who has slept comes too late to meet anybody. */
    int tests = 0;
    for (int other = 0; other < roles; other++)
        while (other != role && !shmem_long_test(&turn[other], SHMEM_CMP_GE, round))
            if (++tests > 100)
                sched_yield();
}

/* Runs rounds of a shape. The outcome of a round was seen if all PEs have seen their parts. Most
 * shapes have a second half without meetings, in which operations of several rounds travel together.
 * The operations of a round that begins with a meeting travel alone. */
static void run_batch(const struct shape *shape, int placement, int rounds, struct counts *counts) {
    const int is_member = join_group(shape->roles, placement);
    memset(x, 0, WORDS * sizeof *x);
    memset(turn, 0, sizeof turn);
    shmem_barrier_all();

    for (int i = 0; is_member && i < rounds; i++) {
        if (i <= rounds / 2 || shape->meets == ALWAYS)
            meet(shape->roles, i + 1);
        delay();
        seen[i] = (unsigned char)shape->run(i * LINE);
    }
    shmem_barrier_all();

    if (is_member && role == 0) {
        for (int other = 1; other < shape->roles; other++) {
            unsigned char theirs[BATCH];
            shmem_getmem(theirs, seen, (size_t)rounds, pes[other]);
            for (int i = 0; i < rounds; i++)
                seen[i] &= theirs[i];
        }
        for (int i = 0; i < rounds; i++)
            counts->outcomes += seen[i];
        counts->rounds += rounds;
    }
    /* The others have words of the group until here. */
    shmem_barrier_all();
}

static void run(const struct shape *shape, long rounds, struct counts *counts) {
    const int placements = shape->roles + 1;
    for (int placement = 0; placement < placements; placement++)
        for (long left = (rounds + placements - 1) / placements; left > 0; left -= BATCH)
            run_batch(shape, placement, left < BATCH ? (int)left : BATCH, counts);
}

/* Prints the line of a shape on a kind of memory, and checks that a forbidden outcome was not seen. */
static void report(const struct shape *shape, const char *memory, struct counts counts, int prints) {
    const char *const by = forbidden_by(shape);
    char verdict[40] = "allowed";
    if (shape->roles > check_n)
        snprintf(verdict, sizeof verdict, "not run: it needs %d PEs", shape->roles);
    else if (by != NULL)
        snprintf(verdict, sizeof verdict, counts.outcomes ? "BROKEN: %s forbids it" : "forbidden by %s", by);
    if (prints)
        printf("%-50s  %-6s  %-13s %7ld of %8ld  %s\n", shape->name, memory, shape->outcome, counts.outcomes,
               counts.rounds, verdict);
    CHECK(by == NULL || counts.outcomes == 0, shape->rule == STANDARD ? 40 : 0,
          "%s: %s forbids \"%s\", which was seen %ld times of %ld, %s memory", shape->name, by, shape->outcome,
          counts.outcomes, counts.rounds, memory);
}

/* litmus [--litmus [ROUNDS]] */
int main(int argc, char **argv) {
    const int prints = argc > 1;
    const long rounds = argc > 2 ? atol(argv[2]) : USUAL_ROUNDS;
    check_begin();

    memset(found, 0, sizeof found);
    for (int m = 0; m < MEMORIES; m++) {
        x = memories[m].words();
        y = x + WORDS / 2;
        for (int s = 0; x != NULL && s < SHAPES; s++)
            if (shapes[s].roles <= check_n)
                run(&shapes[s], rounds, &found[m][s]);
        memories[m].end(x);
    }

    if (prints && check_me == 0)
        printf("%-50s  %-6s  %-13s %7s of %8s\n", "shape", "memory", "outcome", "seen", "rounds");
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &all[0][0].outcomes, &found[0][0].outcomes, 2 * MEMORIES * SHAPES);
    for (int s = 0; check_me == 0 && s < SHAPES; s++)
        for (int m = 0; m < MEMORIES; m++)
            report(&shapes[s], memories[m].name, all[m][s], prints);
    return check_end();
}
