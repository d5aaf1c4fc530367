/* Global and static variables are symmetric objects: in .data and .bss, of files and of functions,
 * as data, flags, locks, signals and pSync of every kind of routine. Compiled as C and as C++. */
#include "check.h"
#include <unistd.h>
#include <sys/wait.h>

enum { PAGES = 5, PAGE = 4096, WORDS = PAGES * PAGE / 8, SLOTS = 64 };

int initial = 7;
static int left, right;
static long words[WORDS] = {11, 12, 13};
static unsigned char bytes[PAGES * PAGE], received[PAGES * PAGE];
static long psync[SHMEM_REDUCE_SYNC_SIZE], other_psync[SHMEM_SYNC_SIZE], sums[SLOTS], terms[SLOTS];
static long pwrk[SHMEM_REDUCE_MIN_WRKDATA_SIZE];
static long held, counter;
static int flag;
static uint64_t signal_word;
static struct nothing { char none[0]; } nothing;
static double strided[16];

static long *of_function(void) {
    static long here = 21;
    return &here;
}

static void before_init_and_after(void) {
    CHECK(initial == 8 && words[0] == 11 && words[2] == 13 && words[3] == 0 && words[WORDS - 1] == 14, 0,
          "values from before shmem_init are lost: %d, %ld, %ld", initial, words[0], words[WORDS - 1]);
    shmem_barrier_all();
    int from_left = shmem_int_g(&initial, left);
    CHECK(from_left == 8, 31, "the left one's variable is %d", from_left);
    shmem_barrier_all();
    shmem_int_p(&initial, 1000 + check_me, right);
    shmem_long_p(of_function(), 2000 + check_me, right);
    shmem_barrier_all();
    CHECK(initial == 1000 + left, 31, "p put %d", initial);
    CHECK(*of_function() == 2000 + left, 31, "p put %ld into a function's variable", *of_function());
}

static void pointers(void) {
    for (int pe = 0; pe < check_n; pe++) {
        CHECK(shmem_addr_accessible(&initial, pe) == 1, 33, "a variable of PE %d is not accessible", pe);
        volatile int *theirs = (volatile int *)shmem_ptr(&initial, pe);
        if (theirs)
            CHECK(*theirs == 1000 + (pe + check_n - 1) % check_n, 33, "PE %d's variable is %d by its pointer", pe, *theirs);
    }
    CHECK(shmem_ptr(&initial, check_me) == &initial, 33, "another address for the own variable");
    int automatic = 0;
    CHECK(shmem_addr_accessible(&automatic, check_me) == 0, 33, "an automatic variable is accessible");
    CHECK(shmem_ptr(&automatic, check_me) == NULL, 33, "an automatic variable has a pointer");
}

/* Transfers across page boundaries, at odd addresses, of many lengths, to and from the heap. */
static void runs_of_bytes(void) {
    unsigned char *heap = (unsigned char *)check_malloc(sizeof bytes);
    const size_t lengths[] = {0, 1, 7, 8, 9, 64, PAGE - 1, PAGE + 1, 3 * PAGE + 5};
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        size_t nbytes = lengths[k], shift = PAGE - 3 + k;
        check_fill(bytes, sizeof bytes, check_me);
        memset(received, 0xa5, sizeof received);
        memset(heap, 0xa5, sizeof bytes);
        shmem_barrier_all();
        shmem_putmem(received + shift, bytes, nbytes, right);
        shmem_putmem_nbi(heap + shift, bytes, nbytes, right);
        shmem_barrier_all();
        CHECK(check_pattern(received + shift, nbytes, left) < 0, 27, "%zu bytes did not arrive", nbytes);
        CHECK(check_constant(received, shift, 0xa5) < 0, 27, "%zu bytes wrote before their place", nbytes);
        CHECK(check_constant(received + shift + nbytes, sizeof received - shift - nbytes, 0xa5) < 0, 27,
              "%zu bytes wrote behind their place", nbytes);
        CHECK(check_pattern(heap + shift, nbytes, left) < 0, 27, "%zu bytes did not arrive in the heap", nbytes);
        memset(received, 0, sizeof received);
        shmem_getmem(received, bytes, nbytes, left);
        CHECK(check_pattern(received, nbytes, left) < 0, 27, "get of %zu bytes", nbytes);
        shmem_getmem_nbi(received + shift, heap + shift, nbytes, right);
        shmem_quiet();
        CHECK(check_pattern(received + shift, nbytes, check_me) < 0, 27, "get of %zu bytes of the heap", nbytes);
        shmem_barrier_all();
    }
    shmem_putmem(&nothing, bytes, 0, right);
    for (int i = 0; i < 16; i++)
        strided[i] = -1;
    double three[3] = {check_me + .25, check_me + .5, check_me + .75};
    shmem_barrier_all();
    shmem_double_iput(strided, three, 5, 1, 3, right);
    shmem_barrier_all();
    for (int i = 0; i < 16; i++)
        CHECK(strided[i] == (i % 5 || i > 10 ? -1 : left + .25 * (1 + i / 5)), 29, "iput: element %d is %f", i, strided[i]);
    double back[3] = {0, 0, 0};
    shmem_double_iget(back, strided, 1, 5, 3, right);
    CHECK(back[0] == three[0] && back[2] == three[2], 29, "iget: %f, %f", back[0], back[2]);
    shmem_free(heap);
}

static void atomics_and_locks(void) {
    counter = held = 0;
    shmem_barrier_all();
    for (int i = 0; i < 50; i++) {
        shmem_long_atomic_inc(&counter, i % check_n);
        long old = shmem_long_atomic_fetch_add(&words[100], 2, 0);
        CHECK(old % 2 == 0, 35, "fetch_add saw %ld", old);
    }
    static long unguarded;
    for (int i = 0; i < 10; i++) {
        shmem_set_lock(&held);
        shmem_long_p(&unguarded, shmem_long_g(&unguarded, 0) + 1, 0);
        shmem_quiet();
        shmem_clear_lock(&held);
    }
    shmem_barrier_all();
    long all = 0;
    for (int pe = 0; pe < check_n; pe++)
        all += shmem_long_atomic_fetch(&counter, pe);
    CHECK(all == 50L * check_n, 35, "%ld increments", all);
    CHECK(shmem_long_g(&words[100], 0) == 100L * check_n, 35, "additions make %ld", shmem_long_g(&words[100], 0));
    CHECK(shmem_long_g(&unguarded, 0) == 10L * check_n, 70, "under a lock %ld were counted", shmem_long_g(&unguarded, 0));
    shmem_barrier_all();
    long seen = shmem_long_atomic_compare_swap(&counter, -1, 5, right);
    CHECK(seen != -1, 35, "compare_swap saw %ld", seen);
}

/* Data in one segment and its signal in the other. */
static void signals(void) {
    enum { N = 600 };
    long *heap = (long *)check_malloc(N * sizeof *heap);
    uint64_t *heap_signal = (uint64_t *)shmem_calloc(1, sizeof *heap_signal);
    static long source[N], data[N];
    for (uint64_t round = 1; round <= 5; round++) {
        for (int i = 0; i < N; i++)
            source[i] = check_me * 100000L + i + (long)round;
        shmem_barrier_all();
        shmem_long_put_signal(data, source, N, heap_signal, 1, SHMEM_SIGNAL_ADD, right);
        shmem_long_put_signal(heap, source, N, &signal_word, round, SHMEM_SIGNAL_SET, right);
        shmem_signal_wait_until(heap_signal, SHMEM_CMP_EQ, round);
        CHECK(data[N - 1] == left * 100000L + N - 1 + (long)round, 44, "the signal came before static data");
        shmem_signal_wait_until(&signal_word, SHMEM_CMP_EQ, round);
        CHECK(heap[N - 1] == left * 100000L + N - 1 + (long)round, 44, "a static signal came before its data");
    }
    /* In the last round, the put and its signal have the same word as their target. */
    shmem_fence();
    shmem_long_p(data, 5, right);
    shmem_fence();
    shmem_int_p(&flag, 1, right);
    shmem_int_wait_until(&flag, SHMEM_CMP_EQ, 1);
    CHECK(data[0] == 5, 39, "a flag came before what was put ahead of it");
    shmem_free(heap_signal);
    shmem_free(heap);
}

static void collectives(void) {
    long *heap = (long *)check_malloc(SLOTS * sizeof *heap);
    for (int i = 0; i < SHMEM_REDUCE_SYNC_SIZE; i++)
        psync[i] = SHMEM_SYNC_VALUE;
    for (int i = 0; i < SHMEM_SYNC_SIZE; i++)
        other_psync[i] = SHMEM_SYNC_VALUE;
    for (int i = 0; i < SLOTS; i++)
        terms[i] = check_me + i;
    shmem_barrier_all();
    shmem_long_sum_to_all(sums, terms, SLOTS, 0, 0, check_n, pwrk, psync);
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, heap, terms, SLOTS);
    for (int i = 0; i < SLOTS; i++) {
        long sum = (long)check_n * i + (long)check_n * (check_n - 1) / 2;
        CHECK(sums[i] == sum && heap[i] == sum, 59, "sum %d is %ld and %ld, not %ld", i, sums[i], heap[i], sum);
    }
    shmem_barrier(0, 0, check_n, other_psync);
    shmem_barrier(0, 0, check_n, other_psync);
    shmem_broadcastmem(SHMEM_TEAM_WORLD, received, bytes, sizeof bytes, check_n - 1);
    CHECK(check_pattern(received, sizeof bytes, check_n - 1) < 0, 55, "broadcast of static data");
    shmem_barrier_all();
    static int gathered[2 * 16], own[2];
    own[0] = check_me;
    own[1] = -check_me;
    if (check_n <= 16) {
        shmem_int_fcollect(SHMEM_TEAM_WORLD, gathered, own, 2);
        for (int pe = 0; pe < check_n; pe++)
            CHECK(gathered[2 * pe] == pe && gathered[2 * pe + 1] == -pe, 55, "fcollect: element %d is %d", 2 * pe, gathered[2 * pe]);
    }
    shmem_barrier_all();
    shmem_free(heap);
}

/* Writes of a child of fork are not visible to its parent. */
static void children(void) {
    static long parents;
    parents = 40 + check_me;
    bytes[2 * PAGE] = 17;
    shmem_barrier_all();
    pid_t child = fork();
    if (child == 0) {
        int kept = parents == 40 + check_me && bytes[2 * PAGE] == 17 && words[0] == 11;
        parents = -1;
        memset(bytes, 99, sizeof bytes);
        initial = -1;
        _exit(kept && parents == -1 ? 3 : 4);
    }
    int status = 0;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 3, 0,
          "a child saw other values; status %#x", (unsigned)status);
    CHECK(parents == 40 + check_me && bytes[2 * PAGE] == 17 && initial != -1, 0, "a child wrote to its parent's variables");
    shmem_barrier_all();
    shmem_long_p(&parents, 7, right);
    shmem_barrier_all();
    CHECK(parents == 7, 0, "after fork a put does not arrive");
}

int main(void) {
    initial++;
    words[WORDS - 1] = 14;
    check_begin();
    left = (check_me + check_n - 1) % check_n;
    right = (check_me + 1) % check_n;
    before_init_and_after();
    pointers();
    runs_of_bytes();
    atomics_and_locks();
    signals();
    collectives();
    children();
    return check_end();
}
