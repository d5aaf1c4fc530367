/* What is done at a fork, whatever the program.
 *
 * In a static program the C library's own variables are among those shared with the child until it has its copy. So oshcc
 * links such programs with --wrap=_Fork --undefined=_Fork: the copy is made when the C library has taken the locks of its
 * variables, and the child puts it in place before anything of the C library runs in it.
 */
#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

typedef void handler(void);

extern pid_t __real__Fork(void) __attribute__((weak));
pid_t __wrap__Fork(void);

static handler *before, *in_parent, *in_child;

/* 0, or the number of an error. A dynamic program may have been linked so as well, but the C library's own calls do not
 * pass here there. */
int rushmem_at_fork(bool is_static, handler *of_before, handler *of_parent, handler *of_child);

int rushmem_at_fork(bool is_static, handler *of_before, handler *of_parent, handler *of_child) {
    if (!is_static || !__real__Fork)
        return pthread_atfork(of_before, of_parent, of_child);
    in_parent = of_parent;
    in_child = of_child;
    before = of_before;
    return 0;
}

pid_t __wrap__Fork(void) {
    if (!before)
        return __real__Fork();
    before();
    const pid_t child = __real__Fork();
    if (child == 0)
        in_child();
    else
        in_parent();
    return child;
}
