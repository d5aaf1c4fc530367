/* Mistakes with registered buffers. argv[1] names one. */
#include <shmemx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BYTES = 24000 };

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "";
    shmem_init();
    int me = shmem_my_pe(), right = (me + 1) % shmem_n_pes();
    char *pages = mmap(NULL, 2 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(pages, 1, 2 * BYTES);
    long options = strstr(how, "pinned") ? SHMEMX_BUFFER_PINNED : 0;
    size_t nbytes = strcmp(how, "sizes") == 0 ? BYTES + 8 * (size_t)me : BYTES;
    char *use = shmemx_buffer_register(pages, nbytes, options);
    if (!use)
        shmem_global_exit(2);

    if (strcmp(how, "beyond") == 0 || strcmp(how, "beyond_pinned") == 0)
        shmem_putmem(use + BYTES - 8, &me, 16, right);
    if (strcmp(how, "beyond_at_pe") == 0)
        shmem_putmem(use, &me, 4, shmem_n_pes());
    if (strcmp(how, "free_pinned") == 0)
        shmem_free(use);
    if (strcmp(how, "free") == 0)
        shmem_free(pages);
    if (strcmp(how, "realloc_pinned") == 0)
        shmem_realloc(use, 10);
    if (strcmp(how, "others") == 0)
        shmemx_buffer_unregister(me == 1 ? pages + 8 : pages);
    if (strcmp(how, "malloc_meanwhile") == 0) {
        if (me == 1)
            shmem_malloc(64);
        else
            shmemx_buffer_register(pages + BYTES, 8, 0);
    }
    if (strcmp(how, "unmapped") == 0) {
        munmap(pages, 2 * BYTES);
        shmem_barrier_all();
        printf("unregistered %d\n", shmemx_buffer_unregister(pages));
    }
    if (strcmp(how, "unmapped_and_mapped") == 0) {
        munmap(pages, 2 * BYTES);
        char *again = mmap(pages, 2 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        memset(again, 7, 2 * BYTES);
    }
    if (strcmp(how, "one_page_unmapped") == 0) {
        /* Two buffers in one run of pages, of which one is unmapped. The other one stays. */
        shmemx_buffer_register(pages + BYTES, BYTES, 0);
        munmap(pages, 4096);
        shmemx_buffer_unregister(pages);
        shmem_int_p((int *)(pages + 2 * BYTES - 4), me, right);
        shmem_barrier_all();
        printf("got %d\n", *(int *)(pages + 2 * BYTES - 4) == (me + shmem_n_pes() - 1) % shmem_n_pes());
    }
    shmem_finalize();
    if (strcmp(how, "unmapped_and_mapped") == 0)
        printf("kept %d\n", pages[0] == 7 && pages[BYTES - 1] == 7);
    return 0;
}
