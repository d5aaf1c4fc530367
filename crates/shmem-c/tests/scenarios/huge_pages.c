/* Prints the huge pages of a large block, a small one, one for AMOs, and static data, in KiB, as PE
 * 0 has mapped them. Checks the values there after puts and AMOs of other PEs, also in a forked
 * child. */
#include "../programs/check.h"

#include <sys/wait.h>
#include <unistd.h>

enum { LARGE = 128 << 20, SMALL = 5 << 20, STEP = 4096, ADDS = 100000 };

static char data[SMALL];

/* The KiB in huge pages of the mappings that overlap a range. */
static long huge_kib(const char *start, size_t nbytes) {
    FILE *file = fopen("/proc/self/smaps", "r");
    char line[512];
    long kib = 0, meets = 0, page = 0;
    while (file && fgets(line, sizeof line, file)) {
        unsigned long from, to;
        long value;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            meets = from < (uintptr_t)start + nbytes && (uintptr_t)start < to;
        else if (sscanf(line, "KernelPageSize: %ld", &page) == 1)
            kib += meets && page >= 2048 ? (long)((to - from) >> 10) : 0;
        else if (meets && (sscanf(line, "ShmemPmdMapped: %ld", &value) == 1 ||
                           sscanf(line, "AnonHugePages: %ld", &value) == 1))
            kib += value;
    }
    if (file)
        fclose(file);
    return kib;
}

static void show(const char *what, const char *start, size_t nbytes) {
    if (check_me == 0)
        printf("%s %ld\n", what, huge_kib(start, nbytes));
}

/* All PEs write to the block of the next PE, and add to its first word at the same time. */
static void exchange(char *block, size_t nbytes) {
    const int next = (check_me + 1) % check_n, before = (check_me + check_n - 1) % check_n;
    *(uint64_t *)block = 0;
    shmem_barrier_all();
    for (size_t at = STEP; at < nbytes; at += STEP)
        shmem_uint64_p((uint64_t *)(block + at), check_mix(at + (size_t)check_me), next);
    for (int i = 0; i < ADDS; i++)
        shmem_uint64_atomic_inc((uint64_t *)block, i % check_n);
    shmem_barrier_all();
    const pid_t child = fork();
    int wrong = 0;
    for (size_t at = STEP; at < nbytes; at += STEP)
        wrong += *(uint64_t *)(block + at) != check_mix(at + (size_t)before);
    wrong += *(uint64_t *)block != (uint64_t)ADDS;
    if (child == 0)
        _exit(wrong != 0);
    int status = -1;
    waitpid(child, &status, 0);
    CHECK(wrong == 0, 0, "%d words are wrong", wrong);
    CHECK(status == 0, 0, "the child finds other words");
    shmem_barrier_all();
}

int main(int count, char **words) {
    check_begin();
    show("static", data, sizeof data);
    exchange(data, sizeof data);
    if (count > 1 && strcmp(words[1], "static") == 0)
        return check_end();
    char *small = check_malloc(SMALL);
    show("small", small, SMALL);
    char *for_amos = shmem_malloc_with_hints(SMALL, SHMEM_MALLOC_ATOMICS_REMOTE);
    show("for_amos", for_amos, SMALL);
    char *large = check_malloc(LARGE);
    show("large", large, LARGE);
    exchange(small, SMALL);
    exchange(for_amos, SMALL);
    exchange(large, LARGE);
    return check_end();
}
