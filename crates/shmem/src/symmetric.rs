//! Symmetric objects: memory of the same type and size on every PE, which PEs can access remotely.
//!
//! `array` and `boxed` have the objects that all PEs allocate together, each in a `block` of the
//! symmetric heap; `statics` has variables of the program, and `registered` lends memory that the
//! program has already. All objects are accessed through a
//! `view` or its `parts`, or in an `epoch` by a reference.

pub(crate) mod array;
pub(crate) mod block;
pub(crate) mod boxed;
mod epoch;
pub(crate) mod parts;
pub(crate) mod registered;
pub(crate) mod statics;
pub(crate) mod view;
