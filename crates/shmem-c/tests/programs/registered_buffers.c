/* Memory of the program that becomes symmetric: every kind of call by the program's address and by the returned one,
 * runs of pages that buffers share, refusals, threads that store beside a buffer, a child, a second initialization. */
#include "check.h"

#include <pthread.h>
#include <shmemx.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SHMEMX_HAS_BUFFERS
#error "shmemx.h does not say that it has buffers"
#endif

static int right, left;

/* `own` is the program's address of the `n` elements, `use` the one for calls. */
static void puts_and_gets(const char *what, long *own, long *use, size_t n) {
    for (size_t i = 0; i < n; i++)
        own[i] = -1;
    shmem_barrier_all();
    long *values = malloc(n * sizeof *values), *got = malloc(n * sizeof *got);
    for (size_t i = 0; i < n; i++)
        values[i] = check_me * 100000L + (long)i;
    shmem_long_put(use, values, n, right);
    shmem_barrier_all();
    for (size_t i = 0; i < n; i++)
        CHECK(own[i] == left * 100000L + (long)i, 0, "%s: put stored %ld at %zu", what, own[i], i);
    shmem_long_get(got, use, n, left);
    int left2 = (check_me + 2 * check_n - 2) % check_n;
    CHECK(got[0] == left2 * 100000L && got[n - 1] == left2 * 100000L + (long)n - 1, 0, "%s: get", what);
    shmem_long_get_nbi(got, use, n, right);
    shmem_quiet();
    CHECK(got[0] == check_me * 100000L && got[n / 2] == check_me * 100000L + (long)n / 2, 0, "%s: get_nbi", what);
    shmem_barrier_all();

    const size_t places[] = {0, n / 2, n - 1};
    for (int k = 0; k < 3; k++) {
        shmem_long_p(use + places[k], check_me * 10L + k, right);
        shmem_barrier_all();
        CHECK(own[places[k]] == left * 10L + k, 0, "%s: p", what);
        CHECK(shmem_long_g(use + places[k], right) == check_me * 10L + k, 0, "%s: g", what);
        shmem_barrier_all();
    }
    shmem_long_iput(use + 20, values, 3, 2, 100, right);
    shmem_barrier_all();
    for (int i = 0; i < 100; i++)
        CHECK(own[20 + 3 * i] == left * 100000L + 2 * i, 0, "%s: iput", what);
    shmem_long_iget(got, use + 20, 1, 3, 100, right);
    CHECK(got[99] == check_me * 100000L + 198, 0, "%s: iget", what);
    /* The source of a put may be a buffer, too. */
    shmem_barrier_all();
    own[700] = check_me;
    shmem_long_put(use + 701, own + 700, 1, right);
    shmem_barrier_all();
    CHECK(own[701] == left, 0, "%s: put from a buffer", what);
    shmem_barrier_all();
    free(values), free(got);
}

static void words(const char *what, long *own, long *use) {
    own[1] = 0;
    shmem_barrier_all();
    for (int k = 0; k < 50; k++)
        shmem_long_atomic_add(use + 1, 1, 0);
    long last = 0;
    for (int k = 0; k < 50; k++)
        last = shmem_long_atomic_fetch_inc(use + 1, 0);
    shmem_barrier_all();
    CHECK(check_me || own[1] == 100L * check_n, 0, "%s: the sum is %ld", what, own[1]);
    CHECK(last >= 50 && last < 100L * check_n, 0, "%s: fetch_inc returned %ld", what, last);
    CHECK(shmem_long_atomic_fetch(use + 1, 0) == 100L * check_n, 0, "%s: fetch", what);
    CHECK(shmem_long_atomic_compare_swap(use + 4 + check_me % 8, 0, 0, 0) || 1, 0, "%s", what);
    shmem_barrier_all();

    uint64_t *signal = (uint64_t *)(own + 2), *use_signal = (uint64_t *)(use + 2);
    *signal = 0, own[3] = 0;
    long values[50];
    for (int i = 0; i < 50; i++)
        values[i] = check_me * 1000L + i;
    shmem_barrier_all();
    shmem_long_put_signal(use + 100, values, 50, use_signal, 77, SHMEM_SIGNAL_SET, right);
    CHECK(shmem_signal_wait_until(use_signal, SHMEM_CMP_EQ, 77) == 77, 0, "%s: signal_wait_until", what);
    for (int i = 0; i < 50; i++)
        CHECK(own[100 + i] == left * 1000L + i, 0, "%s: the data of a signal", what);
    shmem_long_p(use + 3, 5, right);
    shmem_long_wait_until(own + 3, SHMEM_CMP_EQ, 5);
    shmem_barrier_all();

    /* A lock in a buffer: it counts on PE 0 without an atomic operation. */
    long *lock = use + 8, *count = use + 9;
    own[8] = own[9] = 0;
    shmem_barrier_all();
    for (int k = 0; k < 5; k++) {
        shmem_set_lock(lock);
        shmem_long_p(count, shmem_long_g(count, 0) + 1, 0);
        shmem_quiet();
        shmem_clear_lock(lock);
    }
    shmem_barrier_all();
    CHECK(check_me || own[9] == 5L * check_n, 0, "%s: %ld under the lock", what, own[9]);
    shmem_barrier_all();
}

static void collectives(const char *what, long *own, long *use) {
    for (int i = 0; i < 100; i++)
        own[i] = check_me + i;
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, use + 200, use, 100);
    for (int i = 0; i < 100; i++)
        CHECK(own[200 + i] == (long)check_n * (check_n - 1) / 2 + (long)check_n * i, 0, "%s: sum_reduce", what);
    shmem_long_broadcast(SHMEM_TEAM_WORLD, use + 400, use, 100, check_n - 1);
    for (int i = 0; i < 100; i++)
        CHECK(own[400 + i] == check_n - 1 + i, 0, "%s: broadcast", what);
    shmem_barrier_all();
    shmem_long_fcollect(SHMEM_TEAM_WORLD, use + 600, use, 20);
    for (int pe = 0; pe < check_n; pe++)
        for (int i = 0; i < 20; i++)
            CHECK(own[600 + pe * 20 + i] == pe + i, 0, "%s: fcollect", what);
    shmem_barrier_all();
    for (int i = 0; i < 20 * check_n; i++)
        own[i] = check_me * 1000L + i;
    shmem_barrier_all();
    shmem_long_alltoall(SHMEM_TEAM_WORLD, use + 1500, use, 20);
    for (int pe = 0; pe < check_n; pe++)
        for (int i = 0; i < 20; i++)
            CHECK(own[1500 + pe * 20 + i] == pe * 1000L + check_me * 20 + i, 0, "%s: alltoall", what);
    shmem_barrier_all();
    CHECK(shmem_addr_accessible(use, right) == 1, 0, "%s: addr_accessible", what);
    long *there = shmem_ptr(use, right);
    own[7] = 0;
    shmem_barrier_all();
    if (there)
        there[7] = 42 + check_me;
    shmem_barrier_all();
    CHECK(own[7] == (shmem_ptr(use, left) ? 42 + left : 0), 0, "%s: ptr", what);
    shmem_barrier_all();
}

static void all_calls(const char *what, long *own, long *use) {
    enum { N = 3000 };
    puts_and_gets(what, own, use, N);
    words(what, own, use);
    collectives(what, own, use);
}

/* malloc'ed memory, at another address and another byte of a page on each PE. */
static void anywhere(void) {
    enum { N = 3000 };
    char *before = malloc(70000 + 528 * (size_t)check_me);
    long *own = malloc(N * sizeof *own);
    char *after = malloc(3000);
    memset(before, 'b', 1000), memset(after, 'a', 3000);
    for (int i = 0; i < N; i++)
        own[i] = check_me * 7L + i;
    CHECK(shmem_addr_accessible(own, 0) == 0, 0, "symmetric before it is registered");
    long *use = shmemx_buffer_register(own, N * sizeof *own, 0);
    CHECK(use == own, 0, "another address without the option");
    for (int i = 0; i < N; i++)
        CHECK(own[i] == check_me * 7L + i, 0, "element %d was lost", i);
    all_calls("malloc", own, own);
    CHECK(check_constant(before, 1000, 'b') < 0 && check_constant(after, 3000, 'a') < 0, 0, "the neighbors' bytes");

    long *pages = NULL;
    CHECK(posix_memalign((void **)&pages, 4096, 32768) == 0, 0, "no memory");
    long *pinned = shmemx_buffer_register(pages, 32768, SHMEMX_BUFFER_PINNED);
    CHECK(pinned && pinned != pages, 0, "a pinned buffer at %p is used at %p", (void *)pages, (void *)pinned);
    all_calls("pinned", pages, pinned);
    all_calls("pinned, own address", pages, pages);

    /* Both addresses are those of the same bytes, so no block is stored before all PEs have called. */
    if (check_me > 0)
        usleep(20000);
    for (int i = 0; i < check_n; i++)
        pages[i] = 1000L * check_me + i;
    shmem_long_alltoall(SHMEM_TEAM_WORLD, pinned, pages, 1);
    for (int i = 0; i < check_n; i++)
        CHECK(pages[i] == 1000L * i + check_me, 0, "block %d of an exchange in place is %ld", i, pages[i]);
    CHECK(shmemx_buffer_unregister(pages) == 0, 0, "not unregistered");
    CHECK(shmem_addr_accessible(pages, 0) == 0, 0, "symmetric after it was unregistered");

    for (int i = 0; i < N; i++)
        own[i] = check_me * 9L + i;
    CHECK(shmemx_buffer_unregister(own) == 0 && shmemx_buffer_unregister(own) != 0, 0, "unregistered twice or not");
    for (int i = 0; i < N; i++)
        CHECK(own[i] == check_me * 9L + i, 0, "element %d was lost at the end", i);
    free(after), free(own), free(before), free(pages);
}

struct buffer {
    long *own;
    size_t n;
    long mark;
};

static void check_buffer(const struct buffer *b) {
    for (size_t i = 0; i < b->n; i++)
        CHECK(b->own[i] == b->mark * check_n + left + (long)i, 0, "buffer of %zu: %ld at %zu", b->n, b->own[i], i);
}

enum { MOST = 60 };
static struct buffer buffers[MOST];
static unsigned state;
static unsigned draw(unsigned below) {
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
}

/* Buffers come and go in random order beside allocations. They share pages, on each PE with others. */
static void many(int rounds) {
    void *blocks[10] = {0};
    state = 7;
    for (int round = 0; round < rounds; round++) {
        struct buffer *b = &buffers[draw(MOST)];
        if (b->own) {
            check_buffer(b);
            CHECK(shmemx_buffer_unregister(b->own) == 0, 0, "not unregistered in round %d", round);
            check_buffer(b);
            free(b->own);
            b->own = NULL;
        } else {
            b->n = 1 + draw(draw(4) ? 300 : 4000);
            unsigned other = draw(5000);
            if (check_me % 2)
                free(malloc(100 + other));
            b->own = malloc(b->n * 8 + 16 * (size_t)(check_me * 31 % 5));
            b->mark = round;
            CHECK(shmemx_buffer_register(b->own, b->n * 8, 0) == b->own, 0, "refused in round %d", round);
            long *values = malloc(b->n * 8);
            for (size_t i = 0; i < b->n; i++)
                values[i] = b->mark * check_n + check_me + (long)i;
            shmem_long_put(b->own, values, b->n, right);
            shmem_barrier_all();
            check_buffer(b);
            free(values);
        }
        int k = (int)draw(10);
        if (blocks[k])
            shmem_free(blocks[k]), blocks[k] = NULL;
        else
            blocks[k] = shmem_malloc(1 + draw(20000));
    }
    for (int i = 0; i < MOST; i++)
        if (buffers[i].own)
            check_buffer(&buffers[i]);
    for (int k = 0; k < 10; k++)
        shmem_free(blocks[k]);
}

/* After finalize the memory is the program's, with its contents. */
static void free_all(void) {
    for (int i = 0; i < MOST; i++)
        if (buffers[i].own) {
            check_buffer(&buffers[i]);
            memset(buffers[i].own, 7, buffers[i].n * 8);
            free(buffers[i].own);
            buffers[i].own = NULL;
        }
}

static long symmetric_array[4096];

/* What cannot be registered on one PE is refused on all, and nothing changes. */
static void refusals(void) {
    long on_stack[1024] = {0};
    CHECK(!shmemx_buffer_register(on_stack, 0, 0), 0, "0 bytes");
    CHECK(!shmemx_buffer_register(on_stack, sizeof on_stack, 0), 0, "a stack");
    CHECK(!shmemx_buffer_register(symmetric_array, sizeof symmetric_array, 0), 0, "static data");
    long *block = shmem_malloc(8192);
    CHECK(!shmemx_buffer_register(block, 8192, 0), 0, "a block of the heap");
    shmem_free(block);
    CHECK(!shmemx_buffer_register((void *)"constant", 8, 0), 0, "a constant");
    const int of_file = MAP_PRIVATE | MAP_ANONYMOUS;
    void *none = mmap(NULL, 8192, PROT_NONE, of_file, -1, 0), *constant = mmap(NULL, 8192, PROT_READ, of_file, -1, 0);
    CHECK(!shmemx_buffer_register(none, 8192, 0) && !shmemx_buffer_register(constant, 8192, 0), 0, "no access");
    void *shared = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(!shmemx_buffer_register(shared, 8192, 0), 0, "shared memory");
    void *code = mmap(NULL, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, of_file, -1, 0);
    if (code != MAP_FAILED)
        CHECK(!shmemx_buffer_register(code, 8192, 0), 0, "executable memory");

    char *good = malloc(100000);
    memset(good, 5, 100000);
    CHECK(!shmemx_buffer_register(check_me == check_n - 1 ? constant : good, 8192, 0), 0, "bad on one PE");
    CHECK(good[0] == 5 && shmem_addr_accessible(good, 0) == 0, 0, "changed by a refusal");
    CHECK(!shmemx_buffer_register(good, (size_t)1 << 50, 0), 0, "no end");
    if (check_n > 1)
        CHECK(!shmemx_buffer_register(good + (check_me == 1) * 8, 1000, 0), 0, "aligned otherwise on PE 1");

    CHECK(shmemx_buffer_register(good, 50000, 0) == good, 0, "refused");
    CHECK(!shmemx_buffer_register(good + 49999, 100, 0) && !shmemx_buffer_register(good + 100, 10, 0), 0, "overlap");
    CHECK(shmemx_buffer_register(good + 50000, 50000, 0) == good + 50000, 0, "the next byte was refused");
    CHECK(shmemx_buffer_unregister(good + 8) != 0, 0, "unregistered inside");
    CHECK(!shmemx_buffer_unregister(good) && !shmemx_buffer_unregister(good + 50000), 0, "not unregistered");
    CHECK(check_constant(good, 100000, 5) < 0, 0, "the contents");

    /* A pinned buffer does not move for one beside it. */
    char *pages = aligned_alloc(4096, 5 * 4096);
    CHECK(shmemx_buffer_register(pages + 4096, 4096 + 64, SHMEMX_BUFFER_PINNED) != NULL, 0, "pinned");
    CHECK(!shmemx_buffer_register(pages + 2 * 4096 + 128, 4096, 0), 0, "beside a pinned one");
    CHECK(shmemx_buffer_register(pages + 2 * 4096 + 128, 1024, 0) != NULL, 0, "inside the pages of a pinned one");
    CHECK(!shmemx_buffer_unregister(pages + 4096) && !shmemx_buffer_unregister(pages + 2 * 4096 + 128), 0, "the end");
    free(pages), free(good);
    munmap(none, 8192), munmap(constant, 8192), munmap(shared, 8192), munmap(code, 8192);
}

struct counted {
    volatile unsigned long *word;
    unsigned long lost;
};
static volatile int is_over;

static void *store(void *argument) {
    struct counted *counted = argument;
    unsigned long next = *counted->word;
    while (!is_over) {
        if (*counted->word != next)
            counted->lost++, next = *counted->word;
        *counted->word = ++next;
    }
    counted->lost += *counted->word != next;
    return NULL;
}

/* Threads store in the first and the last page of a buffer, beside it, and lose nothing. */
static void stores_beside(int rounds) {
    char *whole = calloc(1, 64 + 40000 + 64);
    struct counted counted[] = {{(void *)whole, 0}, {(void *)(whole + 64 + 40000), 0}};
    pthread_t threads[2];
    is_over = 0;
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, store, &counted[i]);
    for (int i = 0; i < rounds; i++) {
        CHECK(shmemx_buffer_register(whole + 64, 40000, 0) != NULL, 0, "refused beside threads");
        CHECK(shmemx_buffer_unregister(whole + 64) == 0, 0, "not unregistered beside threads");
    }
    is_over = 1;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    CHECK(!counted[0].lost && !counted[1].lost, 0, "%lu and %lu stores were lost", counted[0].lost, counted[1].lost);
    free(whole);
}

/* What a child stores, and what its malloc does, stays in the child. */
static void child(void) {
    char *before = malloc(500), *own = malloc(30000), *after = malloc(500);
    memset(before, 1, 500), memset(own, 2, 30000), memset(after, 3, 500);
    CHECK(shmemx_buffer_register(own, 30000, 0) == own, 0, "refused");
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        int is_same = check_constant(own, 30000, 2) < 0 && check_constant(before, 500, 1) < 0;
        memset(before, 7, 500), memset(own, 8, 30000), memset(after, 9, 500);
        free(before), free(after);
        for (int i = 0; i < 100; i++)
            memset(malloc(450), 6, 450);
        _exit(is_same ? 0 : 1);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    CHECK(status == 0, 0, "the child ended with %#x", (unsigned)status);
    CHECK(check_constant(before, 500, 1) < 0 && check_constant(after, 500, 3) < 0, 0, "stores of the child beside it");
    CHECK(check_constant(own, 30000, 2) < 0, 0, "stores of the child");
    CHECK(shmemx_buffer_unregister(own) == 0, 0, "not unregistered");
    free(after), free(own), free(before);
}

int main(void) {
    for (int life = 0; life < 2; life++) {
        if (life)
            shmem_init();
        else
            check_begin();
        right = (check_me + 1) % check_n, left = (check_me + check_n - 1) % check_n;
        anywhere();
        refusals();
        many(80);
        stores_beside(8);
        child();
        int total = check_agree();
        shmem_finalize();
        free_all();
        if (life || total)
            return check_verdict(total + check_failures);
    }
}
