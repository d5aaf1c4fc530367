/* Faults of a library, for the tests of shmem-verify: this file, compiled with the name of one of
 * them defined and preloaded, replaces routines of the library by wrong ones. */
#include <pshmem.h>
#include <pshmemx.h>
#include <shmem.h>
#include <shmemx.h>
#include <string.h>
#include <unistd.h>

#if defined(WRONG_VERSION)
void shmem_info_get_version(int *major, int *minor) {
    *major = 1;
    *minor = 5;
}
#elif defined(CALLOC_NOT_ZERO)
void *shmem_calloc(size_t count, size_t size) {
    unsigned char *block = pshmem_calloc(count, size);
    if (block != NULL)
        block[count * size - 1] = 1;
    return block;
}
#elif defined(ALIGNS_TO_16_BYTES)
void *shmem_align(size_t alignment, size_t size) {
    (void)alignment;
    return pshmem_align(16, size);
}
#elif defined(PUT_A_BYTE_SHORT)
void shmem_putmem(void *dest, const void *source, size_t nelems, int pe) {
    pshmem_putmem(dest, source, nelems > 0 ? nelems - 1 : 0, pe);
}
#elif defined(GET_NBI_A_BYTE_SHORT)
void shmem_getmem_nbi(void *dest, const void *source, size_t nelems, int pe) {
    pshmem_getmem_nbi(dest, source, nelems > 0 ? nelems - 1 : 0, pe);
}
#elif defined(STRIDE_OF_ONE)
void shmem_int_iput(int *dest, const int *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe) {
    (void)dst;
    pshmem_int_iput(dest, source, 1, sst, nelems, pe);
}
#elif defined(ADD_NOT_ATOMIC)
void shmem_long_atomic_add(long *dest, long value, int pe) {
    long old = pshmem_long_g(dest, pe);
    usleep(50);
    pshmem_long_p(dest, old + value, pe);
    pshmem_quiet();
}
#elif defined(FETCHES_THE_NEW_VALUE)
int shmem_int_atomic_fetch_add(int *dest, int value, int pe) {
    return pshmem_int_atomic_fetch_add(dest, value, pe) + value;
}
#elif defined(SWAPS_WITHOUT_COMPARING)
int shmem_int_atomic_compare_swap(int *dest, int cond, int value, int pe) {
    (void)cond;
    return pshmem_int_atomic_swap(dest, value, pe);
}
#elif defined(SIGNAL_BEFORE_DATA)
void shmem_putmem_signal(void *dest, const void *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op,
                         int pe) {
    pshmem_putmem_signal(dest, source, 0, sig_addr, signal, sig_op, pe);
    pshmem_quiet();
    usleep(2000);
    pshmem_putmem(dest, source, nelems, pe);
}
#elif defined(SIGNAL_OVERTAKES_ITS_WORD)
void shmem_long_put_signal(long *dest, const long *source, size_t nelems, uint64_t *sig_addr, uint64_t signal,
                           int sig_op, int pe) {
    pshmem_long_put_signal(dest, source, 0, sig_addr, signal, sig_op, pe);
    pshmem_quiet();
    usleep(2000);
    pshmem_long_put(dest, source, nelems, pe);
}
#elif defined(SIGNAL_OVERTAKES_ITS_BUFFER)
static char *buffer;
static size_t buffer_bytes;

void *shmemx_buffer_register(void *addr, size_t nbytes, long options) {
    buffer = addr;
    buffer_bytes = nbytes;
    return pshmemx_buffer_register(addr, nbytes, options);
}

void shmem_long_put_signal(long *dest, const long *source, size_t nelems, uint64_t *sig_addr, uint64_t signal,
                           int sig_op, int pe) {
    const int is_in_buffer = (size_t)((char *)dest - buffer) < buffer_bytes;
    pshmem_long_put_signal(dest, source, is_in_buffer ? 0 : nelems, sig_addr, signal, sig_op, pe);
    if (!is_in_buffer)
        return;
    pshmem_quiet();
    usleep(2000);
    pshmem_long_put(dest, source, nelems, pe);
}
#elif defined(SIGNAL_SETS_INSTEAD_OF_ADDING)
void (shmem_signal_add)(uint64_t *sig_addr, uint64_t signal, int pe) {
    pshmem_signal_set(sig_addr, signal, pe);
}
#elif defined(FENCE_DOES_NOTHING)
void shmem_fence(void) {}
void shmem_ctx_fence(shmem_ctx_t ctx) { (void)ctx; }
#elif defined(FLUSH_DOES_NOTHING)
void shmemx_ctx_flush(shmem_ctx_t ctx) { (void)ctx; }
#elif defined(REFUSES_THREAD_MULTIPLE)
int shmem_init_thread(int requested, int *provided) {
    return pshmem_init_thread(requested > SHMEM_THREAD_SERIALIZED ? SHMEM_THREAD_SERIALIZED : requested, provided);
}
#elif defined(WAIT_RETURNS_AT_ONCE)
void shmem_int_wait_until(int *ivar, int cmp, int cmp_value) {
    (void)ivar, (void)cmp, (void)cmp_value;
}
#elif defined(TEST_ALL_IS_ALWAYS_TRUE)
int shmem_int_test_all(int *ivars, size_t nelems, const int *status, int cmp, int cmp_value) {
    (void)ivars, (void)nelems, (void)status, (void)cmp, (void)cmp_value;
    return 1;
}
#elif defined(LOCK_LETS_TWO_IN)
void shmem_set_lock(long *lock) {
    (void)lock;
}
void shmem_clear_lock(long *lock) {
    (void)lock;
    pshmem_quiet();
}
#elif defined(CONTEXT_HAS_NO_TEAM)
int shmem_ctx_get_team(shmem_ctx_t ctx, shmem_team_t *team) {
    (void)ctx;
    *team = SHMEM_TEAM_INVALID;
    return 0;
}
#elif defined(TRANSLATES_TO_ITSELF)
int shmem_team_translate_pe(shmem_team_t src_team, int src_pe, shmem_team_t dest_team) {
    (void)src_team, (void)dest_team;
    return src_pe;
}
#elif defined(AXES_SWAPPED)
int shmem_team_split_2d(shmem_team_t parent_team, int xrange, const shmem_team_config_t *xaxis_config,
                        long xaxis_mask, shmem_team_t *xaxis_team, const shmem_team_config_t *yaxis_config,
                        long yaxis_mask, shmem_team_t *yaxis_team) {
    return pshmem_team_split_2d(parent_team, xrange, yaxis_config, yaxis_mask, yaxis_team, xaxis_config, xaxis_mask,
                                xaxis_team);
}
#elif defined(REDUCES_ANOTHER_TYPE)
int shmem_uint32_max_reduce(shmem_team_t team, uint32_t *dest, const uint32_t *source, size_t nreduce) {
    return pshmem_int32_max_reduce(team, (int32_t *)dest, (const int32_t *)source, nreduce);
}
#elif defined(ROOT_GETS_NO_COPY)
int shmem_long_broadcast(shmem_team_t team, long *dest, const long *source, size_t nelems, int root) {
    long kept = nelems > 0 ? *dest : 0;
    int status = pshmem_long_broadcast(team, dest, source, nelems, root);
    if (nelems > 0 && shmem_team_my_pe(team) == root)
        *dest = kept;
    return status;
}
#elif defined(SCAN_LEAVES_OUT_ITSELF)
int shmem_long_sum_inscan(shmem_team_t team, long *dest, const long *source, size_t nelems) {
    return pshmem_long_sum_exscan(team, dest, source, nelems);
}
#elif defined(ALLTOALL_A_BLOCK_SHORT)
int shmem_int_alltoall(shmem_team_t team, int *dest, const int *source, size_t nelems) {
    int last = shmem_team_n_pes(team) - 1;
    int kept = nelems > 0 ? dest[last * nelems] : 0;
    int status = pshmem_int_alltoall(team, dest, source, nelems);
    if (nelems > 0)
        dest[last * nelems] = kept;
    return status;
}
#else
#error "define the name of a fault"
#endif
