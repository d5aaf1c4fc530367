/* A program allocates a block of half of the largest size that fits. */
#include <shmem.h>
#include <shmemx.h>
#include <stdio.h>

int main(void) {
    shmemx_heap_info_t before, after;
    shmem_init();
    shmemx_heap_info(&before);
    size_t half = before.largest_free / 2;
    char *block = shmem_malloc(half);
    shmemx_heap_info(&after);
    if (shmem_my_pe() == 0)
        printf("%s, %s\n", block ? "a block" : "no block",
               after.used == before.used + half ? "as large as asked for" : "of another size");
    shmem_free(block);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   a block, as large as asked for */
