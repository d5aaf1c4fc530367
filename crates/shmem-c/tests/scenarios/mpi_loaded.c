/* Loads the MPI library argv[1] with local symbols, as a module of Python does: before shmem_init
 * if argv[2] is "mpi", otherwise after it. */
#include <dlfcn.h>
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int function(void *, void *);

static function *find(void *library, const char *name) {
    void *at = library ? dlsym(library, name) : NULL;
    function *found;
    if (!at) {
        printf("FAIL %s\n", dlerror());
        exit(1);
    }
    memcpy(&found, &at, sizeof found);
    return found;
}

static void *start_mpi(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    find(library, "MPI_Init")(NULL, NULL);
    return library;
}

int main(int argc, char **argv) {
    int mpi_first = argc > 2 && !strcmp(argv[2], "mpi");
    void *library = mpi_first ? start_mpi(argv[1]) : NULL;
    shmem_init();
    if (!mpi_first)
        library = start_mpi(argv[1]);
    shmem_free(shmem_malloc(8));
    if (shmem_my_pe() == 0)
        printf("n_pes %d\nPASS\n", shmem_n_pes());
    fflush(stdout);
    shmem_finalize();
    find(library, "MPI_Finalize")(NULL, NULL);
    return 0;
}
