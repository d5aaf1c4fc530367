//! Static data are symmetric however a program is built and started: with different compilers,
//! linkers, sanitizers and languages, with tools, threads and children that exist before
//! `shmem_init`, and if PEs cannot share their static data.
//!
//! Most tests run `statics.c`, which tests/programs.rs also runs. A test whose tools are not
//! installed is ignored.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use testkit::{Job, Outcome, absent, compile_text, prefix, program};

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/programs")
        .join(name)
}

fn tmpdir() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// Returns true if a program is installed.
fn is_here(tool: &str) -> bool {
    Command::new(tool).arg("--version").output().is_ok()
}

/// Ignores the test if the program is not installed.
fn needs(tool: &str) {
    if !is_here(tool) {
        absent(format!("{tool} is not here"));
    }
}

/// Returns the directory in which rustc has its lld under the name that compilers use.
fn lld() -> Option<String> {
    let rustc = Command::new("rustc")
        .args(["--print", "target-libdir"])
        .output()
        .ok()?;

    let libraries = PathBuf::from(String::from_utf8(rustc.stdout).ok()?.trim());
    let dir = libraries.parent()?.join("bin/gcc-ld");
    if dir.join("ld.lld").exists() {
        Some(dir.display().to_string())
    } else {
        None
    }
}

/// Compiles a program with `compiler` by the wrapper of the prefix. Returns `None`, and prints the
/// reason, if the compiler has no library for a sanitizer.
fn build(name: &str, compiler: &str, flags: &[&str]) -> Option<PathBuf> {
    let (wrapper, variable) = if name.ends_with(".cpp") {
        ("oshcxx", "OSHCXX_CXX")
    } else {
        ("oshcc", "OSHCC_CC")
    };

    let letters = flags
        .concat()
        .replace(|c: char| !c.is_ascii_alphanumeric(), "");
    let program = tmpdir().join(format!("statics-{name}-{compiler}{letters}"));

    let oshcc = prefix().join("bin").join(wrapper);
    let common = ["-O1", "-g", "-Wall", "-Wextra", "-pthread"];
    let mut command = Command::new(oshcc);
    command
        .env(variable, compiler)
        .args(common)
        .args(flags)
        .arg(source(name))
        .arg("-o")
        .arg(&program);

    let made = command.output().expect("oshcc can be started");
    if made.status.success() {
        return Some(program);
    }

    let text = String::from_utf8_lossy(&made.stderr);
    let is_sanitized = flags.iter().any(|flag| flag.starts_with("-fsanitize"));
    let lacks_library = text.contains("cannot find");
    assert!(is_sanitized && lacks_library, "{command:?}\n{text}");

    println!("left out: {compiler} has no library for {flags:?}");
    None
}

fn on_node_and_off(program: &Path) {
    Job::new(program).n(3).run().assert_ok(3);
    Job::new(program)
        .n(3)
        .env("SHMEM_ONNODE", "off")
        .run()
        .assert_ok(3);
}

const KINDS: [&[&str]; 9] = [
    &["-fPIE", "-pie"],
    &["-no-pie"],
    &["-static"],
    &["-static-pie"],
    &["-Wl,-z,now"],
    &["-Wl,-z,norelro"],
    &["-Wl,-z,lazy", "-fcommon"],
    &["-mcmodel=medium", "-fPIE"],
    &["-O3", "-fuse-ld=lld"],
];

fn every_kind(name: &str, compiler: &str) {
    needs(compiler);
    let dir_of_lld = lld().map(|dir| format!("-B{dir}"));

    for kind in KINDS {
        if kind.contains(&"-mcmodel=medium") && !cfg!(target_arch = "x86_64") {
            continue;
        }

        let mut flags = kind.to_vec();
        if kind.contains(&"-fuse-ld=lld") {
            let Some(option) = &dir_of_lld else {
                println!("left out: rustc brought no lld");
                continue;
            };
            flags.push(option);
        }

        if let Some(program) = build(name, compiler, &flags) {
            on_node_and_off(&program);
        }
    }
}

fn c_by_gcc() {
    every_kind("statics.c", "gcc");
}

fn c_by_clang() {
    every_kind("statics.c", "clang");
}

fn cxx_by_gcc() {
    every_kind("statics_cxx.cpp", "g++");
}

fn cxx_by_clang() {
    every_kind("statics_cxx.cpp", "clang++");
}

/// Only on one node: a sanitizer does not know how other processes and the library's threads are
/// synchronized.
fn sanitizers() {
    for compiler in ["gcc", "clang"] {
        for flag in [
            "-fsanitize=address",
            "-fsanitize=thread",
            "-fsanitize=undefined",
        ] {
            if is_here(compiler)
                && let Some(program) = build("statics.c", compiler, &[flag])
            {
                Job::new(program).n(2).run().assert_ok(2);
            }
        }
    }
}

/// A program in Rust, which the linker gives two writable segments.
fn rust() {
    let text = r#"
        use std::ptr::addr_of_mut;
        unsafe extern "C" {
            fn shmem_init();
            fn shmem_finalize();
            fn shmem_barrier_all();
            fn shmem_my_pe() -> i32;
            fn shmem_n_pes() -> i32;
            fn shmem_int_p(dest: *mut i32, value: i32, pe: i32);
            fn shmem_int_g(source: *const i32, pe: i32) -> i32;
        }
        static mut ZERO: [i32; 5000] = [0; 5000];
        static mut VALUES: [i32; 3] = [5, 6, 7];
        fn main() {
            unsafe {
                VALUES[1] += 1;
                shmem_init();
                let me = shmem_my_pe();
                let n = shmem_n_pes();
                let ok = VALUES[1] == 7 && ZERO[4999] == 0;
                shmem_barrier_all();
                shmem_int_p(addr_of_mut!(ZERO[4999]), me + 1, (me + 1) % n);
                shmem_int_p(addr_of_mut!(VALUES[2]), me + 1, (me + 1) % n);
                shmem_barrier_all();
                let left = (me + n - 1) % n;
                let ok = ok && ZERO[4999] == left + 1 && VALUES[2] == left + 1;
                let ok = ok && shmem_int_g(addr_of_mut!(VALUES[0]), left) == 5;
                if !ok { println!("FAIL PE {me}: {} {}", ZERO[4999], VALUES[2]); }
                if me == 0 { println!("n_pes {n}\nPASS"); }
                shmem_finalize();
            }
        }
    "#;

    let file = tmpdir().join("statics_rust.rs");
    std::fs::write(&file, text).expect("a file");
    let lib = prefix().join("lib");
    let program = file.with_extension("out");

    for flags in [
        &[][..],
        &["-C", "relocation-model=static"],
        &["-C", "link-arg=-fuse-ld=bfd"],
    ] {
        let made = Command::new("rustc")
            .args(["--edition=2024", "-O", "-L"])
            .arg(&lib)
            .args(["-l", "rushmem", "-C"])
            .arg(format!("link-arg=-Wl,-rpath,{}", lib.display()))
            .args(flags)
            .arg(&file)
            .arg("-o")
            .arg(&program)
            .output()
            .expect("rustc is here");
        let errors = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "{errors}");

        on_node_and_off(&program);
    }
}

/// Compiles a shared library from `text`, to a different file in each call, since another test may
/// be loading an earlier one.
fn library(name: &str, text: &str, flags: &[&str]) -> String {
    static N_LIBRARIES: AtomicU32 = AtomicU32::new(0);
    let number = N_LIBRARIES.fetch_add(1, Ordering::Relaxed);

    let file = tmpdir().join(format!("statics_{name}{number}.c"));
    std::fs::write(&file, text).expect("a file");
    let library = file.with_extension("so");

    let made = Command::new("gcc")
        .args(["-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-pthread"])
        .args(flags)
        .arg(&file)
        .arg("-o")
        .arg(&library)
        .output()
        .expect("gcc is here");
    let errors = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "{errors}");

    library.display().to_string()
}

/// Returns a tool that starts a thread before any other library is initialized.
fn busy_tool() -> String {
    let text = "
        #include <pthread.h>
        #include <unistd.h>
        static void *idle(void *nothing) {
            for (;;)
                pause();
            return nothing;
        }
        __attribute__((constructor)) static void start(void) {
            pthread_t thread;
            pthread_create(&thread, 0, idle, 0);
        }
    ";

    library("busy", text, &["-Wl,-z,initfirst"])
}

/// Returns a job of `statics.c` whose PEs are started by a shell, after the command `first`.
fn job_after(first: &str, n: usize) -> Job {
    let program = program!("statics.c");
    Job::new("/bin/sh")
        .n(n)
        .arg("-c")
        .arg(format!("{first} exec {}", program.display()))
}

/// Checks that the job succeeded, and reported that static data are accessed in this way.
#[track_caller]
fn assert_static_data(outcome: &Outcome, n: usize, way: &str) {
    outcome.assert_ok(n);
    let is_this_way = outcome.stderr.contains(&format!("static_data=\"{way}"));
    assert!(is_this_way, "{way} was not the way\n{outcome}");
}

fn threads_that_are_there_first_leave_the_transport() {
    let first = format!("export LD_PRELOAD={};", busy_tool());

    for n in [1, 2, 3, 8] {
        let outcome = job_after(&first, n).env("SHMEM_DEBUG", "2").run();
        let way = if n == 1 {
            "like the heap"
        } else {
            "by the transport"
        };
        assert_static_data(&outcome, n, way);
        let has_reason = outcome.stderr.contains("other threads ran already");
        assert!(has_reason, "no reason\n{outcome}");
    }

    job_after(&first, 6)
        .env("SHMEM_VIRTUAL_NODES", "1+2+3")
        .run()
        .assert_ok(6);

    job_after(&first, 3)
        .env("SHMEM_ONNODE", "off")
        .run()
        .assert_ok(3);
}

fn a_pe_whose_static_data_are_not_shared_may_be_the_only_one() {
    let tool = busy_tool();
    let first = format!("[ $SHMEM_LOCAL_ID = 1 ] && export LD_PRELOAD={tool};");

    for n in [2, 3] {
        let outcome = job_after(&first, n).env("SHMEM_DEBUG", "2").run();
        assert_static_data(&outcome, n, "by the transport");
    }
}

/// A limit of file sizes that allows the file of a small heap, but not static data behind it.
fn a_limit_of_file_sizes_leaves_them_where_they_are() {
    let outcome = job_after("ulimit -f 4000000;", 2)
        .env("SHMEM_SYMMETRIC_SIZE", "1m")
        .env("SHMEM_DEBUG", "2")
        .run();
    assert_static_data(&outcome, 2, "by the transport");
}

/// Children before `shmem_init` have the environment of the PE. So a preloaded library finds in
/// each of them the same place in the job, which must remain that of the parent.
fn children_that_load_the_library_first_leave_the_parent_its_place() {
    let text = "
        #include <stdio.h>
        #include <stdlib.h>
        #include <shmem.h>
        static int word = 5, words[3000];
        int main(void) {
            words[2999] = 6;
            if (system(\"exit 3\") == -1 || system(\"true | cat\"))
                puts(\"FAIL: no shell\");
            shmem_init();
            const int me = shmem_my_pe(), n = shmem_n_pes(), left = (me + n - 1) % n;
            int ok = word == 5 && words[2999] == 6 && shmem_int_g(&words[2999], left) == 6;
            shmem_barrier_all();
            shmem_int_p(&word, me, (me + 1) % n);
            shmem_barrier_all();
            if (!ok || word != left)
                printf(\"FAIL PE %d: %d\\n\", me, word);
            if (me == 0)
                printf(\"n_pes %d\\nPASS\\n\", n);
            shmem_finalize();
        }
    ";

    let program = compile_text("early_children.c", text, tmpdir(), &[]);
    let library = prefix().join("lib/librushmem.so.1");
    let command = format!(
        "exec env LD_PRELOAD={} {}",
        library.display(),
        program.display()
    );

    for wrapped in [command.clone(), format!("{command} || exit 1")] {
        Job::new("/bin/sh")
            .n(3)
            .arg("-c")
            .arg(wrapped)
            .run()
            .assert_ok(3);
    }

    Job::new(&program)
        .n(3)
        .env("LD_PRELOAD", library.display())
        .run()
        .assert_ok(3);
}

/// The child calls `shmem_init`. Its variables are not those that were prepared for sharing when
/// the program was loaded.
fn a_child_may_be_the_pe() {
    let text = "
        #include <stdio.h>
        #include <sys/wait.h>
        #include <unistd.h>
        #include <shmem.h>
        static long words[3000];
        int main(void) {
            words[0] = 4;
            const pid_t child = fork();
            if (child) {
                int status = 1;
                waitpid(child, &status, 0);
                return status != 0 || words[0] != 4 || words[1] != 0;
            }
            words[1] = 5;
            shmem_init();
            const int me = shmem_my_pe(), n = shmem_n_pes(), left = (me + n - 1) % n;
            int ok = words[0] == 4 && shmem_long_g(&words[1], left) == 5;
            shmem_barrier_all();
            shmem_long_put(&words[0], (long[]){me, me + 1}, 2, (me + 1) % n);
            shmem_barrier_all();
            if (!ok || words[0] != left || words[1] != left + 1)
                printf(\"FAIL PE %d: %d %ld %ld\\n\", me, ok, words[0], words[1]);
            if (me == 0)
                printf(\"n_pes %d\\nPASS\\n\", n);
            shmem_finalize();
            return 0;
        }
    ";

    Job::new(compile_text("child.c", text, tmpdir(), &[]))
        .n(3)
        .run()
        .assert_ok(3);
}

fn the_programs_threads_may_run_before_init() {
    let text = "
        #include <pthread.h>
        #include <stdio.h>
        #include <shmem.h>
        static long counted, word;
        static int end;
        static void *count(void *nothing) {
            while (!__atomic_load_n(&end, __ATOMIC_ACQUIRE))
                __atomic_fetch_add(&counted, 1, __ATOMIC_RELAXED);
            return nothing;
        }
        int main(void) {
            pthread_t thread;
            int provided;
            pthread_create(&thread, NULL, count, NULL);
            shmem_init_thread(SHMEM_THREAD_FUNNELED, &provided);
            const int me = shmem_my_pe(), n = shmem_n_pes();
            if (!shmem_ptr(&word, (me + 1) % n))
                printf(\"FAIL PE %d: not shared\\n\", me);
            shmem_long_atomic_inc(&word, 0);
            shmem_barrier_all();
            if (shmem_long_g(&word, 0) != n)
                printf(\"FAIL PE %d: %ld\\n\", me, shmem_long_g(&word, 0));
            __atomic_store_n(&end, 1, __ATOMIC_RELEASE);
            pthread_join(thread, NULL);
            if (me == 0)
                printf(\"n_pes %d\\nPASS\\n\", n);
            shmem_finalize();
        }
    ";

    Job::new(compile_text("early_threads.c", text, tmpdir(), &[]))
        .n(3)
        .run()
        .assert_ok(3);
}

/// Starts and forks touch only variables that are in use: many machines have less memory than 4 GiB
/// for each PE.
fn four_gib_of_variables() {
    if !cfg!(target_arch = "x86_64") {
        absent("variables of this size need x86-64's medium code model");
    }

    let text = "
        #include <stdio.h>
        #include <sys/resource.h>
        #include <sys/wait.h>
        #include <unistd.h>
        #include <shmem.h>
        enum { LAST = 512 << 20 };
        static long large[LAST + 1];
        int main(void) {
            large[LAST] = 3;
            shmem_init();
            const int me = shmem_my_pe(), n = shmem_n_pes(), left = (me + n - 1) % n;
            int ok = shmem_long_g(&large[LAST], left) == 3;
            shmem_barrier_all();
            shmem_long_p(&large[LAST / 2], me, (me + 1) % n);
            shmem_barrier_all();
            const pid_t child = fork();
            if (child == 0) {
                ok = large[LAST / 2] == left && large[LAST] == 3 && large[7] == 0;
                large[LAST / 2] = -1;
                _exit(!ok);
            }
            int status = 1;
            waitpid(child, &status, 0);
            struct rusage usage, of_child;
            getrusage(RUSAGE_SELF, &usage);
            getrusage(RUSAGE_CHILDREN, &of_child);
            const long most = usage.ru_maxrss > of_child.ru_maxrss ? usage.ru_maxrss : of_child.ru_maxrss;
            if (!ok || status || large[LAST / 2] != left || most > 500 * 1000)
                printf(\"FAIL PE %d: %d %ld, %ld KiB\\n\", me, status, large[LAST / 2], most);
            if (me == 0)
                printf(\"n_pes %d\\nPASS\\n\", n);
            shmem_finalize();
        }
    ";

    let program = compile_text("four_gib.c", text, tmpdir(), &["-mcmodel=medium"]);
    on_node_and_off(&program);
}

fn under_a_debugger() {
    needs("gdb");

    let mut job = Job::new("gdb").n(2).args(["-batch", "-nx"]);
    for command in [
        "set breakpoint pending on",
        "break shmem_finalize",
        "run",
        "backtrace",
        "print initial",
        "continue",
    ] {
        job = job.args(["-ex", command]);
    }

    let outcome = job
        .arg("--args")
        .arg(program!("statics.c").display())
        .run();
    outcome.assert_ok(2);
    let has_backtrace = outcome.lines().any(|line| line.contains("main"));
    assert!(has_backtrace, "no backtrace\n{outcome}");
    let has_variable = outcome.lines().any(|line| line.starts_with("$1 = "));
    assert!(has_variable, "no variable\n{outcome}");
}

fn pes_of_different_programs_are_distinguished() {
    let one = program!("statics.c");
    let other = program!("rma.c");
    let command = format!(
        "[ $SHMEM_LOCAL_ID = 0 ] && exec {}; exec {}",
        one.display(),
        other.display()
    );

    let outcome = Job::new("/bin/sh").n(2).arg("-c").arg(command).run();
    outcome.assert_fails(&["PE 0", "PE 1", "shmem_init", "another program"]);
}

fn a_static_program_names_the_transports_that_it_has() {
    let program = program!("statics.c", "-static");
    Job::new(&program)
        .n(3)
        .env("SHMEM_TRANSPORT", "tcp")
        .env("SHMEM_VIRTUAL_NODES", "3")
        .run()
        .assert_ok(3);

    let outcome = Job::new(&program).n(2).env("SHMEM_TRANSPORT", "ucx").run();
    outcome.assert_fails(&["SHMEM_TRANSPORT", "ucx", "statically", "tcp"]);
}

testkit::module_tests! {
    c_by_gcc,
    c_by_clang,
    cxx_by_gcc,
    cxx_by_clang,
    sanitizers,
    rust,
    threads_that_are_there_first_leave_the_transport,
    a_pe_whose_static_data_are_not_shared_may_be_the_only_one,
    a_limit_of_file_sizes_leaves_them_where_they_are,
    children_that_load_the_library_first_leave_the_parent_its_place,
    a_child_may_be_the_pe,
    the_programs_threads_may_run_before_init,
    four_gib_of_variables,
    under_a_debugger,
    pes_of_different_programs_are_distinguished,
    a_static_program_names_the_transports_that_it_has,
}
