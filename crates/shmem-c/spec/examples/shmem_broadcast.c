/* PE 0 has read the parameters of the program; all PEs get them. */
#include <shmem.h>
#include <stdio.h>

static double source[2], parameters[2];

int main(void) {
    shmem_init();
    int me = shmem_my_pe();
    if (me == 0) {
        source[0] = 0.25;
        source[1] = 8;
    }
    shmem_double_broadcast(SHMEM_TEAM_WORLD, parameters, source, 2, 0);
    printf("PE %d: %.2f %.0f\n", me, parameters[0], parameters[1]);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   PE 0: 0.25 8
   PE 1: 0.25 8
   PE 2: 0.25 8
   PE 3: 0.25 8 */
