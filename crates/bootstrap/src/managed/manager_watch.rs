//! Every PE watches the process manager on its node, since a manager that is killed does not end
//! its PEs, which would wait for each other or compute for nothing.
//!
//! This is for managers that speak over a socket; PMIx's library reports the loss of its server by
//! itself.
#![allow(unsafe_code)]

use std::io::Write;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::manager::Ender;
use super::mpi::{self, Mpi};
use super::watch::without_signals;

/// How long a manager that ends the job itself has to end this PE.
const MANAGER_GRACE: Duration = Duration::from_secs(1);

/// Has PE `pe` end soon after its manager, by a thread that sleeps until then.
pub(super) fn start(pe: u32, manager: Arc<dyn Ender>) {
    if manager.line().is_none() {
        return;
    }
    let watch = move || {
        if is_lost(&*manager) {
            end(pe);
        }
    };
    // Without memory for a thread the PE is not ended.
    let _ = without_signals(|| thread::Builder::new().name("rushmem-manager".into()).spawn(watch));
}

/// Waits for the end of the connection; returns whether this process still needs the manager then.
fn is_lost(manager: &dyn Ender) -> bool {
    let Some(line) = manager.line() else { return false };
    if !wait_for_end(line) {
        return false;
    }
    thread::sleep(MANAGER_GRACE);
    // The program's MPI shares the connection, and its end of MPI may have closed it.
    !manager.has_left() && mpi::present() == Mpi::Absent
}

/// Waits for the end of the connection. Returns whether it has ended: where the kernel cannot say
/// so, the PE is not ended.
fn wait_for_end(line: BorrowedFd<'_>) -> bool {
    loop {
        let mut fds = [PollFd::new(&line, END)];
        match poll(&mut fds, None) {
            Err(Errno::INTR) => {}
            Ok(_) => return has_ended(&fds[0]),
            Err(_) => return false,
        }
    }
}

/// What to wait for. What arrives on the connection meanwhile is for others.
const END: PollFlags = PollFlags::RDHUP;

/// A number that is no open file is not the end of a connection.
fn has_ended(line: &PollFd<'_>) -> bool {
    line.revents().intersects(PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR)
}

fn end(pe: u32) -> ! {
    // One line is enough for the job: a manager that has lost only one of its hosts reports that
    // itself.
    if pe == 0 {
        // The standard error may have gone with the manager.
        let _ = writeln!(
            std::io::stderr(),
            "PE 0: the process manager of this host is gone; all of its PEs end"
        );
    }
    // SAFETY: it ends the process at once, whatever its other threads do: exit handlers could wait
    // for other PEs.
    unsafe { libc::_exit(1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::time::Timespec;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[derive(Debug)]
    struct Socket(UnixStream, bool);

    impl Ender for Socket {
        fn ask(&self, _: i32) -> bool {
            false
        }

        fn line(&self) -> Option<BorrowedFd<'_>> {
            Some(self.0.as_fd())
        }

        fn has_left(&self) -> bool {
            self.1
        }
    }

    /// What the kernel reports about the connection now.
    fn now(line: BorrowedFd<'_>) -> PollFlags {
        let mut fds = [PollFd::new(&line, END)];
        poll(&mut fds, Some(&Timespec::default())).expect("it looks");
        fds[0].revents()
    }

    #[test]
    fn only_the_end_of_the_connection_is_an_event() {
        let (ours, mut theirs) = UnixStream::pair().expect("a pair");
        theirs.write_all(b"cmd=barrier_out\n").expect("room");
        assert_eq!(now(ours.as_fd()), PollFlags::empty(), "data are not its end");
        drop(theirs);
        assert_ne!(now(ours.as_fd()), PollFlags::empty());
        assert!(wait_for_end(ours.as_fd()));
    }

    #[test]
    fn a_connection_that_cannot_be_watched_has_not_ended() {
        // SAFETY: it is only passed to poll, which reports that no file has this number.
        let closed = unsafe { BorrowedFd::borrow_raw(i32::MAX) };
        assert_eq!(now(closed), PollFlags::NVAL);
        assert!(!wait_for_end(closed));
    }

    #[test]
    fn a_manager_is_lost_when_its_connection_ends_before_this_process_leaves() {
        for leaves in [false, true] {
            let (ours, theirs) = UnixStream::pair().expect("a pair");
            drop(theirs);
            assert_eq!(is_lost(&Socket(ours, leaves)), !leaves);
        }
    }
}
