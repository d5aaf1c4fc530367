//! Symmetric objects: memory that every PE has at the same place.
//!
//! `array` and `boxed` are allocated together by all PEs and own a `block` of the symmetric heap;
//! `statics` are variables of the program. All of them are accessed through `view`.

pub(crate) mod array;
mod block;
pub(crate) mod boxed;
mod epoch;
pub(crate) mod statics;
pub(crate) mod view;
