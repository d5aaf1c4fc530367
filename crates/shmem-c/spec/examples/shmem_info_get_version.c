/* A report says with which library it was made. */
#include <shmem.h>
#include <stdio.h>

int main(void) {
    shmem_init();
    int major, minor;
    char name[SHMEM_MAX_NAME_LEN];
    shmem_info_get_version(&major, &minor);
    shmem_info_get_name(name);
    if (shmem_my_pe() == 0)
        printf("OpenSHMEM %d.%d by %.7s\n", major, minor, name);
    shmem_finalize();
    return 0;
}

/* Prints on 4 PEs, in any order:
   OpenSHMEM 1.6 by Rushmem */
