/* Measures the memory that the library uses on each PE, and prints the maximum over the PEs in
 * bytes.
 *
 * Without an argument it measures on one node, after a barrier and a split of the world into rows
 * and columns. `private` is the kernel's Private_Dirty. `slice` is the resident part of the PE's
 * slice of the node's shared memory, to which the program itself has written nothing yet. `tables`
 * is the size of the page tables, and `tables_touched` their size after every PE has touched all
 * heaps.
 *
 * With the argument `pairs`, `first` is Private_Dirty after a barrier, and `private` after the PE
 * has put a word to every other PE and got one from it; `files` is the number of open descriptors
 * then.
 *
 * With the argument `without`, the library is loaded but not initialized: `without` is the memory
 * that the program uses in any case.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include "timing.h"

enum { PAGE = 4096, PAGES_AT_A_TIME = 16384, HEAP = 2 << 20, APART = 1 << 20 };

/* Returns the bytes on the line that begins with `key` in a file of the kernel, given in KiB. */
static double bytes_of(const char *path, const char *key)
{
    static char text[PAGE];
    const int file = open(path, O_RDONLY);
    size_t length = 0;
    for (ssize_t got; (got = read(file, text + length, sizeof text - 1 - length)) > 0;)
        length += (size_t)got;
    close(file);
    text[length] = 0;
    const char *line = strstr(text, key);
    return line == NULL ? 0 : 1024. * strtol(line + strlen(key), NULL, 10);
}

static double private_dirty(void)
{
    return bytes_of("/proc/self/smaps_rollup", "Private_Dirty:");
}

static double page_tables(void)
{
    return bytes_of("/proc/self/status", "VmPTE:");
}

/* Returns the bytes of a range that are in memory, whichever process has touched them. */
static double resident(char *start, size_t nbytes)
{
    static unsigned char there[PAGES_AT_A_TIME];
    double found = 0;
    while (nbytes > 0) {
        const size_t all = (size_t)PAGES_AT_A_TIME * PAGE, window = nbytes < all ? nbytes : all;
        if (mincore(start, window, there) != 0)
            give_up("the kernel does not report what is in memory");
        for (size_t page = 0; page < window / PAGE; page++)
            found += (there[page] & 1) * (double)PAGE;
        start += window;
        nbytes -= window;
    }
    return found;
}

/* Returns the resident bytes of this PE's slice of the node's memory. The size of a slice is the
 * distance between the heaps of two PEs, and a slice is aligned to its size. */
static double slice(char *heap)
{
    const int me = shmem_my_pe();
    char *const next = shmem_ptr(heap, me == 0 ? 1 : me - 1);
    if (next == NULL)
        give_up("this is measured on one node, on 2 PEs or more");
    const size_t stride = (size_t)(next > heap ? next - heap : heap - next);
    return resident(heap - (uintptr_t)heap % stride, stride);
}

/* Writes all of the PE's own heap, then reads a byte of each MiB of every PE's heap. This creates
 * all page tables, since a page of them covers 2 MiB. */
static void touch(char *heap)
{
    memset(heap, 1, HEAP);
    shmem_barrier_all();
    for (int pe = 0; pe < shmem_n_pes(); pe++)
        for (size_t offset = 0; offset < HEAP; offset += APART)
            (void)*(volatile char *)shmem_ptr(heap + offset, pe);
    shmem_barrier_all();
}

static void report_most(const char *name, double value)
{
    static double own, most;
    own = value;
    shmem_double_max_reduce(SHMEM_TEAM_WORLD, &most, &own, 1);
    if (shmem_my_pe() == 0)
        report(name, most);
}

/* Returns the number of open descriptors, without that of the directory which lists them. */
static double files(void)
{
    DIR *const dir = opendir("/proc/self/fd");
    double found = -1;
    if (dir == NULL)
        give_up("the kernel does not list descriptors");
    for (const struct dirent *entry; (entry = readdir(dir)) != NULL;)
        found += entry->d_name[0] != '.';
    closedir(dir);
    return found;
}

static void measure_pairs(void)
{
    static long word;
    const int me = shmem_my_pe(), n = shmem_n_pes();
    shmem_barrier_all();
    const double first = private_dirty();
    shmem_barrier_all();
    for (int i = 1; i < n; i++)
        shmem_long_p(&word, 1, (me + i) % n);
    shmem_barrier_all();
    for (int i = 1; i < n; i++)
        if (shmem_long_g(&word, (me + i) % n) != 1)
            give_up("a word did not arrive");
    shmem_barrier_all();
    const double private_bytes = private_dirty(), n_files = files();
    report_most("first", first);
    report_most("private", private_bytes);
    report_most("files", n_files);
}

static void measure_node(void)
{
    int width = 1;
    while (width * width < shmem_n_pes())
        width++;
    shmem_barrier_all();
    shmem_team_t row, column;
    if (shmem_team_split_2d(SHMEM_TEAM_WORLD, width, NULL, 0, &row, NULL, 0, &column) != 0)
        give_up("the split failed");
    shmem_barrier_all();
    const double private_bytes = private_dirty(), tables = page_tables();
    char *const heap = shmem_malloc(HEAP);
    if (heap == NULL)
        give_up("SHMEM_SYMMETRIC_SIZE is below 2m");
    const double slice_bytes = slice(heap);
    shmem_barrier_all();
    touch(heap);
    const double touched = page_tables();
    report_most("private", private_bytes);
    report_most("slice", slice_bytes);
    report_most("tables", tables);
    report_most("tables_touched", touched);
}

int main(int count, char **words)
{
    const char *const what = count > 1 ? words[1] : "";
    if (strcmp(what, "without") == 0) {
        report("without", private_dirty());
        return 0;
    }
    shmem_init();
    if (strcmp(what, "pairs") == 0)
        measure_pairs();
    else
        measure_node();
    shmem_finalize();
    return 0;
}
