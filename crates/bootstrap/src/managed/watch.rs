//! A thread of this PE watches the processes without which its job would hang: the process manager
//! of its node, and other PEs.
//!
//! Not every process manager ends a job when one of its processes dies: Slurm does so only on
//! request. So each PE has a liveness connection, on which it reports its phases, a byte each, to
//! one that watches it: the first PE of a node watches all others, and the second one watches the
//! first. If a liveness connection ends before the last finalize, a PE has died.
//!
//! A manager that is killed does not end its PEs, so each of them ends itself. PMIx's library
//! reports that by itself; for managers that speak over a socket, the thread waits for its end.
//!
//! The fence of a process manager may take as long as its slowest process, and not every manager
//! ends a job in which a process has ended before the fence. Therefore nothing times out, but a PE
//! prints what it waits for ([`Notice`]).
#![allow(unsafe_code)]

use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::SendFlags;
use rustix::process::Pid;

use super::manager::Ender;
use super::mpi::{self, Mpi};
use crate::time_limit::TimeLeft;

/// The time for which the process manager may take to end the job, or this PE, by itself.
const MANAGER_GRACE: Duration = Duration::from_secs(1);

const FINALIZED: u8 = b'f';
const RESUMED: u8 = b'r';

/// A connection to a PE of this node whose end shows that the PE has ended.
#[derive(Clone, Debug)]
pub(super) struct LivenessConnection {
    pub(super) pe: u32,
    /// `None` if it is in another PID namespace.
    pub(super) pid: Option<Pid>,
    pub(super) stream: Arc<UnixStream>,
}

/// The liveness connections of this PE. They end when the process ends.
#[derive(Debug)]
pub(super) struct LivenessConnections {
    lines: Vec<LivenessConnection>,
}

impl LivenessConnections {
    /// Has PE `me` watched over `lines`, watch the PEs at their other ends if `watches`, and watch
    /// the process manager.
    pub(super) fn start(
        me: u32,
        lines: Vec<LivenessConnection>,
        watches: bool,
        manager: Arc<dyn Ender>,
    ) -> LivenessConnections {
        let watched = if watches { lines.clone() } else { Vec::new() };
        if !watched.is_empty() || manager.line().is_some() {
            let watch = move || watch(me, watched, &*manager);
            // Without memory for a thread the process manager is alone in watching.
            let _ = without_signals(|| {
                thread::Builder::new().name("rushmem-watch".into()).spawn(watch)
            });
        }
        LivenessConnections { lines }
    }

    /// Reports that the last finalize is done, so that this PE may end.
    pub(super) fn finalized(&self) {
        self.report(FINALIZED);
    }

    /// Reports that this PE has entered initialization again.
    pub(super) fn resumed(&self) {
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

/// The events to wait for on the connection to the manager. What arrives there is for others.
const END: PollFlags = PollFlags::RDHUP;

/// Watches until all are gone.
fn watch(me: u32, lines: Vec<LivenessConnection>, ender: &dyn Ender) {
    let mut lines: Vec<(LivenessConnection, bool)> =
        lines.into_iter().map(|line| (line, false)).collect();
    let mut manager = ender.line();
    while !lines.is_empty() || manager.is_some() {
        let mut fds: Vec<_> =
            lines.iter().map(|(line, _)| PollFd::new(&*line.stream, PollFlags::IN)).collect();
        fds.extend(manager.as_ref().map(|line| PollFd::new(line, END)));
        match poll(&mut fds, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            // A process that the kernel does not watch is left to the process manager.
            Err(_) => return,
        }
        let events: Vec<PollFlags> = fds.iter().map(PollFd::revents).collect();
        if manager.is_some() && !events[lines.len()].is_empty() {
            if has_ended(events[lines.len()]) && is_needed(ender) {
                end_without_manager(
                    me,
                    "the process manager of this host is gone; all of its PEs end",
                );
            }
            manager = None;
        }
        let mut events = events.into_iter();
        lines.retain_mut(|(line, finalized)| {
            if events.next().is_none_or(|event| event.is_empty()) {
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

fn report_death(line: &LivenessConnection, ender: &dyn Ender) {
    thread::sleep(MANAGER_GRACE);
    let pid = line.pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default();
    // A PE may have no stderr.
    let _ = writeln!(std::io::stderr(), "PE {}{pid} ended without shmem_finalize", line.pe);
    ender.end(1);
}

/// Returns true if this is the end of a connection, which a number that is no open file does not
/// have.
fn has_ended(events: PollFlags) -> bool {
    events.intersects(END | PollFlags::HUP | PollFlags::ERR)
}

/// Returns true if this process still needs its manager soon after the end of their connection.
fn is_needed(manager: &dyn Ender) -> bool {
    thread::sleep(MANAGER_GRACE);
    // The program's MPI shares the connection, and its end of MPI may have closed it.
    !manager.has_left() && mpi::present() == Mpi::Absent
}

/// Ends this PE, whose manager is gone.
pub(super) fn end_without_manager(me: u32, what: &str) -> ! {
    // One line is enough for the job: a manager that has lost only one of its hosts reports that
    // itself.
    if me == 0 {
        // The standard error may have gone with the manager.
        let _ = writeln!(std::io::stderr(), "PE 0: {what}");
    }
    // SAFETY: it ends the process at once, whatever its other threads do: exit handlers could wait
    // for other PEs.
    unsafe { libc::_exit(1) }
}

/// Something that is waited for until this is dropped.
#[derive(Debug)]
pub(super) struct Notice {
    over: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Notice {
    /// Says that PE `pe` waits for all others, when it has for that long. The first and the last PE
    /// of a job do, so that one of them is left to say it.
    pub(super) fn after(wait: Duration, pe: u32, n_pes: u32) -> Notice {
        if n_pes == 1 || (pe != 0 && pe != n_pes - 1) {
            return Notice { over: None, thread: None };
        }
        let seconds = wait.as_secs();
        Notice::run(wait, move || {
            // A PE may have no stderr.
            let _ = writeln!(
                std::io::stderr(),
                "PE {pe} has waited {seconds} s for all {n_pes} PEs of the job to call shmem_init, and goes on waiting: \
                 one may have ended before it, which this launcher has not noticed; look for their processes, or end \
                 the job"
            );
        })
    }

    fn run(wait: Duration, report: impl FnOnce() + Send + 'static) -> Notice {
        let (over, is_over) = channel();
        let watch = move || {
            let mut limit = TimeLeft::new(wait);
            while let Some(waited) = limit.spend(|slice| is_over.recv_timeout(slice)) {
                if waited != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
            report();
        };
        // Without memory for a thread nothing is said.
        let thread =
            without_signals(|| thread::Builder::new().name("rushmem-notice".into()).spawn(watch))
                .ok();
        Notice { over: Some(over), thread }
    }
}

impl Drop for Notice {
    fn drop(&mut self) {
        self.over = None;
        if let Some(thread) = self.thread.take() {
            // It has nothing to return.
            let _ = thread.join();
        }
    }
}

/// Blocks all signals in the threads that `start` starts, since signals are for the program.
pub(crate) fn without_signals<T>(start: impl FnOnce() -> T) -> T {
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
    use rustix::time::Timespec;
    use std::os::fd::{AsFd, BorrowedFd};
    use std::sync::mpsc;

    #[derive(Debug)]
    struct TestEnder(mpsc::Sender<i32>);

    impl Ender for TestEnder {
        fn ask(&self, status: i32) -> bool {
            self.0.send(status).is_ok()
        }
    }

    /// A manager whose connection may have ended.
    #[derive(Debug)]
    struct Socket {
        stream: UnixStream,
        has_left: bool,
    }

    impl Ender for Socket {
        fn ask(&self, _: i32) -> bool {
            false
        }

        fn line(&self) -> Option<BorrowedFd<'_>> {
            Some(self.stream.as_fd())
        }

        fn has_left(&self) -> bool {
            self.has_left
        }
    }

    /// Returns what the kernel reports about the connection to a manager now.
    fn now(line: BorrowedFd<'_>) -> PollFlags {
        let mut fds = [PollFd::new(&line, END)];
        poll(&mut fds, Some(&Timespec::default())).expect("it looks");
        fds[0].revents()
    }

    /// Returns a watch of PE 7, this PE's end of the line, and the requests to end the job.
    fn watched() -> (UnixStream, mpsc::Receiver<i32>) {
        let (here, there) = UnixStream::pair().expect("a pair");
        let (end, ends) = mpsc::channel();
        let line = LivenessConnection { pe: 7, pid: Some(Pid::INIT), stream: Arc::new(there) };
        LivenessConnections::start(0, vec![line], true, Arc::new(TestEnder(end)));
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
        let watch = LivenessConnections {
            lines: vec![LivenessConnection { pe: 0, pid: Some(Pid::INIT), stream: Arc::new(here) }],
        };
        watch.finalized();
        watch.resumed();
        watch.finalized();
        drop(watch);
        assert!(ends.recv().is_err(), "the watch is over, and the job has not ended");
    }

    #[test]
    fn only_the_end_of_the_managers_connection_is_an_event() {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        theirs.write_all(b"cmd=barrier_out\n").expect("room");
        assert_eq!(now(ours.as_fd()), PollFlags::empty(), "data are not its end");
        drop(theirs);
        assert!(has_ended(now(ours.as_fd())));
        // SAFETY: it is only passed to poll, which reports that no file has this number.
        let closed = unsafe { BorrowedFd::borrow_raw(i32::MAX) };
        assert_eq!(now(closed), PollFlags::NVAL);
        assert!(!has_ended(PollFlags::NVAL));
    }

    #[test]
    fn a_manager_may_end_when_this_process_has_left() {
        let (stream, theirs) = UnixStream::pair().expect("a pair");
        drop(theirs);
        let mut manager = Socket { stream, has_left: false };
        assert!(is_needed(&manager));
        manager.has_left = true;
        // It returns instead of ending this process.
        watch(0, Vec::new(), &manager);
    }

    #[test]
    fn only_what_takes_long_is_reported() {
        let (report, reports) = channel();
        let quick = report.clone();
        drop(Notice::run(Duration::from_secs(60), move || quick.send("quick").expect("heard")));
        let slow =
            Notice::run(Duration::from_millis(20), move || report.send("slow").expect("heard"));
        assert_eq!(reports.recv(), Ok("slow"));
        drop(slow);
        assert!(reports.recv().is_err(), "once");
    }
}
