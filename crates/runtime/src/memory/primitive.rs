//! The atomics of the library's own waiting and ordering, named in one place: the models in
//! `ci/loom` compile `doorbell` and `visibility` with loom's in their stead.

pub(crate) use std::sync::atomic::{AtomicU32, Ordering, fence};
