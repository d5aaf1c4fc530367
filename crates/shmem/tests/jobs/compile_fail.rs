//! Programs that must not compile: each file of `compile_fail` is one, and says on which lines and
//! why.
//!
//! A line that the compiler refuses ends with `//~` and the error's code, or its message if it has
//! none. These differ less between compilers than the texts of their messages do, so any compiler
//! may run this. A code is followed by a colon and the message where that is ours. A comment `//~|`
//! has words of a note that is ours.

use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// A line, and why it is refused.
type Refusals = BTreeSet<(u64, String)>;

/// The beginnings of our messages.
const OURS: [&str; 8] = [
    "do not combine elements of type",
    "atomic operation",
    "cannot wait for",
    "is not a type of elements",
    "is not a symmetric element",
    "is not a view of symmetric elements",
    "are not loaded, stored or lent",
    "stays on the thread that initialized",
];

/// The library as far as a compiler needs it to check programs.
struct Library {
    metadata: PathBuf,
}

impl Library {
    fn find() -> Library {
        let output = Command::new(env!("CARGO"))
            .args(["check", "--lib", "--package", "rushmem", "--message-format", "json"])
            .args(["--offline", "--quiet"])
            .stderr(Stdio::inherit())
            .output()
            .expect("cargo runs");
        assert!(output.status.success(), "cargo cannot check the library");
        let file = messages(&output.stdout)
            .filter(|message| message["reason"] == "compiler-artifact")
            .filter(|message| message["target"]["name"] == "shmem")
            .find_map(|message| Some(message["filenames"].get(0)?.as_str()?.to_owned()));
        Library { metadata: PathBuf::from(file.expect("cargo says where the library is")) }
    }

    /// Returns what the compiler says of a program, and the notes to it.
    fn refusals(&self, program: &Path) -> (Refusals, Vec<String>) {
        let shmem = format!("shmem={}", self.metadata.display());
        // The dependencies of the library are beside it.
        let dir = self.metadata.parent().expect("it is in a directory");
        let dependencies = format!("dependency={}", dir.display());
        let output = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()))
            .args(["--edition", "2024", "--test", "--emit", "metadata", "-o", "/dev/null"])
            .args(["--error-format", "json", "--extern", &shmem, "-L", &dependencies])
            .arg(program)
            .output()
            .expect("the compiler runs");
        let errors: Vec<Value> =
            messages(&output.stderr).filter(|message| message["level"] == "error").collect();
        let notes = errors.iter().filter_map(|error| error["children"].as_array()).flatten();
        let notes = notes.filter_map(|note| note["message"].as_str()).map(str::to_owned);
        (errors.iter().filter_map(refusal).collect(), notes.collect())
    }
}

fn messages(lines: &[u8]) -> impl Iterator<Item = Value> {
    let lines = lines.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).expect("a line is a message"))
}

/// Returns the line of an error and why, which is its code, or its message if that is ours or there
/// is no code; the last error, which counts the others, has no line.
fn refusal(error: &Value) -> Option<(u64, String)> {
    let span = error["spans"].as_array()?.iter().find(|span| span["is_primary"] == true)?;
    let (code, message) = (error["code"]["code"].as_str(), error["message"].as_str()?);
    let why = match code {
        Some(code) if OURS.iter().any(|part| message.contains(part)) => {
            format!("{code}: {message}")
        }
        Some(code) => code.to_owned(),
        None => message.to_owned(),
    };
    Some((span["line_start"].as_u64()?, why))
}

/// Returns what a program says of itself: the errors, and words of notes.
fn expected(program: &Path) -> (Refusals, Vec<String>) {
    let text = std::fs::read_to_string(program).expect("a program can be read");
    let marked = (1..).zip(text.lines()).flat_map(|(line, text)| {
        text.split("//~ ").skip(1).map(move |why| (line, why.trim_end().to_owned()))
    });
    let noted = text.lines().filter_map(|line| line.split_once("//~| "));
    (marked.collect(), noted.map(|(_, words)| words.to_owned()).collect())
}

#[test]
fn what_is_wrong_does_not_compile() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compile_fail");
    let files = std::fs::read_dir(dir).expect("there are such programs");
    let programs: Vec<PathBuf> = files.map(|file| file.expect("it can be read").path()).collect();
    assert!(programs.len() >= 25, "{} programs", programs.len());
    let library = Library::find();
    let (next, failures) = (Mutex::new(programs.iter()), Mutex::new(Vec::new()));
    std::thread::scope(|threads| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            threads.spawn(|| {
                while let Some(program) = { next.lock().expect("no thread panics").next() } {
                    let (expected, words) = expected(program);
                    let (found, notes) = library.refusals(program);
                    let is_noted = |words: &String| notes.iter().any(|note| note.contains(words));
                    if expected.is_empty() || expected != found || !words.iter().all(is_noted) {
                        let failure = format!(
                            "{}: expected {expected:?} {words:?}, found {found:?} {notes:?}",
                            program.file_name().unwrap_or_default().display()
                        );
                        failures.lock().expect("no thread panics").push(failure);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().expect("no thread panics");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
