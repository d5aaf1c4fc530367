//! Programs in C, C++ and Fortran, each compiled once per test process by the prefix's own wrapper.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::harness::absent;
use crate::permits;
use crate::prefix::prefix;

/// Returns the wrapper and the flags for a source file, whose extension names its language.
fn compiler(source: &Path) -> (&'static str, &'static [&'static str]) {
    // Warnings are errors: the programs are also a test of the header.
    const C: &[&str] = &["-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread"];
    // Routines take arrays of any type, of which gfortran warns whatever its options are.
    const FORTRAN: &[&str] = &["-O1", "-g", "-w", "-fcray-pointer", "-fallow-argument-mismatch"];
    match source.extension().and_then(|extension| extension.to_str()) {
        Some("cpp") => ("oshcxx", C),
        Some("f" | "F" | "f90" | "F90") => ("oshfort", FORTRAN),
        _ => ("oshcc", C),
    }
}

/// Ends the test as ignored where its programs cannot be compiled: Fortran compilers are not
/// everywhere.
pub fn needs_fortran() {
    let named = std::env::var("OSHFORT_FC").unwrap_or_default();
    let fortran = if named.is_empty() { "gfortran" } else { &named };
    if Command::new(fortran).arg("--version").output().is_err() {
        absent("there is no Fortran compiler (the package gfortran)");
    }
}

type CompiledProgram = Arc<OnceLock<PathBuf>>;

/// Compiles `source`, whose extension names its language, into a directory of this process under
/// `tmpdir` and returns the program. A second call for the same source and flags returns the same
/// program. A test that wants a Fortran program where there is no compiler is ignored.
///
/// # Panics
/// When the compiler refuses the source; the text holds what it said.
pub fn compile(source: &Path, tmpdir: &Path, flags: &[&str]) -> PathBuf {
    if compiler(source).0 == "oshfort" {
        needs_fortran();
    }
    static MADE: Mutex<Option<HashMap<(PathBuf, String), CompiledProgram>>> = Mutex::new(None);
    let cell = {
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (source.to_owned(), flags.join(" "));
        Arc::clone(made.get_or_insert_default().entry(key).or_default())
    };
    cell.get_or_init(|| build(source, tmpdir, flags)).clone()
}

/// Works as [`compile`], from the text of a program that no file of the repository holds.
pub fn compile_text(name: &str, text: &str, tmpdir: &Path, flags: &[&str]) -> PathBuf {
    let source = dir(tmpdir).join(name);
    std::fs::write(&source, text)
        .unwrap_or_else(|error| panic!("cannot write {}: {error}", source.display()));
    compile(&source, tmpdir, flags)
}

fn build(source: &Path, tmpdir: &Path, flags: &[&str]) -> PathBuf {
    let _permit = permits::take();
    let (compiler, always) = compiler(source);
    let stem = source.file_stem().expect("a program has a name").to_string_lossy();
    let suffix: String = flags.concat().chars().filter(|c| c.is_ascii_alphanumeric()).collect();
    // A name has at most 255 bytes.
    let suffix = match suffix.len() {
        ..100 => suffix,
        _ => {
            let mut digest = DefaultHasher::new();
            suffix.hash(&mut digest);
            format!("{:x}", digest.finish())
        }
    };
    let program = dir(tmpdir).join(format!("{stem}{suffix}"));
    let mut command = Command::new(prefix().join("bin").join(compiler));
    command.args(always).args(flags).arg(source).arg("-o").arg(&program).arg("-lm");
    let output =
        command.output().unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
    assert!(
        output.status.success(),
        "{command:?}\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    program
}

/// Returns the directory of this test program, since two may compile the same source at once.
fn dir(tmpdir: &Path) -> PathBuf {
    let this = std::env::current_exe().expect("a test program knows its path");
    let dir = tmpdir.join(this.file_stem().expect("a test program has a name"));
    std::fs::create_dir_all(&dir)
        .unwrap_or_else(|error| panic!("cannot make {}: {error}", dir.display()));
    dir
}
