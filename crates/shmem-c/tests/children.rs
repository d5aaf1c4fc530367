//! A PE and its static data stay its own whatever the program does with processes and copies of the library: children,
//! the signals that they get and how they exit, tools that are started late, a library that is closed and loaded again
//! or is there twice.

use std::path::Path;

use testkit::{Job, compile_text, prefix, program};

fn tmpdir() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

fn library() -> String {
    prefix().join("lib/librushmem.so.1").display().to_string()
}

/// The child's handler counts in the child, though it is the first thing that runs there.
#[test]
fn a_signal_that_comes_with_fork_finds_the_childs_variables() {
    let text = "
        #define _GNU_SOURCE
        #include <sched.h>
        #include <signal.h>
        #include <stdio.h>
        #include <sys/wait.h>
        #include <unistd.h>
        #include <shmem.h>
        static volatile int signals;
        static void count(int signal) {
            (void)signal;
            signals++;
        }
        int main(void) {
            shmem_init();
            signal(SIGUSR1, count);
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(sched_getcpu(), &one);
            sched_setaffinity(0, sizeof one, &one);
            int good = 1;
            for (int i = 0; good && i < 100; i++) {
                const pid_t child = fork();
                if (child == 0) {
                    for (int ms = 0; ms < 5000 && !signals; ms++)
                        usleep(1000);
                    _exit(signals != 1);
                }
                kill(child, SIGUSR1);
                int status = 1;
                waitpid(child, &status, 0);
                good = status == 0 && signals == 0;
            }
            raise(SIGUSR1);
            puts(good && signals == 1 ? \"n_pes 1\\nPASS\" : \"FAIL: a signal went to the wrong process\");
            shmem_finalize();
        }
    ";
    Job::new(compile_text("signals.c", text, tmpdir(), &[])).n(1).run().assert_ok(1);
    Job::new(compile_text("signals.c", text, tmpdir(), &["-static"])).n(1).run().assert_ok(1);
}

/// In a static program the allocator's variables are among those that the child gets a copy of: whole, although another
/// thread works on them all the time.
#[test]
fn a_child_gets_an_allocator_that_works() {
    let text = "
        #include <malloc.h>
        #include <pthread.h>
        #include <stdio.h>
        #include <stdlib.h>
        #include <sys/wait.h>
        #include <unistd.h>
        #include <shmem.h>
        static volatile int over;
        static void churn(void) {
            void *held[16] = {0};
            for (unsigned i = 0; i < 2000; i++) {
                void **one = &held[i * 7 % 16];
                free(*one);
                *one = malloc(2000 + i * 131 % 50000);
            }
            for (int i = 0; i < 16; i++)
                free(held[i]);
        }
        static void *work(void *nothing) {
            while (!over)
                churn();
            return nothing;
        }
        int main(void) {
            mallopt(M_ARENA_MAX, 1);
            shmem_init();
            pthread_t thread;
            pthread_create(&thread, 0, work, 0);
            int status = 0;
            for (int i = 0; i < 50 && status == 0; i++) {
                const pid_t child = fork();
                if (child == 0) {
                    alarm(20);
                    churn();
                    _exit(0);
                }
                status = 1;
                waitpid(child, &status, 0);
            }
            over = 1;
            pthread_join(thread, 0);
            puts(status ? \"FAIL: a child's allocator\" : \"n_pes 1\\nPASS\");
            shmem_finalize();
        }
    ";
    for flags in [&["-static"][..], &[]] {
        Job::new(compile_text("allocator.c", text, tmpdir(), flags)).n(1).run().assert_ok(1);
    }
}

#[test]
fn a_child_that_exits_does_so_for_itself() {
    Job::new(program!("child_exits.c")).n(2).run().assert_ok(2);
}

/// A child from before `shmem_init` has its environment, and may start a program that loads the library.
#[test]
fn a_program_that_an_early_child_starts_late_leaves_the_parent_its_place() {
    let text = "
        #include <stdio.h>
        #include <sys/wait.h>
        #include <unistd.h>
        #include <shmem.h>
        static long words[3000];
        int main(int argc, char **argv) {
            int go[2];
            if (argc == 2)
                return 0;
            if (pipe(go))
                return 1;
            const pid_t child = fork();
            if (child == 0) {
                char end;
                close(go[1]);
                if (read(go[0], &end, 1) == 0)
                    execl(\"/proc/self/exe\", argv[0], \"tool\", (char *)0);
                _exit(1);
            }
            close(go[0]);
            shmem_init();
            words[2999] = 8;
            close(go[1]);
            int status = 1;
            waitpid(child, &status, 0);
            const int good = status == 0 && words[2999] == 8;
            puts(good ? \"n_pes 1\\nPASS\" : \"FAIL\");
            shmem_finalize();
            return 0;
        }
    ";
    Job::new(compile_text("late_child.c", text, tmpdir(), &[])).n(1).run().assert_ok(1);
}

#[test]
fn the_library_may_be_closed_and_loaded_again() {
    let text = "
        #include <dlfcn.h>
        #include <stdio.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static volatile long word = 5;
        int main(int argc, char **argv) {
            (void)argc;
            for (int i = 0; i < 2; i++) {
                void *library = dlopen(argv[1], RTLD_NOW);
                if (!library)
                    puts(dlerror());
                word++;
                dlclose(library);
            }
            const pid_t child = fork();
            if (child == 0) {
                word = 99;
                _exit(0);
            }
            waitpid(child, 0, 0);
            puts(word == 7 ? \"n_pes 1\\nPASS\" : \"FAIL\");
            return 0;
        }
    ";
    let program = compile_text("reload.c", text, tmpdir(), &["-Wl,--as-needed"]);
    Job::new(program).n(1).arg(library()).run().assert_ok(1);
}

/// A program with the archive in it and a tool that brings the shared library.
#[test]
fn a_second_copy_of_the_library_leaves_the_first_its_place() {
    let text = "
        #include <stdio.h>
        #include <shmem.h>
        static long words[3000] = {3};
        int main(void) {
            shmem_init();
            const int me = shmem_my_pe(), n = shmem_n_pes(), left = (me + n - 1) % n;
            shmem_barrier_all();
            shmem_long_p(&words[2999], words[0] + me, (me + 1) % n);
            shmem_barrier_all();
            if (words[2999] != 3 + left)
                printf(\"FAIL PE %d: %ld\\n\", me, words[2999]);
            if (me == 0)
                printf(\"n_pes %d\\nPASS\\n\", n);
            shmem_finalize();
        }
    ";
    let archive = prefix().join("lib/librushmem.a");
    let flag = format!("-Wl,--whole-archive,{},--no-whole-archive", archive.display());
    let program = compile_text("twice.c", text, tmpdir(), &[&flag]);
    Job::new(program).n(2).env("LD_PRELOAD", library()).run().assert_ok(2);
}
