//! The atomics and fences of `alone` and `wakeup`, named in one place: the models in `ci/loom`
//! compile these files with loom's instead.
//!
//! A light barrier is one for the compiler alone and takes no instruction; a heavy one has the
//! kernel carry out a barrier on every processor that runs a thread of this process. Together they
//! order as two sequentially consistent fences do: of one thread that stores, passes a light
//! barrier and loads, and another that stores, passes a heavy barrier and loads, one sees what the
//! other has stored.

use rustix::thread::{MembarrierCommand, membarrier};
use std::sync::OnceLock;
pub use std::sync::atomic::{AtomicBool, AtomicUsize};
pub(crate) use std::sync::atomic::{Ordering, compiler_fence, fence};

/// Whether the kernel has a heavy barrier for this process.
pub(crate) fn has_heavy_barrier() -> bool {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    *REGISTERED.get_or_init(|| {
        // Miri has no such call.
        !cfg!(miri) && membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
    })
}

/// The barrier of the side that passes often.
#[inline(always)]
pub(crate) fn light_barrier() {
    compiler_fence(Ordering::SeqCst);
}

/// The barrier of the side that passes seldom. The caller knows that there is one.
pub(crate) fn heavy_barrier() {
    membarrier(MembarrierCommand::PrivateExpedited).expect("the process is registered for it");
}
