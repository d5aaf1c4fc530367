/* Each PE puts its number into an array of its right neighbor that malloc has allocated. */
#include <shmem.h>
#include <shmemx.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    int *numbers = malloc(1000 * sizeof *numbers);
    if (!shmemx_buffer_register(numbers, 1000 * sizeof *numbers, 0))
        shmem_global_exit(1);
    shmem_int_p(&numbers[500], me, (me + 1) % n);
    shmem_barrier_all();
    printf("%d got %d\n", me, numbers[500]);
    shmemx_buffer_unregister(numbers);
    free(numbers);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   0 got 3
   1 got 0
   2 got 1
   3 got 2 */
