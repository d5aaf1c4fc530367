/* Every constant of the standard is defined and of the right kind; old names have the same
 * values. */
#include "check.h"

/* Compile-time constants can be sizes of arrays and initializers. */
static long sync_array[SHMEM_SYNC_SIZE] = {SHMEM_SYNC_VALUE};
static const int comparisons[] = {SHMEM_CMP_EQ, SHMEM_CMP_NE, SHMEM_CMP_GT, SHMEM_CMP_GE, SHMEM_CMP_LT, SHMEM_CMP_LE};
static const shmem_ctx_t contexts[] = {SHMEM_CTX_DEFAULT, SHMEM_CTX_INVALID};
static const char *const vendors[] = {SHMEM_VENDOR_STRING, _SHMEM_VENDOR_STRING};

_Static_assert(SHMEM_SYNC_SIZE >= SHMEM_BARRIER_SYNC_SIZE && SHMEM_SYNC_SIZE >= SHMEM_BCAST_SYNC_SIZE &&
                   SHMEM_SYNC_SIZE >= SHMEM_COLLECT_SYNC_SIZE && SHMEM_SYNC_SIZE >= SHMEM_REDUCE_SYNC_SIZE &&
                   SHMEM_SYNC_SIZE >= SHMEM_ALLTOALL_SYNC_SIZE && SHMEM_SYNC_SIZE >= SHMEM_ALLTOALLS_SYNC_SIZE,
               "SHMEM_SYNC_SIZE is the largest");
_Static_assert(SHMEM_REDUCE_MIN_WRKDATA_SIZE >= 1, "pWrk has a size");
_Static_assert(_SHMEM_SYNC_VALUE == SHMEM_SYNC_VALUE && _SHMEM_BARRIER_SYNC_SIZE == SHMEM_BARRIER_SYNC_SIZE &&
                   _SHMEM_BCAST_SYNC_SIZE == SHMEM_BCAST_SYNC_SIZE && _SHMEM_COLLECT_SYNC_SIZE == SHMEM_COLLECT_SYNC_SIZE &&
                   _SHMEM_REDUCE_SYNC_SIZE == SHMEM_REDUCE_SYNC_SIZE &&
                   _SHMEM_REDUCE_MIN_WRKDATA_SIZE == SHMEM_REDUCE_MIN_WRKDATA_SIZE,
               "old and new sizes");
_Static_assert(_SHMEM_CMP_EQ == SHMEM_CMP_EQ && _SHMEM_CMP_NE == SHMEM_CMP_NE && _SHMEM_CMP_GT == SHMEM_CMP_GT &&
                   _SHMEM_CMP_GE == SHMEM_CMP_GE && _SHMEM_CMP_LT == SHMEM_CMP_LT && _SHMEM_CMP_LE == SHMEM_CMP_LE,
               "old and new comparisons");
_Static_assert(SHMEM_SIGNAL_SET != SHMEM_SIGNAL_ADD, "signal operators");

int main(void) {
    check_begin();
    const long options[] = {SHMEM_CTX_SERIALIZED, SHMEM_CTX_PRIVATE, SHMEM_CTX_NOSTORE};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < i; k++)
            CHECK(options[i] && !(options[i] & options[k]), 22, "options %d and %d share a bit", i, k);
    CHECK(SHMEM_TEAM_NUM_CONTEXTS != 0 && SHMEM_CTX_SESSION_TOTAL_OPS != 0 && SHMEM_CTX_SESSION_BATCH != 0, 10, "masks");
    CHECK(!(SHMEM_MALLOC_ATOMICS_REMOTE & SHMEM_MALLOC_SIGNAL_REMOTE), 68, "hints share a bit");
    for (int i = 0; i < 6; i++)
        for (int k = 0; k < i; k++)
            CHECK(comparisons[i] != comparisons[k], 50, "comparisons %d and %d are equal", i, k);
    CHECK(contexts[0] == SHMEM_CTX_DEFAULT && contexts[0] != contexts[1], 18, "DEFAULT equals INVALID");
    CHECK(strcmp(vendors[0], vendors[1]) == 0, 79, "two vendors");
    CHECK(sync_array[0] == SHMEM_SYNC_VALUE, 62, "SHMEM_SYNC_VALUE");
    shmem_team_config_t team_config = {.num_contexts = 1};
    shmem_ctx_session_config_t session_config = {.total_ops = SIZE_MAX};
    CHECK(team_config.num_contexts == 1 && session_config.total_ops == SIZE_MAX, 26, "the structures' fields");
    return check_end();
}
