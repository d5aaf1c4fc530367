/* The misuse that argv[1] names, by PE 1 while the others wait in a barrier. A misuse of a
 * collective is by all PEs. */
#include <pthread.h>
#include <sched.h>
#include <shmemx.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int static_word = 5, static_source = 6;
static const int constant = 1;
/* In a program at any address, it is relocated. */
static const int *const relocated[] = {&constant, &static_word};
static long static_sync[SHMEM_SYNC_SIZE];
static int static_work[SHMEM_REDUCE_MIN_WRKDATA_SIZE];

static int is(const char *how, const char *name) { return strcmp(how, name) == 0; }

static void sync_destroyed_team(void) {
    shmem_team_t team;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, shmem_n_pes(), NULL, 0, &team);
    shmem_team_destroy(team);
    shmem_team_sync(team);
}

static void destroyed_team_ctx(int *heap) {
    shmem_team_t pair;
    shmem_ctx_t ctx = SHMEM_CTX_INVALID;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 2, NULL, 0, &pair);
    if (shmem_my_pe() < 2) {
        shmem_team_create_ctx(pair, 0, &ctx);
        shmem_team_destroy(pair);
    }
    if (shmem_my_pe() == 1)
        shmem_ctx_int_p(ctx, heap, 1, 0);
}

/* PE 1 finalizes while PE 2 waits for the lock that PE 1 holds. The word of the lock shows that PE
 * 2 waits. */
static void finalize_holding(long *lock) {
    if (shmem_my_pe() == 1)
        shmem_set_lock(lock);
    shmem_barrier_all();
    if (shmem_my_pe() == 2)
        shmem_set_lock(lock);
    while (shmem_my_pe() == 1 && (*(volatile long *)lock >> 32 & 0x7fffffff) == 0)
        sched_yield();
    if (shmem_my_pe() == 1)
        shmem_finalize();
}

/* PE 0 in another collective than the others, which are in one on an active set. */
static int on_sets(const char *how, int *heap) {
    int me = shmem_my_pe(), n = shmem_n_pes();
    if (is(how, "sets_differ"))
        shmem_barrier(0, me == 2, me == 2 ? 2 : n, static_sync);
    else if (is(how, "broadcast_and_barrier") && me == 2)
        shmem_barrier(0, 1, 2, static_sync);
    else if (is(how, "broadcast_and_barrier"))
        shmem_broadcast32(heap, heap + 2, 1, 0, 0, 0, n, static_sync);
    else if (strncmp(how, "barrier_all_and_", 16) != 0)
        return 0;
    else if (me == 0)
        shmem_barrier_all();
    else if (is(how, "barrier_all_and_broadcast"))
        shmem_broadcast32(heap, heap + 2, 1, 1, 0, 0, n, static_sync);
    else if (is(how, "barrier_all_and_collect"))
        shmem_collect32(heap, heap + n, 1, 0, 0, n, static_sync);
    else if (is(how, "barrier_all_and_to_all"))
        shmem_int_sum_to_all(heap, heap + 2, 1, 0, 0, n, static_work, static_sync);
    else if (me == 1) /* barrier_all_and_pair */
        shmem_broadcast32(heap, heap + 2, 1, 0, 1, 0, n - 1, static_sync);
    else
        shmem_barrier_all();
    return 1;
}

/* Collectives around a root, and of blocks for each PE. Called by all PEs; returns false for other
 * misuses. */
static int of_blocks(const char *how, int *heap) {
    int me = shmem_my_pe();
    shmem_team_t world = SHMEM_TEAM_WORLD;
    if (is(how, "reduce_to_root_n"))
        shmemx_int_sum_reduce_to(world, heap, heap + 1, 1, shmem_n_pes());
    else if (is(how, "gather_root_negative"))
        shmemx_gathermem(world, heap, heap + 3, 1, -1);
    else if (is(how, "reduce_scatter_huge"))
        shmemx_int_sum_reduce_scatter(world, heap, heap, SIZE_MAX / 8);
    else if (is(how, "gather_huge"))
        shmemx_int_gather(world, heap, heap, SIZE_MAX / 8, 0);
    else if (is(how, "gather_roots_differ"))
        shmemx_int_gather(world, heap, heap + 3, 1, me == 2);
    else if (is(how, "reduce_scatter_overlaps"))
        shmemx_int_sum_reduce_scatter(world, heap, heap, 1);
    else if (is(how, "gather_overlaps"))
        shmemx_int_gather(world, heap, heap, 1, 0);
    else if (is(how, "scatter_overlaps"))
        shmemx_int_scatter(world, heap + 2, heap, 1, 0);
    else
        return 0;
    return 1;
}

/* An all-to-all of blocks with sizes of their own, with a mistake in its arrays. Called by all PEs;
 * returns false for other misuses. */
static int of_unequal_blocks(const char *how, int *heap) {
    int me = shmem_my_pe(), *dest = heap, *source = heap + 3;
    size_t offsets[] = {0, 4, 8}, sizes[] = {4, 4, 4}, starts[] = {0, 0, 0}, *places = offsets;
    shmem_team_t world = SHMEM_TEAM_WORLD;
    if (is(how, "places_overlap"))
        offsets[2] = 7;
    else if (is(how, "blocks_in_place"))
        source = heap;
    else if (is(how, "blocks_to_other_array"))
        dest += me == 1;
    else if (is(how, "block_beyond"))
        offsets[0] = me == 2 ? 16 : 0;
    else if (is(how, "block_nowhere"))
        offsets[0] = me == 2 ? (size_t)1 << 40 : 0;
    else if (is(how, "places_null"))
        places = NULL;
    else if (is(how, "sizes_null")) {
        shmemx_alltoallv(dest, offsets, NULL, source, starts, NULL, 0, 0, shmem_n_pes(), static_sync);
        return 1;
    } else
        return 0;
    shmemx_team_alltoallvmem(world, dest, places, NULL, source, starts, sizes);
    return 1;
}

/* Misuses that SHMEM_CHECK finds. Called by all PEs; returns false for other misuses. */
static int checked(const char *how, int *heap) {
    int me = shmem_my_pe();
    if (is(how, "barrier_and_sync")) {
        if (me == 1)
            shmem_sync_all();
        else
            shmem_barrier_all();
    } else if (is(how, "roots_differ"))
        shmem_int_broadcast(SHMEM_TEAM_WORLD, heap, heap + 2, 1, me == 2);
    else if (is(how, "lengths_differ"))
        shmem_int_sum_reduce(SHMEM_TEAM_WORLD, heap, heap + 2, 1 + (me == 1));
    else if (is(how, "sizes_differ"))
        shmem_malloc(me == 1 ? 64 : 128);
    else if (is(how, "free_and_malloc") && me == 1)
        shmem_free(heap);
    else if (is(how, "free_and_malloc"))
        shmem_malloc(64);
    else if (is(how, "split_and_sync")) {
        shmem_team_t team;
        if (me == 0)
            shmem_team_sync(SHMEM_TEAM_WORLD);
        else
            shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 2, NULL, 0, &team);
    } else if (is(how, "teams_differ") || is(how, "split_teams_differ")) {
        shmem_team_t pair, all, beside[2];
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 2, NULL, 0, &pair);
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, shmem_n_pes(), NULL, 0, &all);
        shmem_team_split_2d(all, 2, NULL, 0, &beside[0], NULL, 0, &beside[1]);
        if (is(how, "teams_differ"))
            shmem_team_sync(me == 0 ? SHMEM_TEAM_WORLD : me == 1 ? SHMEM_TEAM_SHARED : all);
        else
            shmem_team_sync(me == 0 ? pair : me == 1 ? beside[0] : all);
    } else if (is(how, "realloc_static"))
        shmem_realloc(static_work, 64);
    else if (is(how, "free_stack"))
        shmem_free(&me);
    else if (is(how, "free_within"))
        shmem_free(heap + 2);
    else if (is(how, "free_again"))
        shmem_free(heap), shmem_free(heap);
    else if (is(how, "contexts_negative")) {
        shmem_team_t team;
        shmem_team_config_t config = {.num_contexts = -5};
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 1, &config, SHMEM_TEAM_NUM_CONTEXTS, &team);
    } else if (is(how, "put_overlaps"))
        shmem_int_put(heap + 1, heap, 2, shmem_my_pe());
    else if (is(how, "get_overlaps"))
        shmem_int_iget(heap, heap + 1, 2, 1, 2, shmem_my_pe());
    else if (is(how, "reduce_overlaps"))
        shmem_int_sum_reduce(SHMEM_TEAM_WORLD, heap, heap + 1, 2);
    else if (is(how, "broadcast_overlaps"))
        shmem_broadcast32(heap, heap + 1, 2, 0, 0, 0, shmem_n_pes(), static_sync);
    else if (is(how, "alltoall_overlaps"))
        shmem_int_alltoall(SHMEM_TEAM_WORLD, heap + 1, heap, 1);
    else
        return on_sets(how, heap);
    return 1;
}

static int (*volatile differ)(void) = shmem_my_pe;

/* Misuses of Cray's routines, in the same way. */
static int of_cray(const char *how, int *heap) {
    shmem_team_t team = SHMEM_TEAM_NULL, other;
    int n = shmem_n_pes();
    size_t *table = (size_t *)(void *)heap, got;
    if (is(how, "strided_beyond_parent"))
        shmemx_team_split_strided(SHMEM_TEAM_WORLD, 1, 1, n, &team);
    else if (is(how, "strided_stride_negative"))
        shmemx_team_split_strided(SHMEM_TEAM_WORLD, n - 1, -1, n, &team);
    else if (is(how, "strided_stride_0"))
        shmemx_team_split_strided(SHMEM_TEAM_WORLD, 0, 0, n, &team);
    else if (is(how, "strided_size_0"))
        shmemx_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 0, &team);
    else if (is(how, "strided_parent_null"))
        shmemx_team_split_strided(SHMEM_TEAM_NULL, 0, 1, 1, &team);
    else if (is(how, "strided_parent_gone")) {
        shmemx_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n, &team);
        other = team;
        shmemx_team_destroy(&team);
        shmemx_team_split_strided(other, 0, 1, 1, &team);
    } else if (is(how, "strided_differs"))
        shmemx_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, differ() == 1 ? n - 1 : n, &team);
    else if (is(how, "grid_range_negative"))
        shmemx_team_split_2d(SHMEM_TEAM_WORLD, 1, -3, &team, &other);
    else if (is(how, "grid_range_differs"))
        shmemx_team_split_2d(SHMEM_TEAM_WORLD, 2, 1 + differ(), &team, &other);
    else if (is(how, "color_negative"))
        shmemx_team_split(SHMEM_TEAM_WORLD, -2, 0, &team);
    else if (is(how, "destroy_null"))
        shmemx_team_destroy(&team);
    else if (is(how, "destroy_node"))
        team = SHMEM_TEAM_NODE, shmemx_team_destroy(&team);
    else if (is(how, "packed_target_short"))
        table[0] = 0, table[1] = 8,
        shmemx_alltoallv_packed(heap, 7, &got, heap, &table[0], &table[1], differ(), 0, 1, static_sync);
    else
        return 0;
    return 1;
}

static void free_damaged(void) {
    char *one = shmem_malloc(100), *other = shmem_malloc(100);
    for (int i = 0; i < 110; i++)
        ((volatile char *)one)[i] = 1;
    shmem_free(other);
    shmem_free(one);
}

static int of_releases(const char *how, int *heap) {
    if (is(how, "release_twice"))
        shmemx_release(heap), shmemx_release(heap);
    else if (is(how, "release_inside"))
        shmemx_release(heap + 1);
    else if (is(how, "release_foreign"))
        shmemx_release(&static_word);
    else if (is(how, "release_of_peer"))
        shmemx_release(shmem_ptr(heap, (shmem_my_pe() + 1) % shmem_n_pes()));
    else if (is(how, "free_released"))
        shmemx_release(heap), shmem_free(heap);
    else if (is(how, "realloc_released"))
        shmemx_release(heap), shmem_realloc(heap, 5000);
    else if (is(how, "put_released"))
        shmemx_release(heap), shmem_int_p(heap + 1, 1, 0);
    else if (is(how, "use_reclaimed"))
        shmemx_release(heap), shmemx_reclaim(), shmem_int_p(heap + 1, 1, 0);
    else if (is(how, "reclaim_and_malloc") && shmem_my_pe() == 1)
        shmemx_reclaim();
    else if (is(how, "reclaim_and_malloc"))
        shmem_malloc(64);
    else if (is(how, "limit_is_no_number"))
        shmemx_int_wait_until_timed(heap, SHMEM_CMP_EQ, *heap, strtod("nan", NULL));
    else
        return 0;
    return 1;
}

/* Misuses by all PEs. Returns false if only one PE makes the misuse. */
static int collective(const char *how, int *heap) {
    int on_stack = 5;
    if (is(how, "broadcast_stack_dest"))
        shmem_int_broadcast(SHMEM_TEAM_WORLD, &on_stack, heap, 1, 0);
    else if (is(how, "reduce_stack_source"))
        shmem_int_max_reduce(SHMEM_TEAM_WORLD, heap, &on_stack, 1);
    else if (is(how, "free_twice"))
        shmem_free(heap), shmem_free(heap);
    else if (is(how, "free_damaged"))
        free_damaged();
    else if (is(how, "free_foreign"))
        shmem_free(&static_word);
    else if (is(how, "free_inside"))
        shmem_free(heap + 1);
    else if (is(how, "reduce_invalid_team"))
        shmem_int_max_reduce(SHMEM_TEAM_INVALID, heap, heap + 1, 1);
    else if (is(how, "sync_destroyed_team"))
        sync_destroyed_team();
    else if (is(how, "destroy_world"))
        shmem_team_destroy(SHMEM_TEAM_WORLD);
    else if (is(how, "broadcast_root_n"))
        shmem_int_broadcast(SHMEM_TEAM_WORLD, heap, heap + 1, 1, shmem_n_pes());
    else if (is(how, "barrier_beyond_n"))
        shmem_barrier(1, 1, shmem_n_pes(), static_sync);
    else if (is(how, "destroyed_team_ctx"))
        destroyed_team_ctx(heap);
    else if (is(how, "finalize_holding"))
        finalize_holding((long *)heap);
    else if (checked(how, heap) || of_blocks(how, heap) || of_unequal_blocks(how, heap) || of_releases(how, heap))
        return 1;
    else
        return of_cray(how, heap);
    return 1;
}

/* A context of the first two PEs has no PE 2, though the job has one. */
static void put_beyond_team(int *heap) {
    shmem_team_t pair;
    shmem_ctx_t ctx;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 2, NULL, 0, &pair);
    if (shmem_my_pe() == 1 && shmem_team_create_ctx(pair, 0, &ctx) == 0)
        shmem_ctx_int_p(ctx, heap, 1, 2);
}

static int *shared_heap;
static shmem_ctx_t shared_ctx;

static void *use_ctx(void *unused) {
    (void)unused;
    shmem_ctx_int_p(shared_ctx, shared_heap, 1, 0);
    return NULL;
}

static void *barriers_here(void *unused) {
    (void)unused;
    shmem_barrier_all();
    shmem_barrier_all();
    return NULL;
}

static void *access_here(void *unused) {
    (void)unused;
    int was = shmem_int_g(shared_heap, 0);
    shmem_int_p(shared_heap, was, 0);
    shmem_int_atomic_inc(&static_word, 0);
    return NULL;
}

static void *finalize_here(void *unused) {
    (void)unused;
    shmem_finalize();
    return NULL;
}

static void elsewhere(void *(*body)(void *)) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, NULL) == 0)
        pthread_join(thread, NULL);
}

/* Misuses by one PE of locks, contexts, threads and unaligned words. Returns false for other
 * misuses. */
static int alone_too(const char *how, int *heap) {
    long *lock = (long *)heap;
    int *odd = (int *)((char *)heap + 2);
    if (is(how, "lock_twice"))
        shmem_set_lock(lock), shmem_set_lock(lock);
    else if (is(how, "clear_free_lock"))
        shmem_clear_lock(lock);
    else if (is(how, "clear_twice"))
        shmem_set_lock(lock), shmem_clear_lock(lock), shmem_clear_lock(lock);
    else if (is(how, "lock_unaligned"))
        shmem_set_lock((long *)odd);
    else if (is(how, "amo_unaligned"))
        shmem_int_atomic_add(odd, 1, 0);
    else if (is(how, "fetch_unaligned"))
        shmem_int_atomic_fetch(odd, 2);
    else if (is(how, "signal_unaligned"))
        shmem_int_put_signal(heap, heap, 1, (uint64_t *)(heap + 1), 1, SHMEM_SIGNAL_SET, 0);
    else if (is(how, "wait_unaligned"))
        shmem_int_wait_until(odd, SHMEM_CMP_NE, 4711);
    else if (is(how, "invalid_ctx"))
        shmem_ctx_int_p((shmem_ctx_t)0x7f1234567810, heap, 1, 0);
    else if (is(how, "quiet_invalid_ctx"))
        shmem_ctx_quiet((shmem_ctx_t)&static_word);
    else if (is(how, "destroy_ctx_twice"))
        shmem_ctx_create(0, &shared_ctx), shmem_ctx_destroy(shared_ctx), shmem_ctx_destroy(shared_ctx);
    else if (is(how, "destroyed_ctx")) {
        shmem_ctx_create(0, &shared_ctx);
        shmem_ctx_destroy(shared_ctx);
        shmem_ctx_int_p(shared_ctx, heap, 1, 0);
    } else if (is(how, "ctx_of_another_thread")) {
        shared_heap = heap;
        shmem_ctx_create(SHMEM_CTX_PRIVATE, &shared_ctx);
        elsewhere(use_ctx);
    } else if (is(how, "finalize_by_another_thread"))
        elsewhere(finalize_here);
    else if (is(how, "wait_on_the_stack")) {
        int on_stack = 0;
        shmem_int_wait_until(&on_stack, SHMEM_CMP_NE, 0);
    } else
        return 0;
    return 1;
}

enum { PAGE = 4096, LONG = 100000, VERY_LONG = 48 << 20 };

/* Local memory that cannot be accessed, either already at the call or only when the library reaches
 * it; `block` has VERY_LONG bytes. */
static void inaccessible(const char *how, char *block) {
    char *nowhere = (char *)0x1000;
    char *local = mmap(NULL, VERY_LONG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (is(how, "local_put"))
        shmem_putmem(block, nowhere, LONG, 0);
    else if (is(how, "local_put_nbi")) {
        shmem_putmem_nbi(block, nowhere, LONG, 0);
        shmem_quiet();
    } else if (is(how, "local_put_signal"))
        shmem_putmem_signal(block, nowhere, LONG, (uint64_t *)(block + LONG / 8 * 8 + 8), 1, SHMEM_SIGNAL_SET, 0);
    else if (is(how, "local_put_hole")) {
        mprotect(local + LONG / 2 / PAGE * PAGE, PAGE, PROT_NONE);
        shmem_putmem(block, local, LONG, 0);
    } else if (is(how, "local_put_nbi_hole")) {
        mprotect(local + LONG / 2 / PAGE * PAGE, PAGE, PROT_NONE);
        shmem_putmem_nbi(block, local, LONG, 0);
        shmem_quiet();
    } else if (is(how, "local_put_short"))
        shmem_putmem(block, nowhere, 8, 0);
    else if (is(how, "local_get_short"))
        shmem_getmem(nowhere, block, 8, 0);
    else if (is(how, "local_put_later")) {
        /* More than the kernel accepts at once, so that the rest is sent while this PE waits. */
        shmem_putmem_nbi(block, local, VERY_LONG, 0);
        mprotect(local, VERY_LONG, PROT_NONE);
    } else if (is(how, "local_get"))
        shmem_getmem(nowhere, block, LONG, 0);
    else if (is(how, "local_get_nbi")) {
        shmem_getmem_nbi(nowhere, block, LONG, 0);
        shmem_quiet();
    } else if (is(how, "local_get_constant")) {
        mprotect(local, VERY_LONG, PROT_READ);
        shmem_getmem(local + 1, block, LONG, 0);
    } else if (is(how, "local_get_alone")) {
        /* A service thread stores the data of the get, since this thread does not call the library
         * again. */
        mprotect(local, VERY_LONG, PROT_READ);
        shmem_getmem_nbi(local, block, 8, 0);
        pause();
    } else if (is(how, "local_get_hole")) {
        mprotect(local + LONG / 2 / PAGE * PAGE, PAGE, PROT_NONE);
        shmem_getmem(local, block, LONG, 0);
    }
}

/* Misuses of waits and signals that SHMEM_CHECK finds, in the same way. */
static int alone_checked(const char *how, int *heap) {
    uint64_t on_stack = 0, *words = (uint64_t *)(void *)heap;
    size_t indices[2];
    if (is(how, "wait_null"))
        shmem_int_wait_until_all(NULL, 2, NULL, SHMEM_CMP_EQ, 1);
    else if (is(how, "wait_many"))
        shmem_int_wait_until_all(heap, (size_t)1 << 62, NULL, SHMEM_CMP_EQ, 1);
    else if (is(how, "wait_some_null"))
        shmem_int_wait_until_some(heap, 2, NULL, NULL, SHMEM_CMP_EQ, 0);
    else if (is(how, "test_vector_null"))
        (void)shmem_int_test_some_vector(heap, 2, indices, NULL, SHMEM_CMP_EQ, NULL);
    else if (is(how, "test_on_the_stack"))
        (void)shmem_uint64_test(&on_stack, SHMEM_CMP_EQ, 1);
    else if (is(how, "signal_fetch_stack"))
        (void)shmem_signal_fetch(&on_stack);
    else if (is(how, "signal_in_dest"))
        shmem_int_put_signal(heap, &static_source, 4, words + 1, 1, SHMEM_SIGNAL_SET, 0);
    else
        return 0;
    return 1;
}

static void alone(const char *how, int *heap) {
    if (alone_too(how, heap) || alone_checked(how, heap)) {
        printf("%s had no consequence\n", how);
        return;
    }
    int on_stack = 0, n = shmem_n_pes();
    long lock_on_stack = 0;
    if (is(how, "put_stack_dest"))
        shmem_int_put(&on_stack, heap, 1, 0);
    else if (is(how, "put_library_dest"))
        shmem_putmem(stdin, heap, 1, 0);
    else if (is(how, "put_constant_dest"))
        shmem_int_put((int *)&constant, heap, 1, 0);
    else if (is(how, "put_string_dest"))
        shmem_putmem("in no variable", heap, 1, 0);
    else if (is(how, "put_function_dest"))
        shmem_putmem((void *)sync_destroyed_team, heap, 1, 0);
    else if (is(how, "p_to_pointer_of_other_pe"))
        shmem_int_p(shmem_ptr(heap, 0), 1, 0);
    else if (is(how, "p_to_static_of_other_pe"))
        shmem_int_p(shmem_ptr(&static_word, 2), 1, 0);
    else if (is(how, "p_to_no_memory"))
        shmem_int_p(heap + ((size_t)1 << 42), 1, 0);
    else if (is(how, "put_negative_count"))
        shmem_int_put(heap, &on_stack, (size_t)-1, 0);
    else if (is(how, "get_relocated_source"))
        shmem_getmem(heap, relocated, sizeof relocated, 0);
    else if (is(how, "get_beyond_constants"))
        shmem_getmem(heap, &constant, (size_t)1 << 20, 0);
    else if (is(how, "put_beyond_statics"))
        shmem_putmem(&static_word, heap, (size_t)1 << 30, 0);
    else if (is(how, "get_stack_source"))
        shmem_int_get(heap, &on_stack, 1, 0);
    else if (is(how, "put_beyond_heap"))
        shmem_putmem(heap, &static_source, (size_t)1 << 45, 0);
    else if (is(how, "put_pe_n"))
        shmem_int_put(heap, &on_stack, 1, n);
    else if (is(how, "p_pe_negative"))
        shmem_int_p(heap, 1, -1);
    else if (is(how, "g_pe_n"))
        on_stack = shmem_int_g(heap, n);
    else if (is(how, "amo_pe_n"))
        shmem_int_atomic_inc(heap, n + 7);
    else if (is(how, "amo_stack_dest"))
        shmem_int_atomic_add(&on_stack, 1, 0);
    else if (is(how, "signal_stack"))
        shmem_int_put_signal(heap, &on_stack, 1, (uint64_t *)&lock_on_stack, 1, SHMEM_SIGNAL_SET, 0);
    else if (is(how, "lock_not_zero") || is(how, "test_lock_not_zero")) {
        for (int pe = 0; pe < n; pe++)
            shmem_long_p((long *)heap, 12345, pe);
        shmem_quiet();
        is(how, "lock_not_zero") ? shmem_set_lock((long *)heap) : (void)shmem_test_lock((long *)heap);
    } else if (is(how, "lock_overwritten")) {
        shmem_set_lock((long *)heap);
        for (int pe = 0; pe < n; pe++)
            shmem_long_p((long *)heap, 0, pe);
        shmem_quiet();
        shmem_clear_lock((long *)heap);
    } else if (is(how, "stream_locked")) {
        flockfile(stdout);
        shmem_int_p(heap, 1, -1);
    } else if (is(how, "lock_stack"))
        shmem_set_lock(&lock_on_stack);
    else if (is(how, "p_invalid_ctx"))
        shmem_ctx_int_p(SHMEM_CTX_INVALID, heap, 1, 0);
    else if (is(how, "destroy_default_ctx"))
        shmem_ctx_destroy(SHMEM_CTX_DEFAULT);
    else if (is(how, "wait_unknown_cmp"))
        shmem_int_wait_until(heap, 77, 1);
    else if (is(how, "signal_unknown_op"))
        shmem_int_put_signal(heap, &on_stack, 1, (uint64_t *)(heap + 2), 1, 77, 0);
    else if (is(how, "iput_stride_0"))
        shmem_int_iput(heap, &on_stack, 0, 1, 1, 0);
    else if (is(how, "iput_stride_overflows"))
        shmem_int_iput(heap, heap, (ptrdiff_t)1 << 62, 1, 2, 0);
    else
        fprintf(stderr, "unknown misuse %s\n", how), exit(99);
    printf("%s had no consequence (%d)\n", how, on_stack);
}

/* Misuses that the library tolerates: the job succeeds. */
static int harmless(const char *how) {
    const size_t none[] = {63, 0, 3, 24, SIZE_MAX};
    int good = 1;
    for (size_t i = 0; is(how, "align_63") && i < sizeof none / sizeof *none; i++)
        good &= shmem_align(none[i], 64) == NULL;
    const int me = shmem_my_pe(), n = shmem_n_pes();
    shmem_int_p(&static_word, me, (me + 1) % n);
    shmem_barrier_all();
    good &= static_word == (me + n - 1) % n;
    shmem_finalize();
    if (is(how, "finalize_twice"))
        shmem_finalize();
    if (!good)
        printf("\nFAIL %s on PE %d\n", how, me);
    if (me == 0)
        printf("\nn_pes %d\nPASS\n", n);
    return 0;
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    /* Without a newline, so that the C library buffers it. */
    printf("printed before the misuse; ");
    if (is(how, "before_init")) {
        shmem_barrier_all();
        return 98;
    }
    if (is(how, "put_before_init")) {
        shmem_int_p(&static_word, 1, 0);
        return 98;
    }
    if (is(how, "finalize_before_init"))
        shmem_finalize();
    shmem_init();
    if (is(how, "finalize_before_init") || is(how, "finalize_twice") || is(how, "align_63"))
        return harmless(how);
    if (is(how, "after_finalize")) {
        shmem_finalize();
        printf("%d\n", shmem_n_pes());
        shmem_barrier_all();
        return 98;
    }
    int *heap = shmem_calloc(4, sizeof *heap);
    shmem_barrier_all();
    if (is(how, "p_beyond_team"))
        put_beyond_team(heap);
    else if (strncmp(how, "local_", 6) == 0) {
        char *block = shmem_malloc(VERY_LONG);
        if (shmem_my_pe() == 1)
            inaccessible(how, block);
    } else if (is(how, "barriers_by_another_thread"))
        elsewhere(barriers_here);
    else if (is(how, "accesses_by_other_threads"))
        shared_heap = heap, elsewhere(access_here), elsewhere(access_here), elsewhere(access_here);
    else if (!collective(how, heap) && shmem_my_pe() == 1 % shmem_n_pes())
        alone(how, heap);
    shmem_barrier_all();
    shmem_finalize();
    return 98;
}
