//! The innermost functions of PEs that are outside the library, from gdb where it is installed.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::ends::mark;

/// Maximum number of PEs of this host to which gdb is attached.
pub const MAX_PES: usize = 4;

/// Time for gdb to print the stacks of these PEs on a busy machine: it takes half a second of CPU
/// time and more, since it reads the debug information of the program and of all libraries.
pub const LIMIT: Duration = Duration::from_secs(20);

/// The same time if a signal for the PEs waits for it.
pub const SHORT_LIMIT: Duration = Duration::from_secs(2);

/// Maximum number of bytes that are read from gdb.
const MAX_TEXT: u64 = 256 * 1024;

/// Maximum number of threads whose functions are shown.
const MAX_THREADS: usize = 8;

/// Maximum number of characters for the functions of a thread.
const MAX_LINE: usize = 400;

/// Number of innermost functions that are shown of a thread.
const FRAMES: &str = "6";

/// The start of the name of each thread of the library, in gdb's output.
const LIBRARY: &str = "\"rushmem";
/// The name of the thread that opens a network, in which its library may hang.
const OPENING: &str = "\"rushmem-apart\"";
/// The name of the thread that UCX starts.
const OF_UCX: &str = "\"async\"";

/// A process to which gdb is attached.
pub struct ExaminedProcess<'a> {
    pub pid: u32,
    /// A line for the functions of each thread.
    pub stacks: &'a mut Vec<String>,
}

/// Stores the functions of the threads of these processes; none for a process to which gdb may not
/// attach within `limit`. gdb gets the mark of the job, so that it ends with the job.
pub fn add(processes: Vec<ExaminedProcess<'_>>, mark: &OsStr, limit: Duration) {
    // gdb runs on all processes at the same time: one run after the other would exceed the limit.
    std::thread::scope(|scope| {
        for ExaminedProcess { pid, stacks } in processes {
            scope
                .spawn(move || *stacks = shortened(&run_gdb(pid, mark, limit).unwrap_or_default()));
        }
    });
}

/// Runs gdb on a process, for `limit` at most. Returns its output.
fn run_gdb(pid: u32, mark: &OsStr, limit: Duration) -> Option<String> {
    let start = Instant::now();
    let mut command = Command::new("timeout");
    // Any other signal could end the PE: gdb would pass SIGINT to the process that it waits for.
    command.args(["-s", "KILL", &limit.as_secs().to_string()]);
    command.args(["gdb", "-batch", "-nx"]);
    // Downloads of debugging information could take longer than the limit.
    command.args(["-iex", "set debuginfod enabled off"]);
    command.args(["-iex", "set print address off"]);
    command.args(["-iex", "set print frame-arguments none"]);
    command.args(["-p", &pid.to_string()]);
    command.args(["-ex", &format!("thread apply all bt {FRAMES}")]);
    command
        .env(mark::VARIABLE, mark)
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());

    // The event loop reaps gdb, as it does all children.
    let stdout = command.spawn().ok()?.stdout.take()?;
    let mut text = Vec::new();
    // After an error, the text that was read before it is used.
    let _ = stdout.take(MAX_TEXT).read_to_end(&mut text);

    // gdb stops the process to attach, and leaves it stopped if gdb is killed. PEs that were
    // stopped before are not examined.
    let is_whole = (text.len() as u64) < MAX_TEXT && start.elapsed() < limit;
    if let Some(pid) = Pid::from_raw(pid as i32)
        && !is_whole
    {
        // This fails if the process has ended.
        let _ = rustix::process::kill_process(pid, Signal::CONT);
    }
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// A thread in the output of gdb.
struct Thread {
    /// True if it serves, and so tells nothing of what the PE does.
    is_service: bool,
    /// Its functions, the innermost first.
    functions: Vec<String>,
}

/// Shortens backtraces: returns one line for each thread of the program and for the one that opens
/// a network, the first thread first.
fn shortened(text: &str) -> Vec<String> {
    let mut threads: Vec<Thread> = Vec::new();
    for line in text.lines() {
        if line.starts_with("Thread ") {
            threads.push(Thread {
                is_service: line.contains(OF_UCX)
                    || line.contains(LIBRARY) && !line.contains(OPENING),
                functions: Vec::new(),
            });
        } else if line.starts_with('#')
            && let Some(thread) = threads.last_mut()
        {
            thread.functions.extend(function(line));
        }
    }

    let mut lines = Vec::new();
    // gdb prints the last thread first.
    for thread in threads.iter().rev() {
        if thread.is_service || thread.functions.is_empty() || lines.len() == MAX_THREADS {
            continue;
        }
        let line = thread.functions.join(" < ");
        lines.push(line.chars().take(MAX_LINE).collect());
    }
    lines
}

/// Returns `compute at stencil.c:41` or `sleep in libc.so.6`, from a line such as
/// `#1  0x00007f00 in compute (n=...) at dir/stencil.c:41`. Returns only the name if the line has
/// neither file nor library, and `None` if the function has no name.
fn function(line: &str) -> Option<String> {
    let (_, frame) = line.split_once(char::is_whitespace)?;
    let frame = frame.trim_start();
    let frame = match frame.split_once(" in ") {
        Some((address, rest)) if address.starts_with("0x") => rest,
        _ => frame,
    };
    let (name, place) = frame.split_once(" (")?;
    if name == "??" {
        return None;
    }

    let file_name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_string();
    if let Some((_, source)) = place.rsplit_once(") at ") {
        Some(format!("{name} at {}", file_name(source)))
    } else if let Some((_, library)) = place.rsplit_once(") from ") {
        Some(format!("{name} in {}", file_name(library)))
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
        assert_eq!(shortened(text), [line]);
        let text = "Thread 3 (Thread 0x7f00 (LWP 8) \"async\"):\n#0  epoll_wait () from libc.so.6\n\nThread 2 \
                    (Thread 0x7f01 (LWP 7) \"rushmem-apart\"):\n#0  ucm_reloc_modify () from libucm.so.0\n";
        assert_eq!(shortened(text), ["ucm_reloc_modify in libucm.so.0"]);
        assert_eq!(
            shortened("ptrace: Operation not permitted.\nNo threads.\n"),
            [""; 0]
        );
    }
}
