/* Names and versions, accessibility and pointers, profiling names, and all headers together
 * (point 80). */
#include "check.h"
#include <mpp/shmem.h>
#include <mpp/shmemx.h>
#include <pshmem.h>
#include <shmemx.h>
#include <sys/auxv.h>

static void versions(void) {
    int major = -1, minor = -1;
    char name[SHMEM_MAX_NAME_LEN + 8];
    memset(name, 'x', sizeof name);
    shmem_info_get_version(&major, &minor);
    CHECK(major == 1 && minor == 6, 79, "version %d.%d", major, minor);
    CHECK(SHMEM_MAJOR_VERSION == major && SHMEM_MINOR_VERSION == minor, 79, "the constants say otherwise");
    CHECK(_SHMEM_MAJOR_VERSION == major && _SHMEM_MINOR_VERSION == minor, 79, "the old constants say otherwise");
    CHECK(_SHMEM_MAX_NAME_LEN == SHMEM_MAX_NAME_LEN && SHMEM_MAX_NAME_LEN >= 2, 79, "SHMEM_MAX_NAME_LEN");
    shmem_info_get_name(name);
    CHECK(strnlen(name, SHMEM_MAX_NAME_LEN) < SHMEM_MAX_NAME_LEN, 79, "no null within SHMEM_MAX_NAME_LEN");
    CHECK(strncmp(name, SHMEM_VENDOR_STRING, SHMEM_MAX_NAME_LEN - 1) == 0, 79, "the name is %s", name);
    CHECK(name[SHMEM_MAX_NAME_LEN] == 'x', 79, "info_get_name wrote beyond SHMEM_MAX_NAME_LEN");
}

static void accessible(void) {
    long *block = check_malloc(4096 * sizeof *block), on_stack = 0;
    for (int pe = 0; pe < check_n; pe++) {
        CHECK(shmem_pe_accessible(pe) == 1, 34, "PE %d is not accessible", pe);
        CHECK(shmem_addr_accessible(block, pe) == 1, 34, "the heap of PE %d is not accessible", pe);
        CHECK(shmem_addr_accessible(&block[4095], pe) == 1, 34, "the end of a block of PE %d is not accessible", pe);
        CHECK(shmem_addr_accessible(&on_stack, pe) == 0, 34, "the stack counts as symmetric");
    }
    CHECK(shmem_pe_accessible(check_n) == 0 && shmem_pe_accessible(-1) == 0, 34, "a PE that is not is accessible");
    for (int pe = 0; pe < check_n; pe++)
        block[pe] = -1;
    shmem_barrier_all();
    int shared = shmem_team_n_pes(SHMEM_TEAM_SHARED), pointers = 0;
    CHECK(shmem_ptr(block, check_me) == block, 33, "the pointer to myself is another");
    CHECK(shmem_team_ptr(SHMEM_TEAM_WORLD, block, check_me) == block, 33, "the pointer to myself by WORLD is another");
    CHECK(shmem_team_ptr(SHMEM_TEAM_INVALID, block, 0) == NULL, 33, "a pointer by INVALID");
    for (int pe = 0; pe < check_n; pe++) {
        long *theirs = shmem_ptr(block, pe);
        if (!theirs)
            continue;
        pointers++;
        theirs[check_me] = 100 * check_me + pe;
        CHECK((long *)shmem_ptr(&block[7], pe) == theirs + 7, 33, "pointers into one block differ");
    }
    CHECK(pointers >= shared, 17, "%d pointers, %d PEs in SHARED", pointers, shared);
    shmem_barrier_all();
    for (int pe = 0; pe < check_n; pe++)
        CHECK(block[pe] == (shmem_ptr(block, pe) ? 100 * pe + check_me : -1), 33, "PE %d stored %ld", pe, block[pe]);
    /* Not symmetric: the stack, the C heap, a global of a shared object (where the program is linked with one). */
    void *plain = malloc(8);
    /* The kernel loads no dynamic linker for a static program, in which the C library is no shared object. */
    const int is_static = getauxval(AT_BASE) == 0;
    for (int pe = 0; pe < check_n; pe++) {
        CHECK(shmem_ptr(&on_stack, pe) == NULL && shmem_ptr(plain, pe) == NULL, 33, "a pointer to PE %d's stack or C heap", pe);
        CHECK(is_static || shmem_ptr(stderr, pe) == NULL, 33, "a pointer to a global of the C library on PE %d", pe);
        CHECK(is_static || shmem_addr_accessible(stderr, pe) == 0, 34, "a global of the C library counts as symmetric");
        int is_shared = shmem_team_translate_pe(SHMEM_TEAM_WORLD, pe, SHMEM_TEAM_SHARED) >= 0;
        CHECK(!is_shared || shmem_ptr(block, pe), 33, "no pointer to PE %d of SHARED", pe);
    }
    free(plain);
    shmem_team_t reversed;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, check_n - 1, -1, check_n, NULL, 0, &reversed);
    for (int pe = 0; pe < check_n; pe++)
        CHECK(shmem_team_ptr(reversed, block, check_n - 1 - pe) == shmem_ptr(block, pe), 33, "team_ptr counts otherwise");
    shmem_team_destroy(reversed);
    shmem_free(block);
}

/* The routines on caches, which the standard has removed, have no effect. */
static void caches(void) {
    static long word = 5;
    shmem_clear_cache_inv();
    shmem_set_cache_inv();
    shmem_udcflush();
    shmem_clear_cache_line_inv(&word);
    shmem_set_cache_line_inv(&word);
    shmem_udcflush_line(&word);
    pshmem_udcflush_line(NULL);
    CHECK(word == 5, 0, "a routine on caches made %ld of a word", word);
}

/* Each shmem_x has a profiling name pshmem_x; shmem_pcontrol accepts any arguments and does
 * nothing. */
static void profiling(void) {
    shmem_pcontrol(0);
    shmem_pcontrol(1);
    shmem_pcontrol(2, "any", 4711, 1.5);
    pshmem_pcontrol(-1, NULL);
    long *word = pshmem_malloc(sizeof *word);
    *word = -1;
    pshmem_barrier_all();
    pshmem_long_p(word, check_me, (check_me + 1) % check_n);
    pshmem_quiet();
    pshmem_barrier_all();
    CHECK(*word == (check_me + check_n - 1) % check_n, 81, "what pshmem_long_p put is %ld", *word);
    CHECK(pshmem_my_pe() == check_me && pshmem_n_pes() == check_n, 81, "pshmem_my_pe is %d", pshmem_my_pe());
    CHECK(pshmem_team_my_pe(SHMEM_TEAM_WORLD) == check_me, 81, "pshmem_team_my_pe");
    pshmem_free(word);
}

int main(void) {
    check_begin();
    versions();
    accessible();
    profiling();
    caches();
    return check_end();
}
