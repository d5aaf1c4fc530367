//! Loads, stores, copies and atomic updates of symmetric memory that is mapped here.
//!
//! Another process may access the same bytes at any time, so nothing here forms a slice or a
//! reference to data. A word is accessed by one atomic instruction of its size, a longer run by
//! instructions or a function that are opaque to the compiler (see `opaque`). The only references
//! are to atomics, for the length of one operation.
//!
//! The source of a copy may also be private memory. Where that is borrowed as `&[T]`, there can be
//! no reference to an atomic in it.
//!
//! Data accesses are relaxed; `fence`, `quiet` and the waits order them. Besides this module, only
//! the crate `heap` and, for its internal words, the runtime dereference symmetric memory.
//!
//! Every function takes pointers that the caller has checked: valid for the access in this process
//! and, for atomic updates and loads of waits, aligned to the size of `T`.

mod amo;
mod apply;
mod copy;
mod element;
mod lanes;
mod opaque;

pub use amo::{AddAmo, Amo, ArithmeticAmo, BitwiseAmo, WaitWord};
pub use apply::apply;
pub use copy::{copy_bytes, copy_elements, copy_strided};
pub use element::{AtomicLoads, Element, Loads, VolatileLoads, load, store};
pub use lanes::{Baseline, Lanes, OneLane};
