//! Rust and C in one process, in one job: a program in Rust with C in it, and the reverse.

use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::{Job, prefix};

const PES: [usize; 3] = [1, 2, 5];

#[test]
fn a_program_in_rust_calls_c() {
    for n in PES {
        Job::new(env!("CARGO_BIN_EXE_interop")).n(n).run().assert_ok(n);
    }
}

/// What cargo made of an example of this package.
fn example(name: &str) -> PathBuf {
    let this = std::env::current_exe().expect("a test program knows its path");
    let built = this.parent().and_then(Path::parent).expect("it is in target/PROFILE/deps");
    let file = built.join("examples").join(name);
    assert!(file.exists(), "{} is missing: build it by cargo build --examples", file.display());
    file
}

#[test]
fn two_copies_end_with_a_message() {
    let library = prefix().join("lib/librushmem.so.1");
    let outcome = Job::new(example("two_copies")).n(2).arg(library.display()).run();
    let complaint =
        outcome.stderr.lines().find(|line| line.contains("another copy of the library"));
    assert!(complaint.is_some_and(|line| line.contains("shmem_init")), "{outcome}");
    assert!(!outcome.status.success(), "{outcome}");
}

#[test]
fn a_program_in_c_calls_rust() {
    let library = example("libin_rust.a");
    let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("in_c");
    let output = Command::new("cc")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("c/main.c"))
        .arg("-I")
        .arg(prefix().join("include"))
        .arg(&library)
        .args(["-lm", "-lpthread", "-ldl", "-lgcc_s", "-o"])
        .arg(&program)
        .output()
        .expect("there is a C compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for n in PES {
        Job::new(&program).n(n).run().assert_ok(n);
    }
}
