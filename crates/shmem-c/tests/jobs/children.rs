//! Child processes and copies of the library do not disturb a PE or its static data: children,
//! their signals and their exits, programs that children start late, and a library that is closed
//! and loaded again, or is in a process twice.

use std::path::Path;
use std::process::Command;

use testkit::{Job, compile_text, prefix, scenario};

fn tmpdir() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

fn library() -> String {
    prefix().join("lib/librushmem.so.1").display().to_string()
}

/// The program is linked with the archive, but dynamically, with the options that a static program
/// needs.
#[test]
fn a_child_of_a_dynamic_program_with_the_archive_has_its_own_variables() {
    let text = "
        #include <stdio.h>
        #include <sys/wait.h>
        #include <unistd.h>
        #include <shmem.h>
        static volatile int word = 5;
        int main(void) {
            shmem_init();
            const pid_t child = fork();
            if (child == 0) {
                word = 99;
                _exit(0);
            }
            waitpid(child, NULL, 0);
            puts(word == 5 ? \"n_pes 1\\nPASS\" : \"FAIL: the child wrote to its parent's variable\");
            shmem_finalize();
        }
    ";
    let source = tmpdir().join("dynamic_archive.c");
    std::fs::write(&source, text).expect("the directory for tests can be written to");

    let program = source.with_extension("");
    let compiled = Command::new("cc")
        .arg("-I")
        .arg(prefix().join("include"))
        .arg(source)
        .arg("-o")
        .arg(&program)
        .args(["-Wl,--wrap=_Fork", "-Wl,--undefined=_Fork"])
        .arg(prefix().join("lib/librushmem.a"))
        .args(["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl"])
        .arg("-lc")
        .status();
    assert!(compiled.expect("cc").success());

    Job::new(program).n(1).run().assert_ok(1);
}

/// A signal handler that is the first code to run in the child changes the child's variables.
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

            /* On one CPU, the parent mostly sends the signal before the child has run. */
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

    for flags in [&[][..], &["-static"]] {
        let program = compile_text("signals.c", text, tmpdir(), flags);
        Job::new(program).n(1).run().assert_ok(1);
    }
}

/// The library allocates no memory between copying the variables for the child and the fork, even
/// if the fork is the first use of the library. So the child of a static program has a consistent
/// allocator.
#[test]
fn a_child_of_a_static_program_that_forks_before_init_has_an_allocator() {
    let text = "
        #include <stdio.h>
        #include <stdlib.h>
        #include <sys/wait.h>
        #include <unistd.h>
        #include <shmem.h>
        int main(void) {
            free(malloc(100));
            const pid_t child = fork();
            if (child == 0) {
                for (size_t i = 0; i < 200; i++)
                    *(volatile char *)malloc(1000 * i + 1) = 1;
                _exit(0);
            }
            int status = -1;
            waitpid(child, &status, 0);
            shmem_init();
            puts(status == 0 ? \"n_pes 1\\nPASS\" : \"FAIL: the child did not end well\");
            shmem_finalize();
        }
    ";

    let program = compile_text("forks_first.c", text, tmpdir(), &["-static"]);
    Job::new(program).n(1).run().assert_ok(1);
}

/// In a static program, the child gets a copy of the allocator's variables. The copy is consistent,
/// although another thread uses the allocator all the time.
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
            /* All threads use one arena, whose lock the fork may find held. */
            mallopt(M_ARENA_MAX, 1);
            shmem_init();
            pthread_t thread;
            pthread_create(&thread, 0, work, 0);

            int status = 0;
            for (int i = 0; i < 50 && status == 0; i++) {
                const pid_t child = fork();
                if (child == 0) {
                    /* Ends a child that waits for a lock that no thread holds. */
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
        let program = compile_text("allocator.c", text, tmpdir(), flags);
        Job::new(program).n(1).run().assert_ok(1);
    }
}

#[test]
fn a_child_that_exits_does_so_for_itself() {
    Job::new(scenario!("child_exits.c")).n(2).run().assert_ok(2);
}

/// Large contiguous variables are copied with huge pages. Single pages that are far from each other
/// need no more memory in the child. All variables are one mapping in the child, since kernels
/// before 6.17 cannot replace one mapping by several.
#[test]
fn a_child_gets_large_and_sparse_variables_in_one_mapping() {
    let text = "
        #include <stdint.h>
        #include <stdio.h>
        #include <string.h>
        #include <sys/wait.h>
        #include <unistd.h>
        #include <shmem.h>
        #define SIZE (64l << 20)
        #define LARGE (7l << 20)
        #define STEP (2l << 20)
        static char bytes[SIZE];
        static int is_as_it_was(void) {
            int good = 1;
            for (long i = 0; i < LARGE; i++)
                good &= bytes[LARGE + i] == (char)(i / 4096 + 1);
            for (long at = 3 * LARGE; at < SIZE - STEP; at += STEP)
                good &= bytes[at] == 7 && bytes[at + STEP / 2] == 0;
            return good;
        }
        /* How many mappings the variables lie in, and how much of them is in memory, in KiB. */
        static long mappings(long *resident) {
            char line[4096];
            unsigned long from, to, kib;
            long count = 0;
            int is_ours = 0;
            FILE *maps = fopen(\"/proc/self/smaps\", \"r\");
            while (maps && fgets(line, sizeof line, maps)) {
                if (sscanf(line, \"%lx-%lx \", &from, &to) == 2) {
                    is_ours = from < (uintptr_t)bytes + SIZE && to > (uintptr_t)bytes;
                    count += is_ours;
                } else if (is_ours && sscanf(line, \"Rss: %lu\", &kib) == 1)
                    *resident += (long)kib;
            }
            if (maps)
                fclose(maps);
            return count;
        }
        int main(void) {
            shmem_init();
            for (long i = 0; i < LARGE; i++)
                bytes[LARGE + i] = (char)(i / 4096 + 1);
            for (long at = 3 * LARGE; at < SIZE - STEP; at += STEP)
                bytes[at] = 7;

            int status = 0;
            for (int i = 0; i < 3 && status == 0; i++) {
                const pid_t child = fork();
                if (child == 0) {
                    long resident = 0;
                    const long count = mappings(&resident);
                    /* 4 MiB are room for two huge pages that are filled in part. */
                    if (count != 1 || resident > (LARGE >> 10) + 4096)
                        printf(\"FAIL %ld mappings with %ld KiB\\n\", count, resident);
                    if (!is_as_it_was())
                        puts(\"FAIL the child's variables\");
                    memset(bytes, 9, 3 * LARGE);
                    fflush(stdout);
                    _exit(0);
                }
                status = 1;
                waitpid(child, &status, 0);
            }

            if (status || !is_as_it_was())
                printf(\"FAIL the parent's variables, the child's status is %x\\n\", status);
            puts(\"n_pes 1\\nPASS\");
            shmem_finalize();
        }
    ";

    for flags in [&["-O2"][..], &["-O2", "-static"]] {
        let program = compile_text("sparse.c", text, tmpdir(), flags);
        Job::new(program).n(1).run().assert_ok(1);
    }
}

/// The calls of a child, by their names in messages.
const CALLS: [&str; 12] = [
    "shmem_init",
    "shmem_finalize",
    "shmem_global_exit",
    "shmem_barrier_all",
    "shmem_malloc",
    "shmem_long_p",
    "shmem_long_g",
    "shmem_putmem",
    "shmem_long_atomic_fetch_add",
    "shmem_long_wait_until",
    "shmem_set_lock",
    "shmem_team_split_strided",
];

/// A program whose children call the library. A child that makes one of `CALLS` ends with a
/// message, and the job goes on. Calls that need nothing outside of the process are allowed.
const CALLING_CHILD: &str = "
    #include <stdio.h>
    #include <string.h>
    #include <sys/wait.h>
    #include <unistd.h>
    #include <shmem.h>
    static long word, lock;
    static int me, n;
    static void call(const char *name) {
        const int next = (me + 1) % n;
        shmem_team_t team;
        if (strcmp(name, \"shmem_init\") == 0) shmem_init();
        if (strcmp(name, \"shmem_finalize\") == 0) shmem_finalize();
        if (strcmp(name, \"shmem_global_exit\") == 0) shmem_global_exit(0);
        if (strcmp(name, \"shmem_barrier_all\") == 0) shmem_barrier_all();
        if (strcmp(name, \"shmem_malloc\") == 0) shmem_malloc(8);
        if (strcmp(name, \"shmem_long_p\") == 0) shmem_long_p(&word, 77, next);
        if (strcmp(name, \"shmem_long_g\") == 0) shmem_long_g(&word, next);
        if (strcmp(name, \"shmem_putmem\") == 0) shmem_putmem(&word, name, 8, next);
        if (strcmp(name, \"shmem_long_atomic_fetch_add\") == 0) shmem_long_atomic_fetch_add(&word, 7, next);
        if (strcmp(name, \"shmem_long_wait_until\") == 0) shmem_long_wait_until(&word, SHMEM_CMP_EQ, 0);
        if (strcmp(name, \"shmem_set_lock\") == 0) shmem_set_lock(&lock);
        if (strcmp(name, \"shmem_team_split_strided\") == 0)
            shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n, 0, 0, &team);
    }
    static int status_of(const char *name) {
        const pid_t child = fork();
        if (child == 0) {
            int answer = -1;
            shmem_query_initialized(&answer);
            shmem_fence();
            shmem_quiet();
            if (answer != 0 || shmem_my_pe() != me || shmem_n_pes() != n)
                _exit(9);
            call(name);
            _exit(0);
        }
        int status = -1;
        waitpid(child, &status, 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    int main(int count, char **names) {
        int good = 1;
        shmem_init();
        me = shmem_my_pe(), n = shmem_n_pes();
        shmem_long_p(&word, 0, (me + 1) % n);
        shmem_barrier_all();
        if (me == 0)
            for (int i = 1; i < count; i++) {
                const int status = status_of(names[i]);
                if (status != 1)
                    printf(\"FAIL %s ended a child with %d\\n\", names[i], status), good = 0;
            }
        if (me == 0 && status_of(\"nothing\") != 0)
            printf(\"FAIL a child that asks who it is\\n\"), good = 0;
        shmem_barrier_all();
        shmem_long_atomic_add(&word, 5, (me + 1) % n);
        shmem_barrier_all();
        if (word != 5)
            printf(\"FAIL PE %d: %ld\\n\", me, word);
        if (me == 0)
            printf(\"n_pes %d\\n%s\\n\", n, good ? \"PASS\" : \"\");
        shmem_finalize();
        return 0;
    }
";

#[test]
fn a_child_that_calls_the_library_ends_with_a_message() {
    let dynamic = compile_text("calling_child.c", CALLING_CHILD, tmpdir(), &[]);
    let fixed = compile_text("calling_child.c", CALLING_CHILD, tmpdir(), &["-static"]);

    assert_messages(Job::new(&dynamic).n(2), 2);
    assert_messages(Job::new(&dynamic).n(2).env("SHMEM_CHECK", 1), 2);
    assert_messages(Job::new(&fixed).n(2), 2);

    let over_tcp = Job::new(&dynamic).env("SHMEM_TRANSPORT", "tcp");
    let off_node = over_tcp.clone().n(2).env("SHMEM_ONNODE", "off");
    assert_messages(off_node, 2);
    let on_two_nodes = over_tcp.n(3).env("SHMEM_VIRTUAL_NODES", "1+2");
    assert_messages(on_two_nodes, 3);

    let alone = Job::direct(&dynamic).args(CALLS).run();
    alone.assert_ok(1);
    let n_messages = alone.stderr.matches("PE 0's child process ").count();
    assert_eq!(n_messages, CALLS.len(), "{alone}");
}

/// Runs a job of `n` PEs of the program above, and checks that there is one message for each of
/// `CALLS`, in their order.
#[track_caller]
fn assert_messages(job: Job, n: usize) {
    let outcome = job.args(CALLS).run();
    outcome.assert_ok(n);

    let messages: Vec<&str> = outcome.stderr.lines().collect();
    assert_eq!(messages.len(), CALLS.len(), "{outcome}");
    for (message, call) in messages.iter().zip(CALLS) {
        let is_of_child = message.starts_with("PE 0's child process ");
        assert!(is_of_child, "{call}: {message}\n{outcome}");

        let reason = format!(": {call}: only the process that called shmem_init");
        assert!(message.contains(&reason), "{call}: {message}\n{outcome}");
    }
}

/// A child that was forked before `shmem_init` has the environment of the PE, and may start a
/// program that loads the library.
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

    let program = compile_text("late_child.c", text, tmpdir(), &[]);
    Job::new(program).n(1).run().assert_ok(1);
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

    // The program calls nothing of the library, so it is not linked with it.
    let program = compile_text("reload.c", text, tmpdir(), &["-Wl,--as-needed"]);
    Job::new(program).n(1).arg(library()).run().assert_ok(1);
}

/// A program that contains the archive, with the shared library preloaded as a tool would do.
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
    let flag = format!(
        "-Wl,--whole-archive,{},--no-whole-archive",
        archive.display()
    );
    let program = compile_text("twice.c", text, tmpdir(), &[&flag]);

    Job::new(program)
        .n(2)
        .env("LD_PRELOAD", library())
        .run()
        .assert_ok(2);
}
