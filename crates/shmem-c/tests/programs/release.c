/* Blocks that each PE releases in an order of its own: they are freed once all PEs have released them, by a call for that or by
 * an allocation that finds no room, and never before. */
#include "check.h"
#include <pthread.h>
#include <shmemx.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 100, MANY = 20000, THREADS = 4 };

static int right;

static size_t used(void) {
    shmemx_heap_info_t info;
    shmemx_heap_info(&info);
    return info.used;
}

static size_t room(void) {
    shmemx_heap_info_t info;
    shmemx_heap_info(&info);
    return info.largest_free;
}

static void shuffle(void **blocks, int n) {
    for (int i = n - 1; i > 0; i--) {
        int j = rand() % (i + 1);
        void *block = blocks[i];
        blocks[i] = blocks[j], blocks[j] = block;
    }
}

static void in_any_order(void) {
    static long own, sum;
    void *blocks[N];
    size_t before = used();
    for (int i = 0; i < N; i++)
        blocks[i] = check_malloc(1000);
    shuffle(blocks, N);
    for (int i = 0; i < N / 2; i++)
        shmemx_release(blocks[i]);
    size_t freed = shmemx_reclaim();
    CHECK(freed % 1000 == 0 && freed <= N / 2 * 1000, 0, "%zu bytes are freed", freed);
    CHECK(check_n > 1 || freed == N / 2 * 1000, 0, "%zu bytes are freed of one PE", freed);
    own = (long)freed;
    shmem_barrier_all();
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sum, &own, 1);
    CHECK(sum == own * check_n, 0, "PEs have freed other blocks");
    for (int i = N / 2; i < N; i++)
        shmemx_release(blocks[i]);
    freed += shmemx_reclaim();
    CHECK(freed == N * 1000, 0, "%zu bytes are freed in all", freed);
    CHECK(used() == before, 0, "%zu bytes are in use, not %zu", used(), before);
    CHECK(shmemx_reclaim() == 0, 0, "there was something to free");
}

/* Each kind of allocation makes room, but for the one that does not wait for other PEs. */
static void room_is_made(void) {
    size_t half = room() / 2 + 4096;
    for (int kind = 0; kind < 6; kind++) {
        shmemx_release(check_malloc(half));
        void *small = kind == 4 ? check_malloc(100) : NULL, *block = NULL;
        switch (kind) {
        case 0: block = shmem_malloc(half); break;
        case 1: block = shmem_calloc(half / 8, 8); break;
        case 2: block = shmem_align(64, half); break;
        case 3: block = shmem_malloc_with_hints(half, SHMEM_MALLOC_ATOMICS_REMOTE); break;
        case 4: block = shmem_realloc(small, half); break;
        case 5: block = shmem_malloc_with_hints(half, SHMEMX_MALLOC_NO_BARRIER); break;
        }
        if (kind == 5) {
            CHECK(block == NULL, 0, "an allocation without a barrier has waited for other PEs");
            CHECK(shmemx_reclaim() == half, 0, "the block of the last kind");
        } else {
            CHECK(block != NULL, 0, "kind %d finds no room", kind);
            shmem_free(block);
        }
    }

    /* PE 0 keeps its block. */
    void *kept = check_malloc(half);
    if (check_me != 0)
        shmemx_release(kept);
    CHECK(shmem_malloc(half) == NULL, 0, "a block that one PE keeps is freed");
    if (check_me == 0)
        shmemx_release(kept);
    void *block = shmem_malloc(half);
    CHECK(block != NULL, 0, "no room after all have released");
    shmem_free(block);
}

/* A collective that does not block may begin after the release of its arrays, which waits for it; the program still has the
 * request. */
static void before_a_request_is_complete(void) {
    for (int round = 0; round < 20; round++) {
        long *sums = check_malloc(2 * sizeof(long));
        shmemx_req_t request = SHMEMX_REQ_NULL;
        sums[0] = check_me + round;
        shmem_barrier_all();
        shmemx_long_sum_reduce_nb(SHMEM_TEAM_WORLD, sums + 1, sums, 1, &request);
        shmemx_release(sums);
        if (round % 2)
            shmemx_req_wait(&request);
        CHECK(shmemx_reclaim() == 2 * sizeof(long), 0, "round %d: the block is not freed", round);
        if (round % 2 == 0)
            shmemx_req_wait(&request);
    }
}

/* Others use the copy of a PE that has released it, and what is on its way does not come to the next block. */
static void in_use_by_others(void) {
    enum { LONGS = 20000 };
    static long values[LONGS], back[LONGS];
    for (int i = 0; i < LONGS; i++)
        values[i] = check_me * 1000000L + i + 1;
    long *block = check_malloc(sizeof values);
    if (check_me == 0)
        shmemx_release(block);
    shmem_barrier_all();
    if (check_me != 0) {
        long *part = block + (size_t)check_me * 100;
        shmem_long_put(part, values, 100, 0);
        shmem_quiet();
        shmem_long_get(back, part, 100, 0);
        CHECK(memcmp(back, values, 100 * sizeof(long)) == 0, 0, "the copy of PE 0 is lost");
        shmemx_release(block);
    }
    CHECK(shmemx_reclaim() == sizeof values, 0, "the block is not freed");

    shmem_ctx_t ctx;
    int has_ctx = shmem_ctx_create(0, &ctx) == 0;
    for (int round = 0; round < 5; round++) {
        block = check_malloc(sizeof values);
        for (int i = 0; i < LONGS; i += 1000)
            shmem_ctx_long_put_nbi(has_ctx ? ctx : SHMEM_CTX_DEFAULT, block + i, values + i, 1000, right);
        shmemx_release(block);
        CHECK(shmemx_reclaim() == sizeof values, 0, "round %d: the block is not freed", round);
        long *fresh = (long *)shmem_calloc(LONGS, sizeof(long));
        for (int i = 0; i < LONGS; i++)
            CHECK(fresh[i] == 0, 0, "round %d: a put to the block before comes to place %d", round, i);
        shmem_free(fresh);
    }
    if (has_ctx)
        shmem_ctx_destroy(ctx);
}

static void *shared[THREADS][N];

static void *release_all(void *argument) {
    void **blocks = (void **)argument;
    for (int i = 0; i < N; i++)
        shmemx_release(blocks[i]);
    return NULL;
}

static void on_any_thread(void) {
    pthread_t threads[THREADS];
    for (int t = 0; t < THREADS; t++) {
        for (int i = 0; i < N; i++)
            shared[t][i] = check_malloc(64);
    }
    for (int t = 0; t < THREADS; t++) {
        shuffle(shared[t], N);
        pthread_create(&threads[t], NULL, release_all, shared[t]);
    }
    size_t freed = 0;
    for (int i = 0; i < 10; i++)
        freed += shmemx_reclaim();
    for (int t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    freed += shmemx_reclaim();
    CHECK(freed == THREADS * N * 64, 0, "%zu bytes of %d threads are freed", freed, THREADS);
}

static void many(int n) {
    void **blocks = (void **)malloc((size_t)n * sizeof *blocks);
    for (int i = 0; i < n; i++) {
        blocks[i] = shmem_malloc_with_hints(16, SHMEMX_MALLOC_NO_BARRIER);
        CHECK(blocks[i] != NULL, 0, "no room for block %d", i);
    }
    shmem_barrier_all();
    shuffle(blocks, n);
    for (int i = 0; i < n / 2; i++)
        shmemx_release(blocks[i]);
    size_t freed = shmemx_reclaim();
    for (int i = n / 2; i < n; i++)
        shmemx_release(blocks[i]);
    CHECK(freed + shmemx_reclaim() == (size_t)n * 16, 0, "some of %d blocks are lost", n);
    free(blocks);
}

int main(int argc, char **argv) {
    int provided;
    shmemx_release(&provided);
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    check_start();
    srand((unsigned)check_me + 1);
    right = (check_me + 1) % check_n;
    shmemx_release(NULL);
    in_any_order();
    room_is_made();
    before_a_request_is_complete();
    in_use_by_others();
    on_any_thread();
    many(argc > 1 ? atoi(argv[1]) : MANY);

    /* A child of fork has the objects of its parent, and may destroy them. */
    void *block = check_malloc(1000);
    pid_t child = fork();
    if (child == 0) {
        shmemx_release(block);
        shmemx_release(block);
        _exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(status == 0, 0, "a release in a child ends it with status %d", status);
    CHECK(shmemx_reclaim() == 0, 0, "a child has released for its parent");

    /* What is released outlives neither the library, nor ends it. */
    shmemx_release(block);
    int failed = check_agree();
    shmem_finalize();
    shmemx_release(block);
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    CHECK(used() == 0 && shmemx_reclaim() == 0, 0, "something is left of the first round");
    in_any_order();
    failed += check_agree();
    shmem_finalize();
    return check_verdict(failed);
}
