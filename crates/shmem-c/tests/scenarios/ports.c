/* In a network namespace: every listening socket has a port from FIRST to LAST, and there are at
 * least N. */
#include "../programs/check.h"

static int of_family(const char *path, long first, long last) {
    char line[512];
    unsigned long port, state;
    int n = 0;
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, " %*d: %*[0-9A-Fa-f]:%lx %*[0-9A-Fa-f]:%*x %lx", &port, &state) != 2 || state != 0x0A)
            continue;
        n++;
        CHECK((long)port >= first && (long)port <= last, 0, "port %lu listens", port);
    }
    fclose(file);
    return n;
}

int main(int argc, char **argv) {
    static long word;
    check_begin();
    long first = atol(argv[argc - 3]), last = atol(argv[argc - 2]), n = atol(argv[argc - 1]);
    for (int pe = 0; pe < check_n; pe++)
        shmem_long_p(&word, pe, pe);
    shmem_barrier_all();
    int there = of_family("/proc/net/tcp", first, last) + of_family("/proc/net/tcp6", first, last);
    CHECK(there >= n, 0, "%d sockets listen", there);
    shmem_barrier_all();
    return check_end();
}
