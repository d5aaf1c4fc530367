//! Every PE watches the process manager on its node, since nobody ends the PEs of a manager that is killed. They would wait for
//! each other or compute for nobody.
//!
//! This is for managers that speak over a socket; PMIx's library reports the loss of its server by itself.
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
const FIRST_WORD: Duration = Duration::from_secs(1);

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
    let _ = without_signals(|| thread::Builder::new().spawn(watch));
}

/// Waits for the end of the connection; returns whether this process still needs the manager then.
fn is_lost(manager: &dyn Ender) -> bool {
    let Some(line) = manager.line() else { return false };
    wait_for_end(line);
    thread::sleep(FIRST_WORD);
    // The program's MPI shares the connection, and its end of MPI may have closed it.
    !manager.has_left() && mpi::present() == Mpi::Absent
}

/// What arrives on the connection meanwhile is for others.
fn wait_for_end(line: BorrowedFd<'_>) {
    loop {
        let mut fds = [PollFd::new(&line, PollFlags::RDHUP)];
        match poll(&mut fds, None) {
            Err(Errno::INTR) => {}
            Ok(_) | Err(_) => return,
        }
    }
}

fn end(pe: u32) -> ! {
    // One line is enough for the job: a manager that has lost only one of its hosts reports that itself.
    if pe == 0 {
        // The standard error may have gone with the manager.
        let _ = writeln!(
            std::io::stderr(),
            "PE 0: the process manager of this host is gone; all of its PEs end"
        );
    }
    // SAFETY: it ends the process at once, whatever its other threads do: exit handlers could wait for other PEs.
    unsafe { libc::_exit(1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;

    #[derive(Debug)]
    struct Socket(UnixStream, AtomicBool);

    impl Ender for Socket {
        fn ask(&self, _: i32) -> bool {
            false
        }

        fn line(&self) -> Option<BorrowedFd<'_>> {
            Some(self.0.as_fd())
        }

        fn has_left(&self) -> bool {
            self.1.load(Ordering::Acquire)
        }
    }

    #[test]
    fn a_manager_is_lost_when_its_connection_ends_before_this_process_leaves() {
        for leaves in [false, true] {
            let (ours, mut theirs) = UnixStream::pair().expect("a pair");
            let socket = Arc::new(Socket(ours, AtomicBool::new(false)));
            let watched = socket.clone();
            let (tell, told) = mpsc::channel();
            thread::spawn(move || tell.send(is_lost(&*watched)));
            theirs.write_all(b"cmd=barrier_out\n").expect("room");
            assert!(told.recv_timeout(Duration::from_millis(50)).is_err(), "it has not ended");
            socket.1.store(leaves, Ordering::Release);
            drop(theirs);
            assert_eq!(told.recv(), Ok(!leaves));
        }
    }
}
