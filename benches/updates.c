/* Times random updates of much more memory than the TLB covers, and the first touch of that memory.
 * Each PE of a job of two adds to words of the other PE's block. The `bare` lines are the same for
 * memory of the PE itself with small pages, without the library.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/mman.h>
#include "timing.h"

#define BLOCK ((size_t)2 << 30)
enum { UPDATES = 4000000, PAGE = 4096 };

static uint64_t next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state % (BLOCK / sizeof(uint64_t));
}

static void touch(char *block)
{
    for (size_t page = 0; page < BLOCK; page += PAGE)
        block[page] = 1;
}

static void report_from_first(const char *name, double value)
{
    shmem_barrier_all();
    if (shmem_my_pe() == 0)
        report(name, value);
}

int main(void)
{
    setenv("SHMEM_SYMMETRIC_SIZE", "2100m", 1);
    shmem_init();
    const int me = shmem_my_pe();
    uint64_t state = 88172645463325252u * (me + 1);

    double start = now();
    uint64_t *bare = mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (bare == MAP_FAILED || madvise(bare, BLOCK, MADV_NOHUGEPAGE) != 0)
        give_up("the kernel gives no memory with small pages");
    touch((char *)bare);
    report_from_first("bare_first_touch", now() - start);
    start = now();
    for (long i = 0; i < UPDATES; i++)
        __atomic_fetch_add(bare + next(&state), 1, __ATOMIC_RELAXED);
    report_from_first("bare_update", (now() - start) / UPDATES);
    munmap(bare, BLOCK);

    start = now();
    uint64_t *block = shmem_malloc(BLOCK);
    if (block == NULL)
        give_up("the symmetric heap is too small");
    touch((char *)block);
    report_from_first("first_touch", now() - start);
    start = now();
    for (long i = 0; i < UPDATES; i++)
        shmem_uint64_atomic_add(block + next(&state), 1, 1 - me);
    report_from_first("update", (now() - start) / UPDATES);
    shmem_finalize();
    return 0;
}
