//! The PEs of a node watch each other, since not every process manager ends a job when one of its
//! processes dies: Slurm does so only on request.
//!
//! Two PEs keep a connection on which each reports its phases, a byte each, and nothing else. If
//! the connection ends before the last finalize, a PE has died. The first PE of a node watches all
//! others, and the second one watches the first, with one sleeping thread each.
#![allow(unsafe_code)]

use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::SendFlags;

use super::manager::Ender;

/// How long the process manager may take to end the job by itself.
const MANAGER_GRACE: Duration = Duration::from_secs(1);

const FINALIZED: u8 = b'f';
const RESUMED: u8 = b'r';

/// A connection to a PE of this node.
#[derive(Clone, Debug)]
pub(crate) struct Lifeline {
    pub(crate) pe: u32,
    pub(crate) stream: Arc<UnixStream>,
}

/// This PE's lifelines: as long as the process keeps them it lives.
#[derive(Debug)]
pub(crate) struct Lifelines {
    lines: Vec<Lifeline>,
}

impl Lifelines {
    /// Watches the PEs of `lines` if `watches`, and has this PE watched by some of them.
    pub(crate) fn start(lines: Vec<Lifeline>, watches: bool, ender: Arc<dyn Ender>) -> Lifelines {
        if watches && !lines.is_empty() {
            let watched = lines.clone();
            let start = || {
                thread::Builder::new()
                    .name("rushmem-watch".into())
                    .spawn(move || watch(watched, &*ender))
            };
            // Without memory for a thread the process manager is alone in watching.
            let _ = without_signals(start);
        }
        Lifelines { lines }
    }

    /// The last finalize is done: this PE may end.
    pub(crate) fn finalized(&self) {
        self.report(FINALIZED);
    }

    /// It has entered initialization again.
    pub(crate) fn resumed(&self) {
        self.report(RESUMED);
    }

    fn report(&self, phase: u8) {
        for line in &self.lines {
            // A PE that is gone need not know, and one that does not watch never reads.
            let _ = rustix::net::send(
                &*line.stream,
                &[phase],
                SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
            );
        }
    }
}

/// Watches until all are gone.
fn watch(lines: Vec<Lifeline>, ender: &dyn Ender) {
    let mut lines: Vec<(Lifeline, bool)> = lines.into_iter().map(|line| (line, false)).collect();
    while !lines.is_empty() {
        let mut fds: Vec<_> =
            lines.iter().map(|(line, _)| PollFd::new(&*line.stream, PollFlags::IN)).collect();
        if poll(&mut fds, None).is_err() {
            continue;
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut ready = ready.into_iter();
        lines.retain_mut(|(line, finalized)| {
            if !ready.next().unwrap_or(false) {
                return true;
            }
            let mut phases = [0; 16];
            match (&*line.stream).read(&mut phases) {
                Ok(nbytes @ 1..) => {
                    *finalized = phases[nbytes - 1] == FINALIZED;
                    true
                }
                _ if *finalized => false,
                _ => {
                    report_death(line, ender);
                    false
                }
            }
        });
    }
}

fn report_death(line: &Lifeline, ender: &dyn Ender) {
    thread::sleep(MANAGER_GRACE);
    let pid = rustix::net::sockopt::socket_peercred(&*line.stream)
        .map_or(0, |credentials| credentials.pid.as_raw_nonzero().get());
    let pe = line.pe;
    // A PE may have no stderr.
    let _ = writeln!(std::io::stderr(), "PE {pe} (pid {pid}) ended without shmem_finalize");
    ender.end(1);
}

/// A thread that `start` starts gets no signal: they are the program's.
pub(super) fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: writes a set, which every bit pattern of its size is.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    let mut old = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `all` was written; `old` has room for this thread's mask.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), old.as_mut_ptr()) };
    let result = start();
    // SAFETY: `old` was written by the call above, which cannot fail for a valid request.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, old.as_ptr(), std::ptr::null_mut()) };
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[derive(Debug)]
    struct TestEnder(mpsc::Sender<i32>);

    impl Ender for TestEnder {
        fn ask(&self, status: i32) -> bool {
            self.0.send(status).is_ok()
        }
    }

    /// A watch of PE 7, this PE's end of the line, and the requests to end the job.
    fn watched() -> (UnixStream, mpsc::Receiver<i32>) {
        let (here, there) = UnixStream::pair().expect("a pair");
        let (end, ends) = mpsc::channel();
        let line = Lifeline { pe: 7, stream: Arc::new(there) };
        Lifelines::start(vec![line], true, Arc::new(TestEnder(end)));
        (here, ends)
    }

    #[test]
    fn a_pe_that_ends_before_finalize_ends_the_job() {
        for phases in [&b""[..], b"fr", b"frfr"] {
            let (mut here, ends) = watched();
            here.write_all(phases).expect("it reads");
            drop(here);
            assert_eq!(ends.recv(), Ok(1), "{phases:?}");
        }
    }

    #[test]
    fn a_pe_that_ends_after_finalize_does_not() {
        let (here, ends) = watched();
        let watch = Lifelines { lines: vec![Lifeline { pe: 0, stream: Arc::new(here) }] };
        watch.finalized();
        watch.resumed();
        watch.finalized();
        drop(watch);
        assert!(ends.recv().is_err(), "the watch is over, and the job has not ended");
    }
}
