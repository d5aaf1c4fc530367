/* A number for each thread, with which SHMEM_CHECK=1 finds a private
 * context that another thread uses. */
#include <shmem.h>
#include <shmemx.h>
#include <stdint.h>
#include <stdio.h>

static uint64_t number(void) {
    static _Thread_local char own;
    return (uintptr_t)&own;
}

static int x;

int main(void) {
    int provided;
    shmem_ctx_t ctx;
    shmemx_register_gettid(number);
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    if (shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx) == 0) {
        shmem_ctx_int_atomic_inc(ctx, &x, 0);
        shmem_ctx_destroy(ctx);
    }
    shmem_barrier_all();
    if (shmem_my_pe() == 0)
        printf("%d\n", x);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   4 */
