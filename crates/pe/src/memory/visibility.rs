//! The memory barriers that fence and quiet need towards mapped peers. The models in `ci/loom` try
//! every execution that the memory model allows.

use super::primitive::{Ordering, fence};

/// Orders earlier accesses before later stores: a fence.
#[inline(always)]
pub fn release() {
    fence(Ordering::Release);
}

/// Orders earlier stores before later loads as well: a quiet.
#[inline(always)]
pub fn complete() {
    fence(Ordering::SeqCst);
}
