//! Runs a command in which one system call fails once, or kills the process that makes it.
//!
//! ```text
//! inject CALL ERROR PROGRAM TURN REPORT COMMAND...
//! inject --kill TEXT PROGRAM REPORT COMMAND...
//! ```
//!
//! CALL and ERROR are the kernel's numbers. Calls are counted over all processes and threads that
//! run the executable named PROGRAM, except those of the dynamic loader; the call number TURN
//! fails, none if TURN is 0. With `--kill`, the first `write` whose data contain TEXT kills the
//! process. The number of calls is written to the file REPORT.

mod listener;

use std::fs::{self, File};
use std::ops::Range;
use std::os::fd::RawFd;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::OnceLock;
use std::thread;

use anyhow::{Context, Result, bail};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use listener::{NotifiedCall, SeccompListener};

const USAGE: &str = "usage: inject CALL ERROR PROGRAM TURN REPORT COMMAND...\n   \
    or: inject --kill TEXT PROGRAM REPORT COMMAND...";

/// What this program was asked to do.
struct Arguments {
    /// The number of the system call that is counted.
    call: u32,
    fault: Fault,
    /// The name of the executable whose calls are counted.
    program: String,
    report: String,
    command: Vec<String>,
}

/// The call that has an effect, and the effect.
enum Fault {
    /// The call number `turn` fails with this error.
    Fails { turn: u64, error: Errno },
    /// The first `write` of this text kills its process.
    Kills { text: String },
}

impl Arguments {
    fn parse(words: &[String]) -> Result<Arguments> {
        match words {
            [option, text, program, report, command @ ..] if option == "--kill" => Ok(Arguments {
                call: u32::try_from(libc::SYS_write)?,
                fault: Fault::Kills { text: text.clone() },
                program: program.clone(),
                report: report.clone(),
                command: command.to_vec(),
            }),
            [call, error, program, turn, report, command @ ..] => Ok(Arguments {
                call: call.parse()?,
                fault: Fault::Fails {
                    turn: turn.parse()?,
                    error: Errno::from_raw_os_error(error.parse()?),
                },
                program: program.clone(),
                report: report.clone(),
                command: command.to_vec(),
            }),
            _ => bail!(USAGE),
        }
    }
}

fn main() -> Result<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let arguments = Arguments::parse(&words)?;

    let mut n_calls = 0;
    let descriptor = OnceLock::new();
    let status = thread::scope(|scope| {
        let job = scope.spawn(|| run(&arguments.command, arguments.call, &descriptor));
        // If the filter cannot be installed, there is never a descriptor.
        while !job.is_finished() {
            if let Some(&fd) = descriptor.get() {
                let listener = SeccompListener::new(fd);
                n_calls = answer_all(&listener, &arguments.program, &arguments.fault);
                break;
            }
            thread::yield_now();
        }
        job.join().expect("it does not panic")
    });
    let report = &arguments.report;
    fs::write(report, n_calls.to_string()).with_context(|| format!("writing {report}"))?;

    let status = status?;
    let code = match status.signal() {
        Some(signal) => 128 + signal,
        None => status.code().unwrap_or_default(),
    };
    Ok(ExitCode::from(u8::try_from(code)?))
}

/// Runs the command with the filter, which also applies to the calling thread from now on.
fn run(command: &[String], call: u32, descriptor: &OnceLock<RawFd>) -> Result<ExitStatus> {
    let [program, arguments @ ..] = command else {
        bail!("there is no command")
    };
    listener::filter_this_thread(call, descriptor).context("installing the filter")?;

    // The command must end when this thread ends, since nobody would answer its calls then.
    // `setpriv` arranges that: code between fork and exec would hold locks of malloc while a call
    // waits for the other thread's answer.
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", "TERM", "--", program])
        .args(arguments);
    command
        .status()
        .with_context(|| format!("running {program}"))
}

/// Answers all calls until no process of the job is left. Returns the number of calls of `program`
/// that were counted.
fn answer_all(listener: &SeccompListener, program: &str, fault: &Fault) -> u64 {
    let mut n_calls = 0;
    let mut has_killed = false;

    while let Some(call) = listener.next() {
        if !is_of_program(&call, program) || is_of_loader(&call) {
            listener.answer(call, None);
            continue;
        }

        n_calls += 1;
        let mut result = None;
        match fault {
            Fault::Fails { turn, error } => {
                if n_calls == *turn {
                    result = Some(*error);
                }
            }
            Fault::Kills { text } => {
                if !has_killed && writes(&call, text) {
                    has_killed = true;
                    kill(call.thread);
                }
            }
        }
        listener.answer(call, result);
    }
    n_calls
}

/// Returns true if the data of a call of `write` contain the text.
fn writes(call: &NotifiedCall, text: &str) -> bool {
    let [_, address, nbytes, ..] = call.arguments;
    let mut data = vec![0; usize::try_from(nbytes).unwrap_or_default()];
    // The process may be killed meanwhile, or the address may be wrong.
    let Ok(memory) = File::open(format!("/proc/{}/mem", call.thread)) else {
        return false;
    };
    if memory.read_exact_at(&mut data, address).is_err() {
        return false;
    }
    String::from_utf8_lossy(&data).contains(text)
}

/// Kills the process of a thread, which waits for the answer to its call.
fn kill(thread: u32) {
    let thread = i32::try_from(thread).ok().and_then(Pid::from_raw);
    let thread = thread.expect("the kernel has named it");
    kill_process(thread, Signal::KILL).expect("it is ours, and waits");
}

fn is_of_program(call: &NotifiedCall, program: &str) -> bool {
    let executable = fs::read_link(format!("/proc/{}/exe", call.thread)).unwrap_or_default();
    executable.file_name() == Path::new(program).file_name()
}

/// Returns true if the dynamic loader made the call. Such calls do not fail here, since the loader
/// reports an error itself, or crashes.
fn is_of_loader(call: &NotifiedCall) -> bool {
    let maps = fs::read_to_string(format!("/proc/{}/maps", call.thread)).unwrap_or_default();
    for line in maps.lines() {
        if mapped_range(line).is_some_and(|range| range.contains(&call.instruction)) {
            let file = line.rsplit('/').next().unwrap_or_default();
            return file.starts_with("ld-") || file.starts_with("ld.");
        }
    }
    false
}

/// Returns the addresses of a line of /proc/PID/maps, such as `7f00-7fff r-xp ...`.
fn mapped_range(line: &str) -> Option<Range<u64>> {
    let (start, rest) = line.split_once('-')?;
    let (end, _) = rest.split_once(' ')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    let end = u64::from_str_radix(end, 16).ok()?;
    Some(start..end)
}
