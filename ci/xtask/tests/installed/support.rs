//! The parts that tests of the installed prefix share: a copy of the prefix in another directory,
//! and commands with a time limit.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Returns a copy of the prefix in a path that contains a space. The first call makes it.
pub fn moved() -> &'static Path {
    static MOVED: OnceLock<PathBuf> = OnceLock::new();
    MOVED.get_or_init(|| {
        let dir = temporary("a moved prefix");
        succeed(
            runs("cp")
                .arg("-a")
                .arg(testkit::prefix().join("."))
                .arg(&dir),
        );
        dir
    })
}

/// Makes an empty directory of this name, for this test program. Returns its path.
pub fn temporary(name: &str) -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let program = program.file_stem().unwrap();
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(program)
        .join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir.canonicalize().unwrap()
}

/// Returns true if the program is on PATH.
pub fn is_here(program: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", "command -v -- \"$0\"", program])
        .output()
        .unwrap();
    found.status.success()
}

/// Reports the test as ignored if the program is not on PATH.
pub fn needs(program: &str) {
    if !is_here(program) {
        testkit::absent(format!("{program} is not here"));
    }
}

/// Returns a command that runs the program under a time limit, with an empty standard input.
pub fn runs(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new("timeout");
    command
        .args(["-k", "5", "600"])
        .arg(program)
        .stdin(Stdio::null());
    command
}

/// Returns a command that runs the line in a shell under a time limit.
pub fn shell(line: &str) -> Command {
    let mut command = runs("sh");
    command.args(["-e", "-c", line]);
    command
}

/// Runs a command, which must succeed. Returns its standard output.
#[track_caller]
pub fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let status = output.status;
    assert!(status.success(), "{command:?}: {status}\n{stdout}{stderr}");
    stdout.into_owned()
}
