/* All PEs change the same words at the same time, by every atomic operation and signal. If the PEs
 * of a node and those of other nodes did not use the same atomicity domain, updates would be lost
 * or values fetched twice.
 */
#include "../programs/check.h"

enum { ROUNDS = 120 };

/* The values that this PE has fetched. */
static long fetched[ROUNDS];
static long counter, swapped, tokens;
static int narrow;
static int narrow_fetched[ROUNDS];
static uint64_t bits, sum, signals, own_domain;

/* Whether the values that all PEs of the world fetched are `first` to `first + ROUNDS * n - 1`, in
 * any order; one value that nobody fetched is `last`. */
static void check_values(const char *what, const long *of_all, long last) {
    long n_values = (long)check_n * ROUNDS;
    char *seen = calloc(n_values + 1, 1);
    for (long i = 0; i <= n_values; i++) {
        long value = i < n_values ? of_all[i] : last;
        CHECK(value >= 0 && value <= n_values, 0, "%s fetched %ld", what, value);
        if (value < 0 || value > n_values)
            continue;
        CHECK(!seen[value], 0, "%s fetched %ld twice", what, value);
        seen[value] = 1;
    }
    free(seen);
}

static void check_fetched(const char *what, const long *last, int target) {
    shmem_barrier_all();
    if (check_me == 0) {
        long *of_all = malloc(sizeof fetched * check_n);
        for (int pe = 0; pe < check_n; pe++)
            shmem_long_get(of_all + (long)pe * ROUNDS, fetched, ROUNDS, pe);
        check_values(what, of_all, shmem_long_atomic_fetch(last, target));
        free(of_all);
    }
    shmem_barrier_all();
}

/* One counter, by every operation that can count and fetches. */
static void count(int target) {
    for (int i = 0; i < ROUNDS; i++) {
        long value;
        switch (i % 5) {
        case 0:
            value = shmem_long_atomic_fetch_inc(&counter, target);
            break;
        case 1:
            value = shmem_long_atomic_fetch_add(&counter, 1, target);
            break;
        case 2:
            shmem_long_atomic_fetch_add_nbi(&value, &counter, 1, target);
            shmem_quiet();
            break;
        case 3:
            shmem_long_atomic_fetch_inc_nbi(&value, &counter, target);
            shmem_quiet();
            break;
        default:
            do
                value = shmem_long_atomic_fetch(&counter, target);
            while (shmem_long_atomic_compare_swap(&counter, value, value + 1, target) != value);
        }
        fetched[i] = value;
    }
    check_fetched("a counter", &counter, target);
}

/* As above, in 4 bytes. */
static void count_narrow(int target) {
    for (int i = 0; i < ROUNDS; i++)
        narrow_fetched[i] = shmem_int_atomic_fetch_inc(&narrow, target);
    for (int i = 0; i < ROUNDS; i++)
        fetched[i] = narrow_fetched[i];
    shmem_barrier_all();
    tokens = shmem_int_atomic_fetch(&narrow, target);
    check_fetched("a counter of 4 bytes", &tokens, 0);
}

/* Each value that a swap writes is fetched by exactly one other swap. */
static void swap(int target) {
    for (int i = 0; i < ROUNDS; i++) {
        long token = (long)check_me * ROUNDS + i + 1;
        if (i % 2)
            fetched[i] = shmem_long_atomic_swap(&swapped, token, target);
        else {
            shmem_long_atomic_swap_nbi(&fetched[i], &swapped, token, target);
            shmem_quiet();
        }
    }
    check_fetched("a swap", &swapped, target);
}

/* Each PE has a bit of its own, which the others' operations must not touch. */
static void flip(int target) {
    const uint64_t own = UINT64_C(1) << check_me;
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t old = shmem_uint64_atomic_fetch_or(&bits, own, target);
        CHECK(!(old & own), 0, "fetch_or found %#llx", (unsigned long long)old);
        old = shmem_uint64_atomic_fetch_and(&bits, ~own, target);
        CHECK(old & own, 0, "fetch_and found %#llx", (unsigned long long)old);
        old = shmem_uint64_atomic_fetch_xor(&bits, own, target);
        CHECK(!(old & own), 0, "fetch_xor found %#llx", (unsigned long long)old);
        shmem_uint64_atomic_xor(&bits, own, target);
        shmem_uint64_atomic_or(&bits, own, target);
        shmem_fence();
        shmem_uint64_atomic_and(&bits, ~own, target);
        shmem_quiet();
        old = shmem_uint64_atomic_fetch(&bits, target);
        CHECK(!(old & own), 0, "fetch found %#llx", (unsigned long long)old);
    }
    shmem_barrier_all();
    CHECK(shmem_uint64_atomic_fetch(&bits, target) == 0, 0, "bits are left");
}

/* Operations that fetch nothing, and signals with data and without. */
static void add(int target) {
    static char data[64];
    for (int i = 0; i < ROUNDS; i++) {
        shmem_uint64_atomic_inc(&sum, target);
        shmem_uint64_atomic_add(&sum, 2, target);
        shmem_signal_add(&signals, 1, target);
        shmem_putmem_signal(data, data, check_me % 2 ? sizeof data : 0, &signals, 1, SHMEM_SIGNAL_ADD, target);
    }
    shmem_barrier_all();
    uint64_t expected = (uint64_t)check_n * ROUNDS;
    uint64_t found = shmem_uint64_atomic_fetch(&sum, target);
    CHECK(found == 3 * expected, 0, "a sum is %llu", (unsigned long long)found);
    if (check_me == target)
        CHECK(shmem_signal_fetch(&signals) == 2 * expected, 0, "signals are %llu", (unsigned long long)signals);
    shmem_barrier_all();
}

/* All PEs set the same word: each fetched value is one that some PE has set. */
static void set(int target) {
    for (int i = 0; i < ROUNDS; i++) {
        shmem_long_atomic_set(&tokens, 1000 + check_me, target);
        long found = shmem_long_atomic_fetch(&tokens, target);
        CHECK(found >= 1000 && found < 1000 + check_n, 0, "a set word is %ld", found);
    }
    shmem_barrier_all();
}

/* Only PEs of a node, in the atomicity domain of SHMEM_TEAM_SHARED. */
static void among_the_node(void) {
    shmem_ctx_t ctx;
    CHECK(shmem_team_create_ctx(SHMEM_TEAM_SHARED, 0, &ctx) == 0, 0, "no context");
    for (int i = 0; i < ROUNDS; i++) {
        shmem_ctx_uint64_atomic_inc(ctx, &own_domain, 0);
        shmem_ctx_uint64_atomic_fetch_add(ctx, &own_domain, 1, 0);
    }
    shmem_ctx_quiet(ctx);
    shmem_team_sync(SHMEM_TEAM_SHARED);
    uint64_t found = shmem_ctx_uint64_atomic_fetch(ctx, &own_domain, 0);
    uint64_t expected = 2 * (uint64_t)shmem_team_n_pes(SHMEM_TEAM_SHARED) * ROUNDS;
    CHECK(found == expected, 0, "the node counted %llu", (unsigned long long)found);
    shmem_ctx_destroy(ctx);
}

int main(void) {
    check_begin();
    const int targets[] = {0, check_n - 1};
    for (int i = 0; i < (check_n > 1 ? 2 : 1); i++) {
        count(targets[i]);
        count_narrow(targets[i]);
        swap(targets[i]);
        flip(targets[i]);
        add(targets[i]);
        tokens = 1000;
        shmem_barrier_all();
        set(targets[i]);
    }
    among_the_node();
    return check_end();
}
