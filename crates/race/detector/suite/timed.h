/* What the programs with timed waits have in common. */
#include <sched.h>
#include <shmemx.h>

/* Waits until a word of this PE is not 0, by loads that the detector does not see. */
__attribute__((no_sanitize_thread, unused)) static void until_changed(const volatile void *word) {
    while (*(const volatile long *)word == 0)
        sched_yield();
}
