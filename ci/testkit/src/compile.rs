//! Programs in C, C++ and Fortran, each compiled once per choice of flags by the prefix's own
//! wrapper. Later tests, also of other test programs, use the same file while what it was compiled
//! of is unchanged.

use std::collections::HashMap;
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use crate::harness::absent;
use crate::inputs;
use crate::permits;
use crate::prefix::prefix;

/// The compiler of a language.
struct Compiler {
    /// The name of the wrapper in the prefix.
    wrapper: &'static str,
    /// The environment variable with which a user names another compiler than the wrapper's.
    variable: &'static str,
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
        variable: "OSHCC_CC",
        flags: C_FLAGS,
    };
    const CXX: Compiler = Compiler {
        wrapper: "oshcxx",
        variable: "OSHCXX_CXX",
        flags: C_FLAGS,
    };
    const FORTRAN: Compiler = Compiler {
        wrapper: "oshfort",
        variable: "OSHFORT_FC",
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
    let named = std::env::var(Compiler::FORTRAN.variable).unwrap_or_default();
    let fortran = if named.is_empty() { "gfortran" } else { &named };
    if Command::new(fortran).arg("--version").output().is_err() {
        absent("there is no Fortran compiler (the package gfortran)");
    }
}

/// What a program is compiled of.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Recipe {
    /// The path of the compiler, which names the prefix.
    wrapper: PathBuf,
    /// The compiler that the user has named.
    named: Option<OsString>,
    source: PathBuf,
    flags: Vec<String>,
}

impl Recipe {
    /// Returns the directory under `tmpdir` that has this program and no other.
    fn dir(&self, tmpdir: &Path) -> PathBuf {
        let mut digest = DefaultHasher::new();
        self.hash(&mut digest);
        tmpdir
            .join("compiled")
            .join(format!("{:x}", digest.finish()))
    }

    /// Returns true if the program may be used while its [`inputs`] are unchanged. A static program
    /// has the library in it, and compilers of Fortran do not list the files that they include.
    fn is_kept(&self) -> bool {
        let is_fortran = self.wrapper.ends_with(Compiler::FORTRAN.wrapper);
        !is_fortran && !self.flags.iter().any(|flag| flag.contains("static"))
    }

    /// Returns the files of the prefix that every compilation reads, beside headers.
    fn of_wrapper(&self) -> [PathBuf; 3] {
        let prefix = prefix();
        [
            self.wrapper.clone(),
            prefix.join("share/rushmem/race.specs"),
            prefix.join("lib/rushmem-thread-sanitizer.o"),
        ]
    }
}

/// The compiled programs of this process, each with the path of its file once it is there. The
/// threads that want the same program wait for the one that compiles it.
static COMPILED: LazyLock<Mutex<HashMap<Recipe, Arc<OnceLock<PathBuf>>>>> =
    LazyLock::new(Mutex::default);

/// Compiles `source` into a directory under `tmpdir`, and returns the path of the result, which has
/// the name of the source. The extension names the language. A second call for the same source and
/// flags returns the same file. The test is ignored if it needs a Fortran compiler and there is
/// none.
///
/// # Panics
/// If the compiler fails; the text has its output.
pub fn compile(source: &Path, tmpdir: &Path, flags: &[&str]) -> PathBuf {
    let compiler = Compiler::of(source);
    if compiler.wrapper == Compiler::FORTRAN.wrapper {
        needs_fortran();
    }

    let recipe = Recipe {
        wrapper: prefix().join("bin").join(compiler.wrapper),
        named: std::env::var_os(compiler.variable),
        source: source.to_owned(),
        flags: [compiler.flags, flags]
            .concat()
            .into_iter()
            .map(str::to_owned)
            .collect(),
    };
    // The list is not locked while the program is compiled: other threads compile others meanwhile.
    let program = {
        let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(compiled.entry(recipe.clone()).or_default())
    };
    let path = program.get_or_init(|| build(&recipe, tmpdir));
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

fn build(recipe: &Recipe, tmpdir: &Path) -> PathBuf {
    let _permit = permits::take();

    let dir = recipe.dir(tmpdir);
    make(&dir);
    let stem = recipe.source.file_stem().expect("a program has a name");
    let program = dir.join(stem);
    let record = dir.join(".inputs");
    if recipe.is_kept() && program.exists() && inputs::are_unchanged(&record) {
        return program;
    }

    // Another test program may compile the same, or run what was compiled before.
    let new = dir.join(format!("new-{}", std::process::id()));
    let headers = new.with_extension("d");
    let mut command = Command::new(&recipe.wrapper);
    command.args(&recipe.flags);
    if recipe.is_kept() {
        command.arg("-MD").arg("-MF").arg(&headers);
    }
    command.arg(&recipe.source).arg("-o").arg(&new).arg("-lm");
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
    assert!(
        output.status.success(),
        "{command:?}\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );

    std::fs::rename(&new, &program)
        .unwrap_or_else(|error| panic!("cannot make {}: {error}", program.display()));
    if recipe.is_kept() {
        inputs::record(&record, &headers, &recipe.of_wrapper());
    }
    program
}

/// Returns the directory of this test program for its sources. Each has its own, since two may
/// write a file of the same name at once.
fn dir(tmpdir: &Path) -> PathBuf {
    let this = std::env::current_exe().expect("a test program knows its path");
    let dir = tmpdir.join(this.file_stem().expect("a test program has a name"));
    make(&dir);
    dir
}

fn make(dir: &Path) {
    std::fs::create_dir_all(dir)
        .unwrap_or_else(|error| panic!("cannot make {}: {error}", dir.display()));
}
