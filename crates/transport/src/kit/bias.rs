//! The protocol of a biased lock: its owner, the first thread that enters, comes and goes by plain stores and loads, without an atomic
//! read-modify-write; all others first take an ordinary lock, the claims, and then claim it from the owner.
//!
//! It is Dekker's protocol: the owner says that it is inside and then looks whether it still is the owner; who claims says that it
//! is not, and then looks whether it is inside. The barrier that belongs between the two is a light one for the owner and a heavy
//! one, a system call, for whoever claims. `ci/loom` tries every execution, with two sequentially consistent fences in their stead.
//!
//! This file must never know what is locked, nor how often it is claimed.

use super::primitive::{
    AtomicBool, AtomicUsize, Ordering, has_heavy_barrier, heavy_barrier, light_barrier,
};

/// Nobody has entered yet.
const NOBODY: usize = 0;
/// Several threads enter, so that all take the claims.
const EVERYBODY: usize = 1;
/// Whoever has the claims is inside, and gives it back to its owner.
const CLAIMED: usize = 2;

/// Who may enter without the claims, and whether it is inside.
pub(crate) struct Bias {
    /// A thread's number, or one of the above. It changes under the claims alone.
    owner: AtomicUsize,
    /// The owner is inside. The owner alone changes it.
    inside: AtomicBool,
}

impl Bias {
    /// For whoever enters first, where there is a heavy barrier, or else for everybody.
    pub(crate) fn new() -> Bias {
        Bias { owner: AtomicUsize::new(vacant()), inside: AtomicBool::new(false) }
    }

    /// Enters if the calling thread, whose number is `me`, is the owner and neither is inside nor finds it claimed.
    #[inline(always)]
    pub(crate) fn enter(&self, me: usize) -> bool {
        if self.owner.load(Ordering::Relaxed) != me || self.inside.load(Ordering::Relaxed) {
            return false;
        }
        self.inside.store(true, Ordering::Relaxed);
        light_barrier();
        // What was done under a claim is before what follows.
        if self.owner.load(Ordering::Acquire) == me {
            return true;
        }
        self.leave();
        false
    }

    /// Whoever has entered leaves.
    #[inline(always)]
    pub(crate) fn leave(&self) {
        self.inside.store(false, Ordering::Release);
    }

    /// Enters by a thread that has the claims. The first one is the owner from then on; with the second one there is none any more.
    /// `None` if it has entered as the owner, and needs the claims no more; otherwise what [`give_back`](Bias::give_back) gets in
    /// the end. `pause` is called as long as the owner is inside.
    pub(crate) fn enter_by_claims(&self, me: usize, pause: impl Fn()) -> Option<usize> {
        let owner = self.owner.load(Ordering::Relaxed);
        if owner == NOBODY || owner == me {
            assert!(!self.inside.load(Ordering::Relaxed), "no thread enters twice");
            self.owner.store(me, Ordering::Relaxed);
            self.inside.store(true, Ordering::Relaxed);
            return None;
        }
        if owner != EVERYBODY {
            self.owner.store(EVERYBODY, Ordering::Relaxed);
            heavy_barrier();
            while self.inside.load(Ordering::Acquire) {
                pause();
            }
        }
        Some(EVERYBODY)
    }

    /// Claims it by a thread that has the claims: what [`give_back`](Bias::give_back) gets in the end, or `None` if the owner is
    /// inside.
    pub(crate) fn claim(&self) -> Option<usize> {
        let owner = self.owner.load(Ordering::Relaxed);
        if owner == NOBODY || owner == EVERYBODY {
            return Some(owner);
        }
        if self.inside.load(Ordering::Relaxed) {
            return None;
        }
        self.owner.store(CLAIMED, Ordering::Relaxed);
        heavy_barrier();
        if self.inside.load(Ordering::Acquire) {
            self.give_back(owner);
            return None;
        }
        Some(owner)
    }

    /// Whether a claim takes it from an owner.
    pub(crate) fn has_owner(&self) -> bool {
        ![NOBODY, EVERYBODY].contains(&self.owner.load(Ordering::Relaxed))
    }

    /// Who enters next is the owner. No thread enters meanwhile, and the caller has claimed it, which this ends.
    pub(crate) fn disown(&self) {
        self.give_back(vacant());
    }

    /// Ends a claim.
    pub(crate) fn give_back(&self, owner: usize) {
        self.owner.store(owner, Ordering::Release);
    }
}

/// Without a heavy barrier there is no owner.
fn vacant() -> usize {
    if has_heavy_barrier() { NOBODY } else { EVERYBODY }
}
