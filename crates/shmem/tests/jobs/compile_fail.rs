//! Programs that must not compile: the files of `compile_fail`. Comments in each say which lines
//! the compiler must refuse, and why.
//!
//! A line that the compiler refuses ends with `//~` and the code of the error, or its message if it
//! has no code. Codes differ less between versions of the compiler than messages do. If the message
//! is one of the library's, it follows the code after a colon. A comment `//~|` has words of a note
//! of the library.

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// Numbers of lines that are refused, each with the error.
type Refusals = BTreeSet<(u64, String)>;

/// Parts of the messages that the library defines.
const OURS: [&str; 12] = [
    "does not combine elements of type",
    "atomic operation",
    "cannot wait for",
    "is not a type of elements",
    "is not symmetric memory",
    "is not the target",
    "cannot be in an element",
    "cannot be copied",
    "are not loaded, stored or lent",
    "stays on the thread that",
    "cannot be created where",
    "are not indexed by",
];

/// The errors of the compiler in a program.
#[derive(Debug, Default)]
struct Errors {
    refusals: Refusals,
    /// The notes of all errors.
    notes: Vec<String>,
}

/// What the comments of a program expect of the compiler.
#[derive(Debug)]
struct Expected {
    refusals: Refusals,
    /// Words of notes.
    words: Vec<String>,
}

impl Expected {
    fn is_met(&self, found: &Errors) -> bool {
        let is_noted = |words: &String| found.notes.iter().any(|note| note.contains(words));
        !self.refusals.is_empty()
            && self.refusals == found.refusals
            && self.words.iter().all(is_noted)
    }
}

/// The library's metadata, with which the compiler checks programs.
struct Library {
    metadata: PathBuf,
}

impl Library {
    /// Finds the library that these tests were built with, which cargo does not build again.
    fn find() -> Library {
        let output = Command::new(env!("CARGO"))
            .args([
                "build",
                "--lib",
                "--package",
                "rushmem",
                "--message-format",
                "json",
            ])
            .args(["--offline", "--quiet"])
            .stderr(Stdio::inherit())
            .output()
            .expect("cargo runs");
        assert!(output.status.success(), "cargo cannot build the library");

        let file = messages(&output.stdout)
            .filter(|message| message["reason"] == "compiler-artifact")
            .filter(|message| message["target"]["name"] == "shmem")
            .flat_map(|message| message["filenames"].as_array().cloned().unwrap_or_default())
            .filter_map(|file| file.as_str().map(str::to_owned))
            .find(|file| file.ends_with(".rmeta"));
        Library {
            metadata: PathBuf::from(file.expect("cargo says where the library is")),
        }
    }

    /// Compiles a program.
    fn errors(&self, program: &Path) -> Errors {
        let shmem = format!("shmem={}", self.metadata.display());
        // The metadata of the library's dependencies is in the same directory.
        let dir = self.metadata.parent().expect("it is in a directory");
        let dependencies = format!("dependency={}", dir.display());
        let output = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()))
            .args(["--edition", "2024", "--test", "--emit", "metadata"])
            // The compiler renames its output, so a device as the output would be replaced.
            .args(["--out-dir", env!("CARGO_TARGET_TMPDIR")])
            .args([
                "--error-format",
                "json",
                "--extern",
                &shmem,
                "-L",
                &dependencies,
            ])
            .arg(program)
            .output()
            .expect("the compiler runs");

        let mut errors = Errors::default();
        for error in messages(&output.stderr) {
            if error["level"] != "error" {
                continue;
            }
            errors.refusals.extend(refusal(&error));
            for note in error["children"].as_array().into_iter().flatten() {
                errors
                    .notes
                    .extend(note["message"].as_str().map(str::to_owned));
            }
        }
        errors
    }
}

fn messages(lines: &[u8]) -> impl Iterator<Item = Value> {
    lines
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).expect("a line is a message"))
}

/// Returns the line and the code of an error, with its message if the library defines it; the
/// message alone if there is no code. Returns `None` for the last error, which counts the others.
fn refusal(error: &Value) -> Option<(u64, String)> {
    let mut span = error["spans"]
        .as_array()?
        .iter()
        .find(|span| span["is_primary"] == true)?;
    // What a macro has written is refused where the program calls the macro.
    while let Some(call) = span["expansion"].get("span") {
        span = call;
    }

    let code = error["code"]["code"].as_str();
    let message = error["message"].as_str()?;
    let why = match code {
        Some(code) if OURS.iter().any(|part| message.contains(part)) => {
            format!("{code}: {message}")
        }
        Some(code) => code.to_owned(),
        None => message.to_owned(),
    };
    Some((span["line_start"].as_u64()?, why))
}

/// Returns what the comments of a program expect.
fn expected(program: &Path) -> Expected {
    let text = std::fs::read_to_string(program).expect("a program can be read");
    let mut refusals = Refusals::new();
    let mut words = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        for why in line.split("//~ ").skip(1) {
            refusals.insert((number, why.trim_end().to_owned()));
        }
        if let Some((_, noted)) = line.split_once("//~| ") {
            words.push(noted.to_owned());
        }
    }
    Expected { refusals, words }
}

/// Returns how the errors in a program differ from those that it expects.
fn failure_of(program: &Path, library: &Library) -> Option<String> {
    let expected = expected(program);
    let found = library.errors(program);
    if expected.is_met(&found) {
        return None;
    }

    let name = program.file_name().unwrap_or_default().display();
    Some(format!("{name}: expected {expected:?}, found {found:?}"))
}

#[test]
fn what_is_wrong_does_not_compile() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compile_fail");
    let mut programs = Vec::new();
    for file in std::fs::read_dir(dir).expect("there are such programs") {
        programs.push(file.expect("it can be read").path());
    }
    assert!(programs.len() >= 25, "{} programs", programs.len());

    let library = Library::find();
    let next = Mutex::new(programs.iter());
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|threads| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            threads.spawn(|| {
                // The block releases the lock before the program is compiled.
                while let Some(program) = { next.lock().expect("no thread panics").next() } {
                    if let Some(failure) = failure_of(program, &library) {
                        failures.lock().expect("no thread panics").push(failure);
                    }
                }
            });
        }
    });

    let failures = failures.into_inner().expect("no thread panics");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
