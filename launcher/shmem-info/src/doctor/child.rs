//! A process that may crash or hang in a library without harm to the doctor.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};

/// Prepares this process to be the child of a doctor: it ends with its parent and leaves no core
/// file.
pub fn prepare() {
    // If a container refuses one of them, the child continues without it.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
}

/// Returns what a command prints.
///
/// # Errors
/// If it fails, is killed by a signal, or does not end within the limit; what it does, as the
/// predicate of a sentence.
pub fn printed(command: &mut Command, limit: Duration) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("cannot be examined: {error}");
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    let (sender, receiver) = mpsc::channel();
    let mut stdout = child.stdout.take().expect("it is piped");
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        let read = stdout.read_to_end(&mut text).map(|_| text);
        // Nobody receives it after the limit.
        let _ = sender.send(read);
    });
    let Ok(text) = receiver.recv_timeout(limit) else {
        child.kill().and_then(|()| child.wait()).map_err(failed)?;
        return Err(format!("does not end within {} s", limit.as_secs()));
    };
    let status = child.wait().map_err(failed)?;
    reader.join().expect("it does not panic");
    match status.success() {
        true => Ok(String::from_utf8_lossy(&text.map_err(failed)?).into_owned()),
        false => Err(format!("fails ({status})")),
    }
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
        assert_eq!(shell("exit 3", long), Err("fails (exit status: 3)".to_owned()));
        let crashed = shell("ulimit -c 0; kill -SEGV $$", long);
        assert_eq!(crashed, Err("fails (signal: 11 (SIGSEGV))".to_owned()));
        let hangs = shell("exec sleep 600", Duration::from_secs(1));
        assert_eq!(hangs, Err("does not end within 1 s".to_owned()));
    }
}
