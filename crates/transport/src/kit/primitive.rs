//! The atomics and fences of `wakeup`, named in one place: the models in `ci/loom` compile that
//! file with loom's instead.

pub(crate) use std::sync::atomic::{AtomicBool, Ordering, fence};
