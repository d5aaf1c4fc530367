//! Programs in C, C++ and Fortran, each compiled once per test process and choice of flags by the
//! prefix's own wrapper.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use crate::harness::absent;
use crate::permits;
use crate::prefix::prefix;

/// Returns the wrapper and the flags for a source file, by its extension.
fn compiler(source: &Path) -> (&'static str, &'static [&'static str]) {
    // Warnings are errors: the programs are also a test of the header.
    const C: &[&str] = &["-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread"];
    // No warnings: gfortran warns of routines that take arrays of any type, whatever its options
    // are.
    const FORTRAN: &[&str] = &[
        "-O1",
        "-g",
        "-w",
        "-fcray-pointer",
        "-fallow-argument-mismatch",
    ];
    match source.extension().and_then(|extension| extension.to_str()) {
        Some("cpp") => ("oshcxx", C),
        Some("f" | "F" | "f90" | "F90") => ("oshfort", FORTRAN),
        _ => ("oshcc", C),
    }
}

/// Ends the test as ignored if there is no Fortran compiler.
pub fn needs_fortran() {
    let named = std::env::var("OSHFORT_FC").unwrap_or_default();
    let fortran = if named.is_empty() { "gfortran" } else { &named };
    if Command::new(fortran).arg("--version").output().is_err() {
        absent("there is no Fortran compiler (the package gfortran)");
    }
}

type CompiledProgram = Arc<OnceLock<PathBuf>>;

/// Compiles `source` into a directory of this test program under `tmpdir`, and returns the path of
/// the result. The extension names the language. A second call for the same source and flags
/// returns the same file. The test is ignored if it needs a Fortran compiler and there is none.
///
/// # Panics
/// If the compiler fails; the text has its output.
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

/// Works as [`compile`], for a program whose text is an argument. `name` is the name of the file to
/// write, with the extension of the language.
pub fn compile_text(name: &str, text: &str, tmpdir: &Path, flags: &[&str]) -> PathBuf {
    let source = dir(tmpdir).join(name);
    std::fs::write(&source, text)
        .unwrap_or_else(|error| panic!("cannot write {}: {error}", source.display()));
    compile(&source, tmpdir, flags)
}

fn build(source: &Path, tmpdir: &Path, flags: &[&str]) -> PathBuf {
    let _permit = permits::take();
    let (compiler, always) = compiler(source);
    let stem = source
        .file_stem()
        .expect("a program has a name")
        .to_string_lossy();
    let suffix: String = flags
        .concat()
        .chars()
        .filter(|c| c.is_ascii_alphanumeric())
        .collect();
    // The name of a file has at most 255 bytes.
    let suffix = if suffix.len() < 100 {
        suffix
    } else {
        let mut digest = DefaultHasher::new();
        suffix.hash(&mut digest);
        format!("{:x}", digest.finish())
    };
    let program = dir(tmpdir).join(format!("{stem}{suffix}"));

    let mut command = Command::new(prefix().join("bin").join(compiler));
    command
        .args(always)
        .args(flags)
        .arg(source)
        .arg("-o")
        .arg(&program)
        .arg("-lm");
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
    assert!(
        output.status.success(),
        "{command:?}\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    program
}

/// Returns the directory of this test program. Each has its own, since two may compile the same
/// source at once.
fn dir(tmpdir: &Path) -> PathBuf {
    let this = std::env::current_exe().expect("a test program knows its path");
    let dir = tmpdir.join(this.file_stem().expect("a test program has a name"));
    std::fs::create_dir_all(&dir)
        .unwrap_or_else(|error| panic!("cannot make {}: {error}", dir.display()));
    dir
}
