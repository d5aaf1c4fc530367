/* Measures what the library uses on each PE after a barrier, and once the PE has put a word to every other PE and got one from
 * it, and prints the maximum over the PEs.
 *
 * `first` and `private` are Private_Dirty of the kernel at these two moments, and `files` the number of open descriptors at the
 * second. With the argument `without`, the library is loaded but not initialised, which shows what the program uses anyway.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include "timing.h"

static double private_dirty(void)
{
    char line[256];
    FILE *const file = fopen("/proc/self/smaps_rollup", "r");
    long kib = 0;
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "Private_Dirty: %ld", &kib) == 1)
            break;
    if (file != NULL)
        fclose(file);
    return 1024. * kib;
}

/* Open descriptors, without that of the folder that lists them. */
static double files(void)
{
    DIR *const folder = opendir("/proc/self/fd");
    double found = -1;
    if (folder == NULL)
        give_up("the kernel does not list descriptors");
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        found += entry->d_name[0] != '.';
    closedir(folder);
    return found;
}

static double max_of(double value)
{
    static double own, most;
    own = value;
    shmem_double_max_reduce(SHMEM_TEAM_WORLD, &most, &own, 1);
    return most;
}

int main(int count, char **words)
{
    static long word;
    if (count > 1 && strcmp(words[1], "without") == 0) {
        report("without", private_dirty());
        return 0;
    }
    shmem_init();
    const int me = shmem_my_pe(), n = shmem_n_pes();
    shmem_barrier_all();
    const double first_bytes = private_dirty();
    shmem_barrier_all();
    for (int i = 1; i < n; i++)
        shmem_long_p(&word, 1, (me + i) % n);
    shmem_barrier_all();
    for (int i = 1; i < n; i++)
        if (shmem_long_g(&word, (me + i) % n) != 1)
            give_up("a word did not arrive");
    shmem_barrier_all();
    const double private_bytes = private_dirty(), n_files = files();
    const double values[] = {max_of(first_bytes), max_of(private_bytes), max_of(n_files)};
    if (me == 0) {
        report("first", values[0]);
        report("private", values[1]);
        report("files", values[2]);
    }
    shmem_finalize();
    return 0;
}
