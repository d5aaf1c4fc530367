/* A profiling tool, if there is one, leaves out the part of the program
 * before the measurement. */
#include <shmem.h>
#include <stdio.h>

static int inbox;

int main(void) {
    shmem_init();
    int me = shmem_my_pe(), n = shmem_n_pes();
    shmem_pcontrol(0);  /* off */
    shmem_barrier_all();
    shmem_pcontrol(1);  /* on */
    shmem_int_p(&inbox, me, (me + 1) % n);
    shmem_barrier_all();
    if (me == 0)
        printf("%d\n", inbox);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   3 */
