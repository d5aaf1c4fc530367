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

/// The call that has an effect, and the effect.
enum Fault {
    /// The call with this number fails with this error.
    Fails(u64, Errno),
    /// The first `write` of this text kills its process.
    Kills(String),
}

fn main() -> Result<ExitCode> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (call, fault, rest) = match words.as_slice() {
        [option, text, rest @ ..] if option == "--kill" => {
            let write = u32::try_from(libc::SYS_write)?;
            (write, Fault::Kills(text.clone()), rest.to_vec())
        }
        [call, error, program, turn, rest @ ..] => {
            let error = Errno::from_raw_os_error(error.parse()?);
            let rest = [std::slice::from_ref(program), rest].concat();
            (call.parse()?, Fault::Fails(turn.parse()?, error), rest)
        }
        _ => bail!("usage: inject CALL ERROR PROGRAM TURN REPORT COMMAND..."),
    };
    let [program, report, command @ ..] = rest.as_slice() else {
        bail!("usage: inject --kill TEXT PROGRAM REPORT COMMAND...");
    };

    let descriptor = OnceLock::new();
    let (calls, status) = thread::scope(|scope| {
        let job = scope.spawn(|| run(command, call, &descriptor));
        let calls = loop {
            match descriptor.get() {
                Some(fd) => break answer_all(&SeccompListener::new(*fd), program, &fault),
                None if job.is_finished() => break 0,
                None => thread::yield_now(),
            }
        };
        (calls, job.join().expect("it does not panic"))
    });
    fs::write(report, calls.to_string()).with_context(|| format!("writing {report}"))?;

    let status = status?;
    let code = status
        .code()
        .unwrap_or(128 + status.signal().unwrap_or_default());
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
    let mut calls = 0;
    let mut has_killed = false;

    while let Some(call) = listener.next() {
        let counts = is_of_program(&call, program) && !is_of_loader(&call);
        calls += u64::from(counts);

        let mut error = None;
        match fault {
            Fault::Fails(turn, with) if counts && calls == *turn => error = Some(*with),
            Fault::Kills(text) if counts && !has_killed && writes(&call, text) => {
                has_killed = true;
                kill(call.thread);
            }
            _ => {}
        }
        listener.answer(call, error);
    }
    calls
}

/// Returns true if the data of a call of `write` contain the text.
fn writes(call: &NotifiedCall, text: &str) -> bool {
    let [_, address, nbytes, ..] = call.arguments;
    let mut data = vec![0; usize::try_from(nbytes).unwrap_or_default()];
    let memory = File::open(format!("/proc/{}/mem", call.thread));
    let is_read = memory.and_then(|memory| memory.read_exact_at(&mut data, address));
    is_read.is_ok() && String::from_utf8_lossy(&data).contains(text)
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
    let holds = |line: &&str| {
        let range = line
            .split(' ')
            .next()
            .and_then(|range| range.split_once('-'));
        let number = |text| u64::from_str_radix(text, 16).ok();
        let range = range.and_then(|(from, to)| Some(number(from)?..number(to)?));
        range.is_some_and(|range| range.contains(&call.instruction))
    };
    let file = maps
        .lines()
        .find(holds)
        .and_then(|line| line.rsplit('/').next());
    file.is_some_and(|file| file.starts_with("ld-") || file.starts_with("ld."))
}
