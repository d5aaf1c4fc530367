//! Checks the reports of the race detector, and its settings.

use std::path::{Path, PathBuf};

use testkit::{Job, Outcome, compile, compile_text};

fn tmpdir() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

fn suite(name: &str, flags: &[&str]) -> PathBuf {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("suite");
    compile(&dir.join(name), tmpdir(), &[&["-O0"], flags].concat())
}

fn races(job: Job) -> Outcome {
    job.env("SHMEM_SYMMETRIC_SIZE", "16m").run()
}

/// Returns line `number` of the first report, without indentation.
fn line(outcome: &Outcome, number: usize) -> String {
    let mut lines = outcome
        .stderr
        .lines()
        .skip_while(|line| !line.starts_with("race on"));
    lines.nth(number).unwrap_or_default().trim().to_owned()
}

#[test]
fn a_report_names_both_accesses_the_object_and_what_would_order_them() {
    let found = races(Job::new(suite("put_load.c", &["--race"])).n(2));

    let object = line(&found, 0);
    assert!(object.starts_with("race on x of PE 1 (static, "), "{found}");
    assert!(object.ends_with("put_load.c:5):"), "{found}");

    // Either access may be the first one of the report.
    for (starts, ends) in [
        (
            "PE 0: shmem_long_put of 8 bytes at ",
            "put_load.c:11 (run), in flight since then",
        ),
        ("PE 1: load of 8 bytes at ", "put_load.c:14 (run)"),
        ("called at ", "suite.h:33 (main)"),
    ] {
        let mut lines = found.stderr.lines().map(str::trim);
        assert!(
            lines.any(|line| line.starts_with(starts) && line.ends_with(ends)),
            "{starts}...{ends}\n{found}"
        );
    }

    assert!(
        found
            .stderr
            .contains("shmem_barrier_all between them would, or a put with a signal at")
            && found
                .stderr
                .contains("a flag that follows the put needs shmem_fence before it")
    );
    assert_eq!(found.code(), 66, "{found}");
}

/// A report does not show the header's overloads for C++.
#[test]
fn a_report_names_the_line_of_a_program_in_cxx() {
    const TEXT: &str = "\
#include <shmem.h>
static long x;
int main() {
    shmem_init();
    const long one = 1;
    if (shmem_my_pe() == 0)
        shmem_put(&x, &one, 1, 1);
    else
        x = 2;
    shmem_barrier_all();
    shmem_finalize();
}
";
    for (name, flag) in [("put_o0.cpp", "-O0"), ("put_o2.cpp", "-O2")] {
        let found = races(Job::new(compile_text(name, TEXT, tmpdir(), &["--race", flag])).n(2));
        let place = format!("{name}:7 (main)");
        let put = found
            .stderr
            .lines()
            .find(|line| line.contains("shmem_long_put of 8 bytes at "));
        assert!(put.is_some_and(|line| line.contains(&place)), "{found}");
        assert!(!found.stderr.contains("shmem.h"), "{found}");
    }
}

#[test]
fn a_block_is_named_by_where_it_was_allocated() {
    let found = races(Job::new(suite("block_used_again.c", &["--race"])).n(2));
    assert!(
        line(&found, 0).starts_with("race on the block of PE 1 (64 bytes, allocated at "),
        "{found}"
    );
    assert!(
        line(&found, 0).ends_with("block_used_again.c:13 (run)):"),
        "{found}"
    );
}

#[test]
fn a_program_that_was_not_compiled_for_it_is_checked_by_its_calls() {
    let job = |name: &str, n| races(Job::new(suite(name, &[])).n(n).env("SHMEM_CHECK", "races"));

    let found = job("put_put_of_two.c", 3);
    assert!(
        line(&found, 0).starts_with("race on x of PE 1 (static, "),
        "{found}"
    );
    assert_eq!(found.code(), 66, "{found}");

    let unseen = job("put_load.c", 2);
    assert!(unseen.status.success(), "a load was seen\n{unseen}");
    let summary = unseen.stderr.trim_end();
    assert!(summary.starts_with("rushmem: no race in "), "{unseen}");
    assert!(
        summary.ends_with("; loads and stores were not checked: compile with oshcc --race"),
        "{unseen}"
    );
}

#[test]
fn the_remedy_for_a_context_is_its_quiet() {
    let found = races(Job::new(suite("barrier_and_context.c", &["--race"])).n(2));
    assert!(
        found
            .stderr
            .contains("shmem_ctx_quiet of its context on PE 0"),
        "{found}"
    );
    assert!(
        !found
            .stderr
            .contains("shmem_barrier_all between them would"),
        "{found}"
    );
}

/// Runs a program of two PEs, which have symmetric words and execute the statements `both` after a
/// barrier.
fn advice(name: &str, both: &str) -> Outcome {
    let text = format!(
        "#include <shmem.h>\nstatic long x; static uint64_t sig; static volatile long used;\n\
         int main(void) {{ long v = 1; shmem_init(); int me = shmem_my_pe(); shmem_barrier_all();\n\
         {both}\n shmem_barrier_all(); shmem_finalize(); return 0; }}\n"
    );
    let program = compile_text(name, &text, tmpdir(), &["--race", "-O0", "-w"]);
    races(Job::new(program).n(2))
}

#[test]
fn the_remedy_is_for_these_accesses() {
    let put = "if (me == 0) shmem_long_put(&x, &v, 1, 1);";
    let put_signal = "if (me == 0) shmem_long_put_signal(&x, &v, 1, &sig, 1, SHMEM_SIGNAL_SET, 1);";
    for (name, both, remedies) in [
        (
            "two_puts.c",
            format!("{put}\n{put}"),
            &["  Nothing orders the two. shmem_fence between"][..],
        ),
        (
            "counted_by_get_and_put.c",
            "shmem_long_p(&x, shmem_long_g(&x, 0) + 1, 0);".to_owned(),
            &[
                "an atomic operation such as shmem_atomic_add",
                "shmem_set_lock",
            ],
        ),
        (
            "prepared_late.c",
            format!("if (me == 1) x = 0;\n{put_signal}"),
            &["after the store, if it prepares the memory for shmem_long_put_signal"],
        ),
        (
            "put_with_signal.c",
            format!("{put_signal}\nif (me == 1) used = x;"),
            &["  Nothing orders the two. shmem_signal_wait_until for its signal before"],
        ),
        (
            "loaded_signal.c",
            format!("{put_signal}\nif (me == 1) used = sig;"),
            &["shmem_signal_fetch on PE 1 reads a signal"],
        ),
        (
            "got_while_swapped.c",
            "if (me == 0) v = shmem_long_atomic_compare_swap(&x, 0, 2, 0);\n\
             else shmem_long_get(&v, &x, 1, 0);"
                .to_owned(),
            &["shmem_atomic_fetch in place of shmem_long_get would make both atomic"],
        ),
        (
            "put_while_added.c",
            "if (me == 0) shmem_long_atomic_add(&x, 1, 0); else shmem_long_p(&x, v, 0);".to_owned(),
            &["shmem_atomic_set in place of shmem_long_p would make both atomic"],
        ),
    ] {
        let found = advice(name, &both);
        for remedy in remedies {
            assert!(found.stderr.contains(remedy), "{name}: {remedy}\n{found}");
        }
    }
}

#[test]
fn callers_at_the_same_depth_are_distinguished() {
    let text = r#"
#include <shmem.h>
static long x[2];
static volatile long used;
static void put(long *to) { shmem_long_p(to, 1, 1); }
static void first(void) { put(&x[0]); }
static void second(void) { put(&x[1]); }
int main(void) {
    shmem_init();
    shmem_barrier_all();
    for (int i = 0; i < 3 && shmem_my_pe() == 0; i++) {
        first();
        second();
    }
    shmem_sync_all();
    if (shmem_my_pe() == 1)
        used = x[0] + x[1];
    shmem_finalize();
    return 0;
}
"#;
    let program = compile_text("callers.c", text, tmpdir(), &["--race", "-O0"]);
    let found = races(Job::new(program).n(2));
    for (object, caller) in [
        ("x", "callers.c:6 (first)"),
        ("x[1]", "callers.c:7 (second)"),
    ] {
        let report = found.stderr.split("race on ").find(|report| {
            report.starts_with(&format!("{object} of PE 1 ")) && report.contains("load of 8")
        });
        assert!(
            report.is_some_and(|report| report.contains(caller)),
            "{caller}\n{found}"
        );
    }
}

#[test]
fn the_first_store_is_counted() {
    let found = advice(
        "one_store.c",
        "if (me == 1) x = 1; else shmem_long_get(&v, &x, 1, 1);",
    );
    assert!(found.stderr.contains("rushmem: 1 race in "), "{found}");
    assert!(!found.stderr.contains(" and 0 loads and stores"), "{found}");
}

#[test]
fn an_element_is_named_as_c_writes_it() {
    let text = r#"
#include <shmem.h>
typedef double Row[66];
static Row u[4];
static volatile long cube[2][3][4];
static long list[9];
int main(void) {
    long one = 1;
    double half = 0.5;
    shmem_init();
    if (shmem_my_pe() != 1) {
        shmem_double_put(&u[0][65], &half, 1, 1);
        shmem_long_put((long *)&cube[1][2][3], &one, 1, 1);
        shmem_long_put(&list[7], &one, 1, 1);
    }
    shmem_finalize();
    return 0;
}
"#;
    let program = compile_text("elements.c", text, tmpdir(), &["-g"]);
    let found = races(Job::new(program).n(3).env("SHMEM_CHECK", "races"));
    for name in ["u[0][65]", "cube[1][2][3]", "list[7]"] {
        assert!(
            found
                .stderr
                .contains(&format!("race on {name} of PE 1 (static, ")),
            "{name}\n{found}"
        );
    }
}

#[test]
fn without_the_setting_nothing_is_checked() {
    let found = Job::new(suite("put_put_of_two.c", &[])).n(3).run();
    assert!(found.status.success() && found.stderr.is_empty(), "{found}");
}

#[test]
fn a_compiled_program_can_be_run_without_the_detector() {
    let program = suite("put_load.c", &["--race"]);
    let found = races(Job::new(program).n(2).env("SHMEM_CHECK", "0"));
    assert!(found.status.success() && found.stderr.is_empty(), "{found}");
}

#[test]
fn the_exit_status_can_be_chosen() {
    let program = suite("put_load.c", &["--race"]);

    let found = races(Job::new(&program).n(2).env("SHMEM_RACES_STATUS", "0"));
    assert!(
        found.status.success() && found.stderr.contains("race on x"),
        "{found}"
    );

    let found = races(Job::new(&program).n(2).env("SHMEM_RACES_STATUS", "3"));
    assert_eq!(found.code(), 3, "{found}");
}

#[test]
fn suppressed_races_are_not_reported() {
    let program = suite("put_load.c", &["--race"]);
    for (line, is_suppressed) in [
        ("function:run", true),
        ("object:x", true),
        ("object:y", false),
        ("# object:x", false),
    ] {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), line).expect("a line");
        let path = file.path().to_str().expect("a plain name");
        let found = races(
            Job::new(&program)
                .n(2)
                .env("SHMEM_RACES_SUPPRESSIONS", path),
        );
        assert_eq!(found.status.success(), is_suppressed, "{line}\n{found}");
        assert_eq!(
            !found.stderr.contains("race on x"),
            is_suppressed,
            "{line}\n{found}"
        );
    }
}

#[test]
fn a_file_of_suppressions_that_cannot_be_read_is_a_mistake() {
    let program = suite("put_load.c", &["--race"]);
    let found = races(
        Job::new(program)
            .n(1)
            .env("SHMEM_RACES_SUPPRESSIONS", "/does/not/exist"),
    );
    found.assert_fails(&["SHMEM_RACES_SUPPRESSIONS", "/does/not/exist"]);
}

/// Over TCP a single look at the network hardly ever completes a put of megabytes.
#[test]
fn a_quiet_that_has_reached_its_limit_completes_nothing() {
    const TEXT: &str = "\
#include <shmemx.h>
#include <stdlib.h>
static char x[8 << 20];
int main(void) {
    shmem_init();
    char *source = malloc(sizeof x);
    if (shmem_my_pe() == 0) {
        do
            shmem_putmem_nbi(x, source, sizeof x, 1);
        while (shmemx_quiet_timed(0) != SHMEMX_TIMED_OUT);
        source[9] = 2;
        shmem_quiet();
        source[9] = 3;
    }
    shmem_finalize();
}
";
    let program = compile_text("quiet_timed_out.c", TEXT, tmpdir(), &["--race", "-O0"]);
    let found = Job::new(program)
        .n(2)
        .env("SHMEM_SYMMETRIC_SIZE", "16m")
        .env("SHMEM_ONNODE", "off")
        .env("SHMEM_TRANSPORT", "tcp")
        .run();
    assert_eq!(found.code(), 66, "{found}");
    assert!(
        found.stderr.contains("quiet_timed_out.c:11 (main)"),
        "{found}"
    );
    assert!(found.stderr.contains("rushmem: 1 race in "), "{found}");
}

#[test]
fn openmp_threads_are_followed() {
    let text = r#"
#include <shmem.h>
static long x, got;
int main(void) {
    int provided;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    shmem_barrier_all();
#pragma omp parallel num_threads(2)
    {
#pragma omp single NOWAIT
        shmem_long_get(&got, &x, 1, 0);
        if (got > 1)
            shmem_global_exit(1);
    }
    shmem_finalize();
    return 0;
}
"#;
    let flags = ["--race", "-O0", "-fopenmp"];

    let waits = text.replace("NOWAIT", "");
    let clean = compile_text("openmp_waits.c", &waits, tmpdir(), &flags);
    let found = races(Job::new(clean).n(1));
    assert!(found.status.success(), "{found}");

    let goes_on = text.replace("NOWAIT", "nowait");
    let racy = compile_text("openmp_goes_on.c", &goes_on, tmpdir(), &flags);
    let found = races(Job::new(racy).n(1));
    assert!(
        found.stderr.contains("race on got of PE 0 (static, "),
        "{found}"
    );
}

/// Compiles a program of `tests/programs` for the detector.
fn program(name: &str, flags: &[&str]) -> PathBuf {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    compile(
        &dir.join(name),
        tmpdir(),
        &[&["--race", "-O0"], flags].concat(),
    )
}

#[test]
fn what_orders_threads_is_no_race() {
    for name in ["threads.c", "threads.cpp"] {
        let found = races(Job::new(program(name, &["-pthread"])).n(1));
        assert!(found.status.success(), "{name}\n{found}");
        assert!(
            found.stderr.starts_with("rushmem: no race in "),
            "{name}\n{found}"
        );
    }
}

#[test]
fn what_orders_threads_of_openmp_is_no_race() {
    for name in ["openmp.c", "openmp_locks.f90"] {
        let found = races(Job::new(program(name, &["-fopenmp"])).n(1));
        assert!(found.status.success(), "{name}\n{found}");
        assert!(
            found.stderr.starts_with("rushmem: no race in "),
            "{name}\n{found}"
        );
    }
}

/// The stack of a thread that has ended is not the program's any more.
#[test]
fn a_thread_does_not_end_before_its_put_is_complete() {
    const TEXT: &str = "\
#include <pthread.h>
#include <shmem.h>
static long x[8];
static void *puts_from_stack(void *argument) {
    long from[8] = {1};
    shmem_long_put_nbi(x, from, 8, 0);
    COMPLETE;
    return argument;
}
int main(void) {
    int provided;
    pthread_t thread;
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    pthread_create(&thread, 0, puts_from_stack, 0);
    pthread_join(thread, 0);
    shmem_finalize();
    return 0;
}
";
    let job = |name: &str, complete: &str| {
        let define = format!("-DCOMPLETE={complete}");
        let program = compile_text(name, TEXT, tmpdir(), &["--race", "-O0", &define]);
        races(Job::new(program).n(1))
    };

    let found = job("ends_early.c", "(void)0");
    assert!(found.stderr.contains("rushmem: 1 race in "), "{found}");
    assert!(found.stderr.contains(": end of the thread at"), "{found}");

    let clean = job("ends_after_quiet.c", "shmem_quiet()");
    assert!(clean.status.success(), "{clean}");
}

#[test]
fn memory_that_is_used_again_is_no_race() {
    let found = races(Job::new(program("reused_memory.c", &["-pthread"])).n(1));
    assert!(found.status.success(), "{found}");
    assert!(found.stderr.starts_with("rushmem: no race in "), "{found}");
}

#[test]
fn threads_that_have_ended_take_no_memory() {
    let job = Job::new(program("many_threads.c", &["-fopenmp"])).n(1);
    let found = races(job.env("OMP_WAIT_POLICY", "passive"));
    assert!(found.status.success(), "{found}");
    assert!(found.stderr.starts_with("rushmem: no race in "), "{found}");
}

#[test]
fn a_child_has_no_detector() {
    let found = races(Job::new(program("children.c", &[])).n(2));
    assert!(found.status.success(), "{found}");
    assert!(found.stderr.starts_with("rushmem: no race in "), "{found}");
}

#[test]
fn oshcc_wraps_what_the_detector_stands_before() {
    /// Runs a command. Returns the ends, sorted, of those of its words that begin with `prefix`.
    fn named(command: &mut std::process::Command, prefix: &str) -> Vec<String> {
        let output = command.output().expect("a command that can be started");
        assert!(output.status.success(), "{output:?}");
        let output = String::from_utf8(output.stdout).expect("names");
        let mut names: Vec<String> = output
            .split_whitespace()
            .filter_map(|word| word.strip_prefix(prefix))
            .map(str::to_owned)
            .collect();
        names.sort_unstable();
        names
    }

    let prefix = testkit::prefix();
    let defined = named(
        std::process::Command::new("nm")
            .args(["-D", "--defined-only"])
            .arg(prefix.join("lib/librushmem-race.so")),
        "__wrap_",
    );
    let wrapped = named(
        std::process::Command::new(prefix.join("bin/oshcc")).args(["--race", "--showme", "x.c"]),
        "--wrap=",
    );
    assert_eq!(wrapped, defined);
}

#[test]
fn a_static_program_cannot_have_it() {
    let oshcc = testkit::prefix().join("bin/oshcc");
    let refused = std::process::Command::new(oshcc)
        .args(["--race", "-static", "x.c"])
        .output()
        .expect("oshcc can be started");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && said.contains("--race and -static"),
        "{said}"
    );

    let oshcxx = testkit::prefix().join("bin/oshcxx");
    let refused = std::process::Command::new(oshcxx)
        .args(["--race", "-static-libstdc++", "x.cpp"])
        .output()
        .expect("oshcxx can be started");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("--race and -static-libstdc++"), "{said}");

    for flag in ["-static", "-static-pie"] {
        for n in [1, 2] {
            let job = races(
                Job::new(suite("put_put_of_two.c", &[flag]))
                    .n(n)
                    .env("SHMEM_CHECK", "races"),
            );
            job.assert_fails(&[
                "SHMEM_CHECK is races",
                "statically linked",
                "link the program dynamically",
            ]);
        }
    }
}
