/* Nested and repeated initialization, query_initialized, thread levels, and objects that live until
 * the last finalize. */
#include "check.h"

static int initialized(void) {
    int answer = -1;
    shmem_query_initialized(&answer);
    return answer;
}

/* Operations that need an initialized library: heap, communication, a team. */
static void works(int point, const char *when) {
    int right = (shmem_my_pe() + 1) % shmem_n_pes(), left = (shmem_my_pe() + shmem_n_pes() - 1) % shmem_n_pes();
    int *word = shmem_malloc(sizeof *word);
    CHECK(word != NULL, point, "%s: no memory", when);
    *word = -1;
    shmem_barrier_all();
    shmem_int_p(word, shmem_my_pe(), right);
    shmem_barrier_all();
    CHECK(*word == left, point, "%s: what came is %d", when, *word);
    shmem_team_t team;
    CHECK(shmem_team_split_strided(SHMEM_TEAM_WORLD, shmem_n_pes() - 1, -1, shmem_n_pes(), NULL, 0, &team) == 0, point,
          "%s: no team", when);
    CHECK(shmem_team_sync(team) == 0, point, "%s: no sync", when);
    shmem_team_destroy(team);
    shmem_free(word);
}

int main(void) {
    CHECK(initialized() == 0, 73, "initialized before init");
    CHECK(SHMEM_THREAD_SINGLE < SHMEM_THREAD_FUNNELED && SHMEM_THREAD_FUNNELED < SHMEM_THREAD_SERIALIZED &&
              SHMEM_THREAD_SERIALIZED < SHMEM_THREAD_MULTIPLE, 76, "thread levels do not increase");
    shmem_init();
    check_start();
    CHECK(initialized() != 0, 73, "not initialized after init");
    works(72, "after the first init");

    /* Initializations are counted; only the last finalize closes the library. */
    long *kept = shmem_malloc(sizeof *kept);
    shmem_team_t team;
    shmem_ctx_t ctx;
    *kept = 4711;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, check_n, NULL, 0, &team);
    CHECK(shmem_ctx_create(0, &ctx) == 0, 20, "no context can be had");
    int first = -1, level = -1, again = -1;
    shmem_query_thread(&first);
    CHECK(first >= SHMEM_THREAD_SINGLE && first <= SHMEM_THREAD_MULTIPLE, 76, "thread level %d", first);
    CHECK(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &again) == 0, 72, "a second init failed");
    shmem_query_thread(&level);
    CHECK(level == first && again == first, 76, "a second init changed the level from %d to %d (provided: %d)", first, level, again);
    shmem_init();
    for (int i = 0; i < 2; i++) {
        long value = 10 * i + check_me;
        shmem_long_put_nbi(kept, &value, 1, (check_me + 1) % check_n);
        shmem_finalize();
        CHECK(*kept == 10 * i + (check_me + check_n - 1) % check_n, 72, "finalize %d is no barrier_all", i);
        CHECK(initialized() != 0, 73, "finalize %d of 3 ended it", i + 1);
        shmem_barrier_all();
        CHECK(shmem_team_sync(team) == 0 && shmem_team_n_pes(team) == check_n, 72, "finalize %d took a team", i);
        CHECK(shmem_ctx_long_g(ctx, kept, check_me) == *kept, 72, "finalize %d took a context", i);
        shmem_barrier_all();
        works(72, "after a finalize that is not the last");
    }
    /* The last finalize frees the block, the team and the context. */
    shmem_finalize();
    CHECK(initialized() == 0, 73, "still initialized after the last finalize");

    /* Again from the start, several times. */
    for (int i = 0; i < 5; i++) {
        int provided = -1;
        if (i % 2)
            shmem_init();
        else
            CHECK(shmem_init_thread(SHMEM_THREAD_SINGLE, &provided) == 0 && provided >= SHMEM_THREAD_SINGLE, 76, "init %d", i);
        CHECK(initialized() != 0, 73, "not initialized after init %d", i);
        CHECK(shmem_my_pe() == check_me && shmem_n_pes() == check_n, 72, "init %d: PE %d of %d", i, shmem_my_pe(), shmem_n_pes());
        works(72, "after another init");
        if (i < 4)
            shmem_finalize();
    }
    return check_end();
}
