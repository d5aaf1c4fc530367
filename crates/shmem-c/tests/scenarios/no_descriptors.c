/* PE 1 has no descriptor left when the other PEs first access it on a context of their own. */
#include "../programs/check.h"
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

int main(void) {
    check_begin();
    long *word = shmem_calloc(1, sizeof *word);
    if (check_me == 1) {
        /* The lowest free number is the limit, so no further descriptor can be opened. */
        int free = open("/dev/null", O_RDONLY);
        struct rlimit limit;
        CHECK(free >= 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0, 0, "no limit to be had");
        limit.rlim_cur = (rlim_t)free;
        close(free);
        CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0, 0, "no lower limit");
    }
    shmem_barrier_all();
    shmem_ctx_t ctx;
    if (check_me != 1 && shmem_ctx_create(0, &ctx) == 0)
        shmem_ctx_long_atomic_fetch_add(ctx, word, 1, 1);
    shmem_barrier_all();
    return check_end();
}
