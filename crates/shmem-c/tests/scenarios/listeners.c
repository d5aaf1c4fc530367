/* Prints the sockets on which a PE listens after it has used the network. None can be reached by
 * another machine. */
#include "../programs/check.h"
#include <dirent.h>
#include <unistd.h>

enum { MOST = 64 };

static unsigned long sockets[MOST];
static int n_sockets;

/* The inodes of this process's sockets. */
static void find_sockets(void) {
    DIR *dir = opendir("/proc/self/fd");
    CHECK(dir, 0, "no /proc/self/fd");
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char path[300], target[64];
        snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        ssize_t nbytes = readlink(path, target, sizeof target - 1);
        if (nbytes <= 0)
            continue;
        target[nbytes] = 0;
        if (n_sockets < MOST && sscanf(target, "socket:[%lu]", &sockets[n_sockets]) == 1)
            n_sockets++;
    }
    if (dir)
        closedir(dir);
}

static int is_own(unsigned long inode) {
    for (int i = 0; i < n_sockets; i++)
        if (sockets[i] == inode)
            return 1;
    return 0;
}

static int is_loopback(const char *address) {
    /* Words in native byte order: 127.x.x.x, ::1 and its mapped forms. */
    int is_v4 = strlen(address) == 8, mapped = !strncmp(address, "0000000000000000FFFF0000", 24);
    if (is_v4 || mapped)
        return (strtoul(address + (is_v4 ? 0 : 24), NULL, 16) & 0xff) == 127;
    return !strcmp(address, "00000000000000000000000001000000");
}

static void look(const char *path) {
    char line[400], address[40];
    unsigned port, state;
    unsigned long inode;
    FILE *table = fopen(path, "r");
    while (table && fgets(line, sizeof line, table))
        if (sscanf(line, " %*d: %39[0-9A-F]:%x %*s %x %*s %*s %*s %*s %*s %lu", address, &port, &state, &inode) == 4 &&
            state == 10 && is_own(inode)) {
            printf("listens %s:%u\n", address, port);
            CHECK(is_loopback(address), 0, "another machine reaches port %u at %s", port, address);
        }
    if (table)
        fclose(table);
}

int main(void) {
    check_begin();
    long *word = shmem_calloc(1, sizeof *word);
    shmem_ctx_t ctx;
    CHECK(shmem_ctx_create(0, &ctx) == 0, 0, "no context");
    for (int pe = 0; pe < check_n; pe++) {
        shmem_long_atomic_add(word, 1, pe);
        shmem_ctx_long_atomic_add(ctx, word, 1, pe);
    }
    shmem_barrier_all();
    find_sockets();
    look("/proc/net/tcp");
    look("/proc/net/tcp6");
    fflush(stdout);
    shmem_ctx_destroy(ctx);
    shmem_free(word);
    return check_end();
}
