//! A biased lock, and what has an only user: nobody is inside beside another, and what one did inside the next one sees.

use crate::alone::Alone;
use crate::bias::Bias;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;

/// What is locked is a count, of which an increment is lost if two are inside at once.
struct Locked {
    bias: Bias,
    claims: Mutex<()>,
    count: AtomicUsize,
}

impl Locked {
    fn new() -> Arc<Locked> {
        let (claims, count) = (Mutex::new(()), AtomicUsize::new(0));
        Arc::new(Locked { bias: Bias::new(), claims, count })
    }

    fn increment(&self) {
        self.count.store(self.count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// As a thread that waits for the lock.
    fn wait(&self, me: usize) {
        if self.bias.enter(me) {
            self.increment();
            return self.bias.leave();
        }
        let claims = self.claims.lock().expect("nobody panics");
        match self.bias.enter_by_claims(me, thread::yield_now) {
            None => {
                drop(claims);
                self.increment();
                self.bias.leave();
            }
            Some(owner) => {
                self.increment();
                self.bias.give_back(owner);
            }
        }
    }

    /// As a thread that tries, and may be refused.
    fn attempt(&self) -> usize {
        let Ok(_claims) = self.claims.try_lock() else { return 0 };
        let Some(owner) = self.bias.claim() else { return 0 };
        self.increment();
        self.bias.give_back(owner);
        1
    }
}

const OWNER: usize = 16;
const SECOND: usize = 32;

/// The owner waits so often while another thread tries so often.
fn beside(waits: usize, tries: usize) {
    loom::model(move || {
        let one = Locked::new();
        one.wait(OWNER);
        let other = one.clone();
        let other = thread::spawn(move || (0..tries).map(|_| other.attempt()).sum::<usize>());
        (0..waits).for_each(|_| one.wait(OWNER));
        let tried = other.join().expect("it returns");
        one.wait(OWNER);
        assert_eq!(one.count.load(Ordering::Relaxed), 2 + waits + tried);
    });
}

#[test]
fn the_owner_comes_again_beside_a_thread_that_tries() {
    beside(2, 1);
}

#[test]
fn a_thread_tries_again_beside_the_owner() {
    beside(1, 2);
}

#[test]
fn with_a_second_thread_that_waits_nobody_is_the_owner() {
    loom::model(|| {
        let one = Locked::new();
        one.wait(OWNER);
        let second = one.clone();
        let waits = thread::spawn(move || second.wait(SECOND));
        one.wait(OWNER);
        one.wait(OWNER);
        waits.join().expect("it returns");
        assert_eq!(one.count.load(Ordering::Relaxed), 4);
        assert!(!one.bias.has_owner());
        one.bias.disown();
        one.wait(SECOND);
        assert!(one.bias.has_owner());
    });
}

#[test]
fn the_first_of_two_is_the_owner_until_the_other_comes() {
    loom::model(|| {
        let one = Locked::new();
        let second = one.clone();
        let waits = thread::spawn(move || second.wait(SECOND));
        one.wait(OWNER);
        waits.join().expect("it returns");
        assert_eq!(one.count.load(Ordering::Relaxed), 2);
    });
}

/// What has an only user is a count as above.
struct Used {
    alone: Alone,
    lock: Mutex<()>,
    count: AtomicUsize,
}

impl Used {
    fn new() -> Arc<Used> {
        let alone = Alone::of(AtomicUsize::new(OWNER), AtomicBool::new(false));
        Arc::new(Used { alone, lock: Mutex::new(()), count: AtomicUsize::new(0) })
    }

    fn increment(&self) {
        self.count.store(self.count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// As its user.
    fn enter(&self) {
        if self.alone.enter(OWNER) {
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
