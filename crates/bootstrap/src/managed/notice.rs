//! A line for the user if a job does not start.
//!
//! The fence of a process manager may take as long as its slowest process, and not every manager
//! ends a job in which a process has ended before the fence. Therefore nothing times out, but a PE
//! prints what it waits for.

use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::time_left::TimeLeft;
use super::watch::without_signals;

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

#[cfg(test)]
mod tests {
    use super::*;

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
