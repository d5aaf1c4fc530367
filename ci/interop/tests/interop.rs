//! Rust and C in one process, in one job: a program in Rust with C in it, and the reverse.

use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::{Job, prefix};

const PES: [usize; 3] = [1, 2, 5];

#[test]
fn a_program_in_rust_calls_c() {
    for n in PES {
        Job::new(env!("CARGO_BIN_EXE_interop"))
            .n(n)
            .run()
            .assert_ok(n);
    }
}

/// Returns the path of the file that cargo built of an example of this package.
fn example(name: &str) -> PathBuf {
    let this = std::env::current_exe().expect("a test program knows its path");
    let built = this
        .parent()
        .and_then(Path::parent)
        .expect("it is in target/PROFILE/deps");
    let file = built.join("examples").join(name);
    assert!(
        file.exists(),
        "{} is missing: build it by cargo build --examples",
        file.display()
    );
    file
}

#[test]
fn two_copies_end_with_a_message() {
    let library = prefix().join("lib/librushmem.so.1");
    let outcome = Job::new(example("two_copies"))
        .n(2)
        .arg(library.display())
        .run();
    let complaint = outcome
        .stderr
        .lines()
        .find(|line| line.contains("another copy of the library"));
    assert!(
        complaint.is_some_and(|line| line.contains("shmem_init")),
        "{outcome}"
    );
    assert!(!outcome.status.success(), "{outcome}");
}

/// Returns a program in C, linked with a library in Rust.
fn linked(source: &str, library: &Path, more: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("c").join(source);
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(source.file_stem().expect("a name"));
    let output = Command::new("cc")
        .arg(source)
        .arg("-I")
        .arg(prefix().join("include"))
        .arg(library)
        .args(more)
        .arg("-o")
        .arg(&program)
        .output()
        .expect("there is a C compiler");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    program
}

#[test]
fn a_program_in_c_calls_rust() {
    let more = ["-lm", "-lpthread", "-ldl", "-lgcc_s"];
    let program = linked("main.c", &example("libin_rust.a"), &more);
    for n in PES {
        Job::new(&program).n(n).run().assert_ok(n);
    }
}

/// Memory that the library allocates is symmetric. Its static variables are not, since only those
/// of the program are.
#[test]
fn a_shared_library_in_rust_is_in_a_job() {
    let program = linked("loads.c", &example("libin_library.so"), &[]);
    for n in PES {
        Job::new(&program).n(n).run().assert_ok(n);
    }

    // The library panics, and no frame of the program catches that.
    let outcome = Job::new(&program).n(2).arg("with_static").run();
    assert!(!outcome.status.success(), "{outcome}");
    let message = "SymStatic: the variable is not symmetric";
    assert!(outcome.stderr.contains(message), "{outcome}");
}
