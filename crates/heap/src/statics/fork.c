/* Calls handlers at a fork, of dynamic and of static programs.
 *
 * In a static program the C library's own variables are shared with the child, too, until it has its copy. So oshcc links
 * such programs with --wrap=_Fork --undefined=_Fork: the copy is made after the C library has taken the locks of its
 * variables, and the child maps it before any code of the C library runs in the child.
 */
#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

typedef void handler(void);

extern pid_t __real__Fork(void) __attribute__((weak));
pid_t __wrap__Fork(void);

static handler *before, *in_parent, *in_child;

/* Registers the handlers; returns 0 or an error number. A dynamic program may be linked with --wrap=_Fork, too, but there
 * the C library's own calls of _Fork do not call the function here, so it uses pthread_atfork. */
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
