//! How the only user of something and threads that seldom need it exclude each other: the user
//! comes and goes by plain stores and loads, without an atomic read-modify-write; another thread
//! first takes an ordinary lock, and then claims it from its user.
//!
//! The user may be another thread each time, as long as uses are ordered; it is known by a number
//! that is not 0. It is Dekker's protocol: the user says that it is inside and then looks whether
//! it still is the user; a claim says that it is not, and then looks whether it is inside.
//! `ci/loom` tries every execution, with two sequentially consistent fences in the place of the two
//! barriers.

use super::primitive::{
    AtomicBool, AtomicUsize, Ordering, has_heavy_barrier, heavy_barrier, light_barrier,
};

/// There is no user, or another thread has claimed it.
const NOBODY: usize = 0;

/// Who may enter without the lock, and whether it is inside.
#[derive(Debug)]
pub struct Alone {
    /// The number of the user, which changes under the lock alone.
    user: AtomicUsize,
    /// The user is inside. It alone changes this.
    inside: AtomicBool,
}

impl Alone {
    /// Of these, which are 0 and `false`. Loom's are not constants.
    pub const fn of(user: AtomicUsize, inside: AtomicBool) -> Alone {
        Alone { user, inside }
    }

    /// Whether a thread can claim anything from a user: not without a heavy barrier.
    pub fn can_be_claimed() -> bool {
        has_heavy_barrier()
    }

    /// Enters if `user` is the user and no thread has claimed it.
    #[inline(always)]
    pub fn enter(&self, user: usize) -> bool {
        if self.user.load(Ordering::Relaxed) != user {
            return false;
        }
        self.inside.store(true, Ordering::Relaxed);
        light_barrier();
        // What was done under a claim is before what follows.
        if self.user.load(Ordering::Acquire) == user {
            return true;
        }
        self.leave();
        false
    }

    /// The user that has entered leaves.
    #[inline(always)]
    pub fn leave(&self) {
        self.inside.store(false, Ordering::Release);
    }

    /// Claims it by a thread that has the lock, until [`give`](Alone::give): the user, to whom that
    /// gives it back. `pause` is called as long as the user is inside. The caller knows that it
    /// [can](Alone::can_be_claimed).
    pub fn claim(&self, pause: impl Fn()) -> usize {
        let user = self.user.load(Ordering::Relaxed);
        if user != NOBODY {
            self.user.store(NOBODY, Ordering::Relaxed);
            heavy_barrier();
            while self.inside.load(Ordering::Acquire) {
                pause();
            }
        }
        user
    }

    /// From now on `user` is the user, or none if it is 0. The caller has the lock.
    pub fn give(&self, user: usize) {
        self.user.store(user, Ordering::Release);
    }
}
