/* The C library's fork in a static program, whose own variables are among those shared with the child until it has its copy.
 *
 * oshcc links static programs with --wrap=_Fork --undefined=_Fork, so that the child takes its copy before anything of the C
 * library runs in it: the count of threads that it resets would be its parent's, too. Other programs use none of this.
 */
#include <sys/types.h>

extern pid_t __real__Fork(void) __attribute__((weak));
pid_t __wrap__Fork(void);

static void (*in_child)(void);

void rushmem_in_child_of_fork(void (*handler)(void));

void rushmem_in_child_of_fork(void (*handler)(void)) { in_child = handler; }

pid_t __wrap__Fork(void) {
    const pid_t child = __real__Fork();
    if (child == 0 && in_child)
        in_child();
    return child;
}
