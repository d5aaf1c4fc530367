/* `ends_with_a_file NAME`: PE 0 makes the file NAME.begun, and the job lasts until NAME.end is there.
 */
#include "../programs/check.h"

#include <fcntl.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc != 2)
        return 2;
    char name[4096];
    check_begin();
    if (check_me == 0) {
        snprintf(name, sizeof name, "%s.begun", argv[1]);
        close(open(name, O_CREAT | O_WRONLY, 0600));
        snprintf(name, sizeof name, "%s.end", argv[1]);
        while (access(name, F_OK) != 0)
            usleep(10000);
    }
    shmem_barrier_all();
    return check_end();
}
