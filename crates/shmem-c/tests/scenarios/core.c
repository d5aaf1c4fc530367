/* PE 0 touches 16 MiB of every PE's heap of 1 GiB, prints how much of its memory a core file would
 * contain, also of a registered buffer, and aborts. */
#include "../programs/check.h"

#include <shmemx.h>

enum { TOUCHED = 16 << 20, REGISTERED = 1 << 20 };

/* Bytes of shared mappings, of those without the kernel's "do not dump" mark, and of these in the
 * pages at an address, from /proc/self/smaps. */
static void report(unsigned long long pages) {
    FILE *maps = fopen("/proc/self/smaps", "r");
    char line[512], mode[8] = "";
    unsigned long long from = 0, to = 0, shared = 0, dumpable = 0, registered = 0;
    while (maps && fgets(line, sizeof line, maps)) {
        unsigned long long a, b;
        char m[8];
        if (sscanf(line, "%llx-%llx %7s", &a, &b, m) == 3) {
            from = a, to = b, strcpy(mode, m);
        } else if (strncmp(line, "VmFlags:", 8) == 0 && mode[3] == 's') {
            shared += to - from;
            unsigned long long nbytes = strstr(line, " dd") ? 0 : to - from;
            dumpable += nbytes;
            registered += from >= pages && to <= pages + REGISTERED ? nbytes : 0;
        }
    }
    if (maps)
        fclose(maps);
    printf("shared %llu\ndumpable %llu\nregistered %llu\n", shared, dumpable, registered);
    fflush(stdout);
}

int main(void) {
    check_begin();
    unsigned char *block = check_malloc(2 * TOUCHED);
    memset(block, check_me + 1, TOUCHED);
    void *pages = aligned_alloc(4096, REGISTERED);
    CHECK(shmemx_buffer_register(pages, REGISTERED, 0) == pages, 0, "refused");
    shmem_barrier_all();
    if (check_me == 0) {
        for (int pe = 1; pe < check_n; pe++)
            shmem_putmem(block, block, TOUCHED, pe);
        shmem_quiet();
        report((uintptr_t)pages);
        abort();
    }
    shmem_barrier_all();
    return 98;
}
