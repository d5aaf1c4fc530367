//! The innermost functions of PEs that are outside the library, from gdb where it is installed.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal};

use crate::ends::guard::pid_of;
use crate::ends::mark;

/// Maximum number of PEs of this process.
pub const MAX_PES: usize = 4;

/// Time for gdb to look at all of these PEs, on a machine that is busy.
pub const LIMIT: Duration = Duration::from_secs(5);

/// Time for gdb to leave the process after SIGTERM.
const FAREWELL: Duration = Duration::from_millis(200);

/// Maximum number of bytes that are read from gdb.
const MAX_TEXT: usize = 256 * 1024;

/// Maximum number of threads whose functions are shown.
const MAX_THREADS: usize = 8;

/// Maximum length of the functions of a thread.
const MAX_LINE: usize = 400;

/// Functions of a thread.
const FRAMES: &str = "6";

/// How gdb shows the beginning of a name of a thread of the library.
const LIBRARY: &str = "\"rushmem";

/// The functions of the threads of these PEs, each with its process, one after the other as they
/// become known; nothing for those that gdb may not look at. `mark` is the mark of the job, so that
/// gdb ends with it.
pub fn of(pes: &[(u32, u32)], mark: &OsStr, found: impl Fn(u32, Vec<String>) + Sync) {
    let deadline = Instant::now() + LIMIT;
    std::thread::scope(|scope| {
        for &(pe, pid) in pes {
            let found = &found;
            scope.spawn(move || found(pe, shown(&text(pid, mark, deadline).unwrap_or_default())));
        }
    });
}

/// What gdb prints.
fn text(pid: u32, mark: &OsStr, deadline: Instant) -> Option<String> {
    let mut command = Command::new("gdb");
    command.args(["-batch", "-nx", "-iex", "set debuginfod enabled off"]);
    command.args(["-iex", "set print frame-arguments none", "-iex", "set print address off"]);
    command.args(["-p", &pid.to_string()]);
    command.args(["-ex", &format!("thread apply all bt {FRAMES}")]);
    command.env(mark::VARIABLE, mark).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    // The event loop reaps it, as all children.
    let mut gdb = command.spawn().ok()?;
    let own = pid_of(gdb.id());
    let mut stdout = gdb.stdout.take()?;
    let mut text = Vec::new();
    let mut read = |deadline: Instant| {
        let mut piece = [0; 16 * 1024];
        while text.len() < MAX_TEXT && is_readable(&stdout, deadline) {
            match stdout.read(&mut piece) {
                Ok(nbytes @ 1..) => text.extend_from_slice(&piece[..nbytes]),
                Ok(0) | Err(_) => return true,
            }
        }
        false
    };
    if !read(deadline) {
        end(own, pid, || read(Instant::now() + FAREWELL));
    }
    String::from_utf8_lossy(&text).into_owned().into()
}

/// Ends gdb. To attach, gdb has stopped the process, which stays stopped if gdb ends too early.
fn end(gdb: Pid, pid: u32, has_ended: impl FnOnce() -> bool) {
    let _ = rustix::process::kill_process(gdb, Signal::TERM);
    if !has_ended() {
        let _ = rustix::process::kill_process_group(gdb, Signal::KILL);
    }
    // A PE that was stopped before is not looked at.
    if let Some(pid) = Pid::from_raw(pid as i32) {
        let _ = rustix::process::kill_process(pid, Signal::CONT);
    }
}

/// Waits for bytes or the end.
fn is_readable(stdout: &impl std::os::fd::AsFd, deadline: Instant) -> bool {
    let left = deadline.saturating_duration_since(Instant::now());
    let limit = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
    let mut fds = [PollFd::new(stdout, PollFlags::IN)];
    matches!(poll(&mut fds, Some(&limit)), Ok(1..))
}

/// The short form of backtraces: one line for each thread of the program, the first thread first.
fn shown(text: &str) -> Vec<String> {
    let mut threads: Vec<(bool, Vec<String>)> = Vec::new();
    for line in text.lines() {
        if line.starts_with("Thread ") {
            threads.push((line.contains(LIBRARY), Vec::new()));
        } else if line.starts_with('#')
            && let Some((_, functions)) = threads.last_mut()
        {
            functions.extend(function(line));
        }
    }
    let line = |(_, functions): (bool, Vec<String>)| {
        functions.join(" < ").chars().take(MAX_LINE).collect::<String>()
    };
    // gdb begins with the last thread.
    let own = threads
        .into_iter()
        .rev()
        .filter(|(is_library, functions)| !is_library && !functions.is_empty());
    own.map(line).take(MAX_THREADS).collect()
}

/// `compute at stencil.c:41` or `sleep in libc.so.6`, from a line such as
/// `#1  0x00007f00 in compute (n=...) at dir/stencil.c:41`. Nothing if the function has no name.
fn function(line: &str) -> Option<String> {
    let frame = line.split_once(char::is_whitespace)?.1.trim_start();
    let frame = match frame.split_once(" in ") {
        Some((address, rest)) if address.starts_with("0x") => rest,
        _ => frame,
    };
    let (name, place) = frame.split_once(" (")?;
    if name == "??" {
        return None;
    }
    let file = |path: &str| path.rsplit('/').next().unwrap_or_default().to_string();
    if let Some((_, at)) = place.rsplit_once(") at ") {
        Some(format!("{name} at {}", file(at)))
    } else if let Some((_, library)) = place.rsplit_once(") from ") {
        Some(format!("{name} in {}", file(library)))
    } else {
        Some(name.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backtraces_are_shortened() {
        let text = "[New LWP 7]\n\nThread 2 (Thread 0x7f00 (LWP 7) \"rushmem-tcp\"):\n#0  poll () from \
                    /lib/libc.so.6\n\nThread 1 (Thread 0x7f01 (LWP 6) \"stencil\"):\n#0  0x00007f02 in \
                    clock_nanosleep (a=...) from /lib/libc.so.6\n#1  ?? ()\n#2  compute_row (n=...) at \
                    src/stencil.c:41\n#3  main ()\n";
        let line = "clock_nanosleep in libc.so.6 < compute_row at stencil.c:41 < main";
        assert_eq!(shown(text), [line]);
        assert_eq!(shown("ptrace: Operation not permitted.\nNo threads.\n"), [""; 0]);
    }
}
