//! Threads that watch the processes without which the job would hang: the process manager of the
//! node, and other PEs.
//!
//! Not every process manager ends a job when one of its processes dies: Slurm does so only on
//! request. Therefore the first PE of a node watches all others, and the second one watches the
//! first. A PE reports its phases, one byte each, on its liveness connections. If the connection
//! ends before the last finalize, the PE has died.
//!
//! A manager that is killed does not end its PEs, so each of them ends itself. The library of PMIx
//! reports the loss; if the manager is connected by a socket, the thread polls it for its end.
//!
//! The fence of a process manager takes as long as the slowest process, and not every manager ends
//! a job in which a process has ended before the fence. Therefore the fence has no time limit, but
//! a PE prints what it waits for ([`Notice`]).
#![allow(unsafe_code)]

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rushmem_system::signals::without_signals;
use rushmem_system::stderr::print_line;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::SendFlags;
use rustix::process::Pid;

use crate::launched::mpi::{self, Mpi};
use crate::process_manager::Ender;
use crate::time_limit::TimeLeft;

/// Time for the process manager to end the job, or this PE, before the watch does: the manager
/// knows why the PE has died, and says so.
const MANAGER_GRACE: Duration = Duration::from_secs(1);

// The phases that a PE reports.
const FINALIZED: u8 = b'f';
const RESUMED: u8 = b'r';

/// The event to wait for on the connection to the manager: its end. Its data are not read here.
const END: PollFlags = PollFlags::RDHUP;

/// A connection to a PE of this node. It ends when the PE ends.
#[derive(Clone, Debug)]
pub(crate) struct LivenessConnection {
    pub(crate) pe: u32,
    /// `None` if the PE is in another PID namespace.
    pub(crate) pid: Option<Pid>,
    pub(crate) stream: Arc<UnixStream>,
}

/// The liveness connections of this PE. They end when the process ends.
#[derive(Debug)]
pub(crate) struct LivenessConnections {
    connections: Vec<LivenessConnection>,
}

impl LivenessConnections {
    /// Starts a thread that watches the connection to the process manager and, if `watches`, the
    /// PEs at the other ends of the liveness connections. If there is neither, starts none. `me` is
    /// the number of this PE.
    pub(crate) fn start(
        me: u32,
        connections: Vec<LivenessConnection>,
        watches: bool,
        manager: Arc<dyn Ender>,
    ) -> LivenessConnections {
        let mut watched = Vec::new();
        if watches {
            watched.extend(connections.iter().cloned().map(WatchedPe::new));
        }

        if !watched.is_empty() || manager.connection().is_some() {
            // The handle is dropped, since nothing joins the thread. If none can be started, only
            // the process manager notices the death of PEs.
            let _ = without_signals(|| {
                thread::Builder::new()
                    .name("rushmem-watch".into())
                    .spawn(move || watch(me, watched, &*manager))
            });
        }

        LivenessConnections { connections }
    }

    /// Reports that the last finalize is done, so that the end of this PE is not an error.
    pub(crate) fn report_finalize(&self) {
        self.report(FINALIZED);
    }

    /// Reports that this PE has entered initialization again.
    pub(crate) fn report_resumption(&self) {
        self.report(RESUMED);
    }

    fn report(&self, phase: u8) {
        for connection in &self.connections {
            // This fails if the PE has ended. It also fails once the buffer is full, which happens
            // only if the PE does not watch, and so never reads. Neither needs the report.
            let _ = rustix::net::send(
                &*connection.stream,
                &[phase],
                SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
            );
        }
    }
}

/// A PE of this node that the thread watches.
struct WatchedPe {
    connection: LivenessConnection,
    /// True while the last phase that the PE has reported is the last finalize.
    has_finalized: bool,
}

impl WatchedPe {
    fn new(connection: LivenessConnection) -> WatchedPe {
        WatchedPe {
            connection,
            has_finalized: false,
        }
    }

    /// Handles an event on the connection. Returns false once it has ended.
    fn handle_event(&mut self, ender: &dyn Ender) -> bool {
        let mut phases = [0; 16];
        match (&*self.connection.stream).read(&mut phases) {
            // Only the last one of several phases counts.
            Ok(nbytes @ 1..) => {
                self.has_finalized = phases[nbytes - 1] == FINALIZED;
                true
            }
            _ => {
                if !self.has_finalized {
                    report_death(&self.connection, ender);
                }
                false
            }
        }
    }
}

/// Watches until all watched PEs and the connection to the manager have ended. A PE that has
/// finalized is still watched, since it may initialize again.
fn watch(me: u32, mut watched: Vec<WatchedPe>, ender: &dyn Ender) {
    let mut manager = ender.connection();
    while !watched.is_empty() || manager.is_some() {
        let mut fds: Vec<_> = watched
            .iter()
            .map(|pe| PollFd::new(&*pe.connection.stream, PollFlags::IN))
            .collect();
        fds.extend(manager.as_ref().map(|socket| PollFd::new(socket, END)));

        match poll(&mut fds, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            // Without poll, only the process manager notices the death of PEs.
            Err(_) => return,
        }

        // The event of the manager, if it is watched, follows those of the PEs.
        let events: Vec<PollFlags> = fds.iter().map(PollFd::revents).collect();

        if manager.is_some() && !events[watched.len()].is_empty() {
            if has_ended(events[watched.len()]) && is_needed(ender) {
                end_without_manager(
                    me,
                    "the process manager of this host is gone; all of its PEs end",
                );
            }
            // Without this, poll would report the end again and again.
            manager = None;
        }

        let mut events = events.into_iter();
        watched.retain_mut(|pe| {
            let has_event = events.next().is_some_and(|event| !event.is_empty());
            !has_event || pe.handle_event(ender)
        });
    }
}

/// Prints that a PE has died, and ends the job, unless the process manager does so before.
fn report_death(dead: &LivenessConnection, ender: &dyn Ender) {
    thread::sleep(MANAGER_GRACE);

    let pid = dead
        .pid
        .map(|pid| format!(" (pid {pid})"))
        .unwrap_or_default();
    print_line(format_args!(
        "PE {}{pid} ended without shmem_finalize",
        dead.pe
    ));
    ender.end(1);
}

/// Returns true if these events include the end of the connection, and false for a descriptor that
/// is not open (POLLNVAL).
fn has_ended(events: PollFlags) -> bool {
    events.intersects(END | PollFlags::HUP | PollFlags::ERR)
}

/// Returns true if this process still needs its manager a short time after the connection to it has
/// ended.
fn is_needed(manager: &dyn Ender) -> bool {
    thread::sleep(MANAGER_GRACE);
    // The program's MPI shares the connection, and MPI_Finalize may have closed it.
    !manager.has_left() && mpi::state() == Mpi::Absent
}

/// Ends this PE after the loss of its manager. PE 0 prints `what`, the reason.
pub(crate) fn end_without_manager(me: u32, what: &str) -> ! {
    // One line is enough for the job. A manager that has lost only one of its hosts reports that
    // itself.
    if me == 0 {
        print_line(format_args!("PE 0: {what}"));
    }
    // `_exit` runs no exit handlers, which could wait for other PEs.
    // SAFETY: the call ends the process immediately; other threads may be in any state.
    unsafe { libc::_exit(1) }
}

/// A wait that lasts until this value is dropped. If it takes long, a thread prints a line for the
/// user.
#[derive(Debug)]
pub(crate) struct Notice {
    /// Dropped when the wait is over; `None` if this PE is not to print.
    over: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Notice {
    /// Prints after the time `wait` that PE `pe` waits for all others. Only the first and the last
    /// PE of a job print it: if one of them has ended, the other one does.
    pub(crate) fn after(wait: Duration, pe: u32, n_pes: u32) -> Notice {
        if n_pes == 1 || (pe != 0 && pe != n_pes - 1) {
            return Notice {
                over: None,
                thread: None,
            };
        }

        let seconds = wait.as_secs();
        Notice::run(wait, move || {
            print_line(format_args!(
                "PE {pe} has waited {seconds} s for all {n_pes} PEs of the job to call shmem_init, and goes on waiting: \
                 one may have ended before it, which this launcher has not noticed; look for their processes, or end \
                 the job"
            ));
        })
    }

    fn run(wait: Duration, report: impl FnOnce() + Send + 'static) -> Notice {
        let (over, is_over) = channel();
        // If no thread can be started, nothing is printed.
        let thread = without_signals(|| {
            thread::Builder::new()
                .name("rushmem-notice".into())
                .spawn(move || {
                    if !ends_within(wait, &is_over) {
                        report();
                    }
                })
        })
        .ok();
        Notice {
            over: Some(over),
            thread,
        }
    }
}

/// Waits until the sender of `is_over` is dropped. Returns false if the time `wait` has passed
/// first.
fn ends_within(wait: Duration, is_over: &Receiver<()>) -> bool {
    let mut limit = TimeLeft::new(wait);
    while let Some(waited) = limit.spend(|slice| is_over.recv_timeout(slice)) {
        if waited == Err(RecvTimeoutError::Disconnected) {
            return true;
        }
    }
    false
}

impl Drop for Notice {
    fn drop(&mut self) {
        self.over = None;
        if let Some(thread) = self.thread.take() {
            // An error says that the thread has panicked, which has printed why.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::time::Timespec;
    use std::io::Write;
    use std::os::fd::{AsFd, BorrowedFd};
    use std::sync::mpsc;

    #[derive(Debug)]
    struct TestEnder(mpsc::Sender<i32>);

    impl Ender for TestEnder {
        fn request_end(&self, status: i32) -> bool {
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
        fn request_end(&self, _: i32) -> bool {
            false
        }

        fn connection(&self) -> Option<BorrowedFd<'_>> {
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

    /// Starts a watch of PE 7. Returns the connection's end of PE 7, and the requests to end the
    /// job.
    fn watched() -> (UnixStream, mpsc::Receiver<i32>) {
        let (here, there) = UnixStream::pair().expect("a pair");
        let (end, ends) = mpsc::channel();
        let line = LivenessConnection {
            pe: 7,
            pid: Some(Pid::INIT),
            stream: Arc::new(there),
        };
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
            connections: vec![LivenessConnection {
                pe: 0,
                pid: Some(Pid::INIT),
                stream: Arc::new(here),
            }],
        };

        watch.report_finalize();
        watch.report_resumption();
        watch.report_finalize();
        drop(watch);

        assert!(
            ends.recv().is_err(),
            "the watch is over, and the job has not ended"
        );
    }

    #[test]
    fn only_the_end_of_the_managers_connection_is_an_event() {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        theirs.write_all(b"cmd=barrier_out\n").expect("room");
        assert_eq!(
            now(ours.as_fd()),
            PollFlags::empty(),
            "data are not its end"
        );
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
        let mut manager = Socket {
            stream,
            has_left: false,
        };
        assert!(is_needed(&manager));
        manager.has_left = true;
        // The watch returns instead of ending this process.
        watch(0, Vec::new(), &manager);
    }

    #[test]
    fn only_what_takes_long_is_reported() {
        let (report, reports) = channel();
        let quick = report.clone();
        drop(Notice::run(Duration::from_secs(60), move || {
            quick.send("quick").expect("heard")
        }));
        let slow = Notice::run(Duration::from_millis(20), move || {
            report.send("slow").expect("heard")
        });
        assert_eq!(reports.recv(), Ok("slow"));
        drop(slow);
        assert!(reports.recv().is_err(), "once");
    }
}
