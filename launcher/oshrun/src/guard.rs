//! The guard: a process that ends the job's process groups when oshrun is killed and can do nothing itself any more.
//!
//! The guard reads process group numbers from a pipe whose write end only oshrun holds, and for a moment every new PE:
//! a PE writes its number itself before it becomes the user's program, so no program ever runs unknown to the guard.
//! End of file means that oshrun is gone. oshrun's zombies keep the numbers from being used again as long as it lives,
//! so the guard need not be told when a group is over; a job that ends well kills the guard.
//!
//! It never looks at anything but these numbers, ignores every signal that can be ignored, and is a session of its own,
//! so that no terminal reaches it.

use std::io::{self, PipeWriter, Read};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};

/// The name by which a process knows that it is a guard.
const NAME: &str = "oshrun-guard";

/// How long the guard stays to see the groups go.
const PATIENCE: Duration = Duration::from_secs(10);

/// Largest number of a signal on Linux.
const LAST_SIGNAL: i32 = 64;

/// oshrun's side.
#[derive(Debug)]
pub struct Guard {
    pid: Pid,
    pipe: PipeWriter,
}

impl Guard {
    /// Starts the guard.
    pub fn start() -> io::Result<Guard> {
        let (read, write) = io::pipe()?;
        let mut command = Command::new("/proc/self/exe");
        command.arg0(NAME).env_clear().current_dir("/");
        command.stdin(read).stdout(Stdio::null()).stderr(Stdio::null());
        let before_exec = || {
            rustix::process::setsid()?;
            for signal in 1..=LAST_SIGNAL {
                // SAFETY: SIG_IGN runs no code; numbers that cannot be ignored are refused by the kernel.
                unsafe { libc::signal(signal, libc::SIG_IGN) };
            }
            Ok(())
        };
        // SAFETY: the closure makes system calls alone, without memory or locks, as a child between fork and exec must.
        unsafe { command.pre_exec(before_exec) };
        let child = command.spawn()?;
        Ok(Guard { pid: pid_of(child.id()), pipe: write })
    }

    /// Where each PE writes its process group's number, in native bytes.
    pub fn pipe(&self) -> &PipeWriter {
        &self.pipe
    }

    /// Ends the guard, when no group is left.
    pub fn dismiss(self) {
        // Nobody else waits for it, so the number is still its own, even if somebody has killed it.
        let _ = rustix::process::kill_process(self.pid, Signal::KILL);
        let _ = rustix::process::waitid(WaitId::Pid(self.pid), WaitIdOptions::EXITED);
    }
}

/// A child's number as the system calls want it.
pub fn pid_of(id: u32) -> Pid {
    i32::try_from(id)
        .ok()
        .and_then(Pid::from_raw)
        .expect("the kernel's process numbers are above 0 and fit i32")
}

/// Whether this process was started as a guard.
pub fn is_guard() -> bool {
    std::env::args_os().eq([NAME])
}

/// The guard's life.
pub fn stand() -> ExitCode {
    let mut bytes = Vec::new();
    // An error is an end, too.
    let _ = io::stdin().read_to_end(&mut bytes);
    let mut groups: Vec<Pid> = bytes.chunks_exact(4).filter_map(group).collect();
    let deadline = Instant::now() + PATIENCE;
    loop {
        groups.retain(|&group| rustix::process::kill_process_group(group, Signal::KILL).is_ok());
        if groups.is_empty() || Instant::now() > deadline {
            return ExitCode::SUCCESS;
        }
        thread::sleep(Duration::from_millis(2));
    }
}

fn group(bytes: &[u8]) -> Option<Pid> {
    // 1 as a group would mean every process there is.
    Pid::from_raw(i32::from_ne_bytes(bytes.try_into().ok()?))
        .filter(|pid| pid.as_raw_nonzero().get() > 1)
}
