//! What has an only user: nobody is inside beside another, and what one did inside the next one
//! sees.

use crate::alone::Alone;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;

/// The number of the user.
const USER: usize = 16;

/// What has an only user is a count, of which an increment is lost if two are inside at once.
struct Used {
    alone: Alone,
    lock: Mutex<()>,
    count: AtomicUsize,
}

impl Used {
    fn new() -> Arc<Used> {
        let alone = Alone::of(AtomicUsize::new(USER), AtomicBool::new(false));
        Arc::new(Used { alone, lock: Mutex::new(()), count: AtomicUsize::new(0) })
    }

    fn increment(&self) {
        self.count.store(self.count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// As its user.
    fn enter(&self) {
        if self.alone.enter(USER) {
            self.increment();
            return self.alone.leave();
        }
        let _lock = self.lock.lock().expect("nobody panics");
        self.increment();
    }

    /// As another thread.
    fn claim(&self) {
        let _lock = self.lock.lock().expect("nobody panics");
        let user = self.alone.claim(thread::yield_now);
        self.increment();
        self.alone.give(user);
    }
}

/// The user enters `enters` times while another thread claims what it uses `claims` times.
fn claimed(enters: usize, claims: usize) {
    loom::model(move || {
        assert!(Alone::can_be_claimed());
        let one = Used::new();
        let other = one.clone();
        let claimant = thread::spawn(move || (0..claims).for_each(|_| other.claim()));
        (0..enters).for_each(|_| one.enter());
        claimant.join().expect("it returns");
        one.enter();
        assert_eq!(one.count.load(Ordering::Relaxed), enters + claims + 1);
    });
}

#[test]
fn the_user_comes_again_beside_a_thread_that_claims() {
    claimed(2, 1);
}

#[test]
fn a_thread_claims_again_beside_the_user() {
    claimed(1, 2);
}
