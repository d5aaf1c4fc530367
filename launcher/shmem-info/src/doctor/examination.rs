//! Examines a transport, or one of its parts, in a process of its own. A library that it opens may
//! crash or hang, so the doctor runs each examination in a child of its own.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rushmem_runtime::settings;
use rushmem_runtime::setup::{diagnose, on_this_machine};
use rushmem_transport::{Diagnosis, Verdict};
use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};
use serde::{Deserialize, Serialize};

use super::finding::{Finding, Grade};
use super::outcome::{line, read};

/// Maximum time of an examination. A provider takes up to a second, and longer on a busy machine,
/// so a library that exceeds the limit hangs.
const LIMIT: Duration = Duration::from_secs(20);

/// The report of a child process on a transport.
#[derive(Debug, Serialize, Deserialize)]
pub struct Examination {
    /// The findings of the transport on this machine, or why it is unavailable.
    pub found: String,
    pub parts: Vec<ExaminedPart>,
    /// How much of a heap the transport registers, if it registers memory.
    pub memory: Option<Finding>,
}

/// A part of a transport. A job may use it if its grade is [`Grade::Ok`].
#[derive(Debug, Serialize, Deserialize)]
pub struct ExaminedPart {
    pub finding: Finding,
    /// True if jobs whose nodes would connect many pairs of PEs prefer this part.
    pub is_for_many_pairs: bool,
}

/// Examines a transport, or one of its parts, in this process, which is the child that [`examine`]
/// starts. Returns the line to print.
pub fn report(transport: &str, part: Option<&str>) -> Result<String, String> {
    prepare();

    let settings = settings::of_this_process(rushmem_providers::ALL)?;
    let provider = rushmem_providers::ALL
        .iter()
        .find(|provider| provider.name == transport)
        .ok_or_else(|| format!("there is no transport {transport}"))?;

    let found = match on_this_machine(&settings, provider) {
        Ok(found) => found.found.to_string(),
        Err(why) => why.to_string(),
    };

    let diagnosed = diagnose(&settings, provider, part);
    let memory = match diagnosed.registered {
        Some(Ok(registered)) => Some(Finding::ok("memory", registered.to_string())),
        Some(Err(why)) => Some(Finding::new("memory", Grade::Warning, why.to_string())),
        None => None,
    };

    Ok(line(&Examination {
        found,
        parts: diagnosed.parts.into_iter().map(ExaminedPart::of).collect(),
        memory,
    }))
}

/// Examines a transport, or one of its parts, in a child.
///
/// # Errors
/// If the child fails, hangs or reports nothing: the predicate of a sentence such as "does not end
/// within 20 s".
pub fn examine(transport: &str, part: Option<&str>) -> Result<Examination, String> {
    let program =
        std::env::current_exe().map_err(|error| format!("cannot be examined: {error}"))?;
    let mut command = Command::new(program);
    command.arg("--doctor-transport").arg(transport).args(part);

    // A transport may print lines of its own, too.
    let text = printed(&mut command, LIMIT)?;
    text.lines()
        .find_map(read)
        .ok_or_else(|| "reports nothing".to_owned())
}

impl ExaminedPart {
    fn of(part: Diagnosis) -> ExaminedPart {
        let grade = if part.verdict == Verdict::Usable {
            Grade::Ok
        } else {
            Grade::Unused
        };

        ExaminedPart {
            finding: Finding {
                name: part.name,
                grade,
                text: part.reason,
                remedy: part.remedy,
            },
            is_for_many_pairs: part.is_for_many_pairs,
        }
    }
}

/// Prepares this process to be the child of a doctor: it ends with its parent and leaves no core
/// file.
fn prepare() {
    // If a container refuses one of these calls, the child continues without it.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    let _ = setrlimit(Resource::Core, none);
}

/// Runs a command and returns its stdout.
///
/// # Errors
/// If it fails, is killed by a signal, or does not end within the limit: the predicate of a
/// sentence, as for [`examine`].
fn printed(command: &mut Command, limit: Duration) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("cannot be examined: {error}");
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;

    let (sender, receiver) = mpsc::channel();
    let mut stdout = child.stdout.take().expect("it is piped");
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        let read = stdout.read_to_end(&mut text).map(|_| text);
        // After the limit, the receiver is gone.
        let _ = sender.send(read);
    });

    let Ok(text) = receiver.recv_timeout(limit) else {
        child.kill().and_then(|()| child.wait()).map_err(failed)?;
        // The thread is not joined, since a process that the child has started may keep the pipe
        // open.
        return Err(format!("does not end within {} s", limit.as_secs()));
    };

    let status = child.wait().map_err(failed)?;
    reader.join().expect("it does not panic");
    if !status.success() {
        return Err(format!("fails ({status})"));
    }
    Ok(String::from_utf8_lossy(&text.map_err(failed)?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(line: &str, limit: Duration) -> Result<String, String> {
        printed(Command::new("sh").args(["-c", line]), limit)
    }

    #[test]
    fn a_child_that_fails_crashes_or_hangs_is_an_error() {
        let long = Duration::from_secs(600);
        assert_eq!(shell("echo 1", long), Ok("1\n".to_owned()));
        assert_eq!(
            shell("exit 3", long),
            Err("fails (exit status: 3)".to_owned())
        );
        let crashed = shell("ulimit -c 0; kill -SEGV $$", long);
        assert_eq!(crashed, Err("fails (signal: 11 (SIGSEGV))".to_owned()));
        let hangs = shell("exec sleep 600", Duration::from_secs(1));
        assert_eq!(hangs, Err("does not end within 1 s".to_owned()));
    }
}
