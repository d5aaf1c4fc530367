//! The service thread: it polls the network while no thread waits in the library.
//!
//! It takes no signals, is woken by its [`Attendance`], and is joined before the data that it uses are dropped. This file must
//! never know what the thread does.

use super::attendance::Attendance;
use crate::Error;
use crate::thread::spawn_service;
use std::sync::Arc;
use std::thread::JoinHandle;

/// A running service thread. Dropping this ends the thread and joins it.
pub struct ServiceThread<S: AsRef<Attendance>> {
    shared: Arc<S>,
    thread: Option<JoinHandle<()>>,
}

impl<S: AsRef<Attendance> + Send + Sync + 'static> ServiceThread<S> {
    /// Starts a thread of this name that calls `run`, which must return soon after the attendance of `shared`
    /// [is closing](Attendance::is_closing).
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(name: &str, shared: &Arc<S>, run: fn(&S)) -> Result<ServiceThread<S>, Error> {
        let shared = Arc::clone(shared);
        let its = Arc::clone(&shared);
        let thread = spawn_service(name, move || run(&its));
        let why =
            |error| Error::Unavailable(format!("the service thread cannot be started: {error}"));
        Ok(ServiceThread { shared, thread: Some(thread.map_err(why)?) })
    }
}

impl<S: AsRef<Attendance>> ServiceThread<S> {
    /// Ends it and waits for its end.
    pub fn end(&mut self) {
        if let Some(thread) = self.thread.take() {
            (*self.shared).as_ref().close();
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

impl<S: AsRef<Attendance>> Drop for ServiceThread<S> {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    struct Shared {
        attendance: Attendance,
        ended: AtomicBool,
    }

    impl AsRef<Attendance> for Shared {
        fn as_ref(&self) -> &Attendance {
            &self.attendance
        }
    }

    fn run(shared: &Shared) {
        while !shared.attendance.is_closing() {
            shared.attendance.back_off(Duration::from_secs(60));
        }
        shared.ended.store(true, Ordering::Release);
    }

    #[test]
    fn a_thread_that_sleeps_is_woken_and_joined() {
        let attendance = Attendance::new().expect("a timer");
        let shared = Arc::new(Shared { attendance, ended: AtomicBool::new(false) });
        let thread = ServiceThread::start("test", &shared, run);
        drop(thread.expect("a thread"));
        assert!(shared.ended.load(Ordering::Acquire));
    }
}
