//! Programs in C, C++ and Fortran, each compiled once per test process and choice of flags by the
//! prefix's own wrapper.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use crate::harness::absent;
use crate::permits;
use crate::prefix::prefix;

/// The compiler of a language.
struct Compiler {
    /// The name of the wrapper in the prefix.
    wrapper: &'static str,
    /// The flags with which it compiles every program.
    flags: &'static [&'static str],
}

/// The flags for C and C++. Warnings are errors: the programs are also a test of the header.
const C_FLAGS: &[&str] = &["-O1", "-g", "-Wall", "-Wextra", "-Werror", "-pthread"];
/// The flags for Fortran. It prints no warnings, since gfortran warns of routines that take arrays
/// of any type, whatever its options are.
const FORTRAN_FLAGS: &[&str] = &[
    "-O1",
    "-g",
    "-w",
    "-fcray-pointer",
    "-fallow-argument-mismatch",
];

impl Compiler {
    const C: Compiler = Compiler {
        wrapper: "oshcc",
        flags: C_FLAGS,
    };
    const CXX: Compiler = Compiler {
        wrapper: "oshcxx",
        flags: C_FLAGS,
    };
    const FORTRAN: Compiler = Compiler {
        wrapper: "oshfort",
        flags: FORTRAN_FLAGS,
    };

    /// Returns the compiler for a source file, by its extension.
    fn of(source: &Path) -> Compiler {
        match source.extension().and_then(|extension| extension.to_str()) {
            Some("cpp") => Compiler::CXX,
            Some("f" | "F" | "f90" | "F90") => Compiler::FORTRAN,
            _ => Compiler::C,
        }
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

/// What a program is compiled of.
#[derive(PartialEq, Eq, Hash)]
struct Recipe {
    source: PathBuf,
    flags: Vec<String>,
}

/// The compiled programs of this process, each with the path of its file once it is there. The
/// threads that want the same program wait for the one that compiles it.
static COMPILED: LazyLock<Mutex<HashMap<Recipe, Arc<OnceLock<PathBuf>>>>> =
    LazyLock::new(Mutex::default);

/// Compiles `source` into a directory of this test program under `tmpdir`, and returns the path of
/// the result. The extension names the language. A second call for the same source and flags
/// returns the same file. The test is ignored if it needs a Fortran compiler and there is none.
///
/// # Panics
/// If the compiler fails; the text has its output.
pub fn compile(source: &Path, tmpdir: &Path, flags: &[&str]) -> PathBuf {
    let compiler = Compiler::of(source);
    if compiler.wrapper == Compiler::FORTRAN.wrapper {
        needs_fortran();
    }

    let recipe = Recipe {
        source: source.to_owned(),
        flags: flags.iter().map(ToString::to_string).collect(),
    };
    // The list is not locked while the program is compiled: other threads compile others meanwhile.
    let program = {
        let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(compiled.entry(recipe).or_default())
    };
    let path = program.get_or_init(|| build(&compiler, source, tmpdir, flags));
    path.clone()
}

/// Writes `text` to a file called `name`, whose extension names the language, and compiles it as
/// [`compile`] does.
///
/// # Panics
/// If the file cannot be written, or the compiler fails.
pub fn compile_text(name: &str, text: &str, tmpdir: &Path, flags: &[&str]) -> PathBuf {
    let source = dir(tmpdir).join(name);
    std::fs::write(&source, text)
        .unwrap_or_else(|error| panic!("cannot write {}: {error}", source.display()));
    compile(&source, tmpdir, flags)
}

fn build(compiler: &Compiler, source: &Path, tmpdir: &Path, flags: &[&str]) -> PathBuf {
    let _permit = permits::take();

    // The name of the file has the flags, so that a source with other flags is another file.
    let mut suffix = flags.concat();
    suffix.retain(|c| c.is_ascii_alphanumeric());
    // The name of a file has at most 255 bytes.
    if suffix.len() >= 100 {
        let mut digest = DefaultHasher::new();
        suffix.hash(&mut digest);
        suffix = format!("{:x}", digest.finish());
    }
    let stem = source.file_stem().expect("a program has a name");
    let program = dir(tmpdir).join(format!("{}{suffix}", stem.display()));

    let mut command = Command::new(prefix().join("bin").join(compiler.wrapper));
    command
        .args(compiler.flags)
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
