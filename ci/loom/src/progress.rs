//! The flags of a provider's service thread, which backs off while other threads poll, and
//! completes operations that calls leave unfinished.

#[path = "../../../crates/transport/src/progress/flush_list.rs"]
pub(crate) mod flush_list;

use crate::primitive;
use crate::wakeup::Wakeup;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use loom::thread;

/// The flags of a service thread, whether its timer was set, and the number of operations that
/// calls have left unfinished.
#[derive(Default)]
struct Service {
    wakeup: Wakeup,
    rings: AtomicBool,
    unfinished: AtomicUsize,
}

impl Service {
    /// Performs a call that leaves an operation unfinished.
    fn call(&self) {
        self.unfinished.fetch_add(1, Relaxed);
        self.wakeup.request(|| self.rings.store(true, Relaxed));
    }

    /// Ends the polls of another thread.
    fn stop_polling(&self) {
        self.wakeup.stop_polling(|| self.rings.store(true, Relaxed));
    }

    /// Performs a turn of the service thread before it sleeps, while no thread polls. Returns the
    /// number of unfinished operations that it has seen.
    fn turn(&self) -> usize {
        self.wakeup.set_pending();
        self.wakeup.clear_pending();
        self.unfinished.load(Relaxed)
    }
}

/// Checks that the service thread sees what the calls of `n_callers` threads have left before it
/// sleeps, or that the timer ends the sleep. `preemption_bound` limits the executions that are
/// tried; see [`loom::model::Builder`].
fn check_that_the_service_thread_sees_or_wakes(n_callers: usize, preemption_bound: Option<usize>) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemption_bound;

    model.check(move || {
        let service = Arc::new(Service::default());
        let mut callers = Vec::new();
        for _ in 0..n_callers {
            let service = service.clone();
            callers.push(thread::spawn(move || service.call()));
        }

        let n_seen = service.turn();
        for caller in callers {
            caller.join().expect("it returns");
        }

        assert!(
            n_seen == n_callers || service.rings.load(Relaxed),
            "{n_seen} of {n_callers}"
        );
    });
}

#[test]
fn what_a_call_leaves_is_seen_or_ends_the_sleep() {
    check_that_the_service_thread_sees_or_wakes(1, None);
}

#[test]
fn what_two_threads_leave_is_seen_or_ends_the_sleep() {
    // All executions of three threads take minutes.
    check_that_the_service_thread_sees_or_wakes(2, Some(3));
}

#[test]
fn a_thread_that_stops_polling_prevents_a_sleep_or_ends_it() {
    loom::model(|| {
        let service = Arc::new(Service::default());
        let poller = {
            let service = service.clone();
            thread::spawn(move || service.stop_polling())
        };
        let sleeps = service.wakeup.back_off();
        poller.join().expect("it returns");
        assert!(!sleeps || service.rings.load(Relaxed));
    });
}
