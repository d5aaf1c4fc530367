//! PMIx's C API as types and function pointers, and the name of its library, which `bootstrap`
//! opens: no logic.
//!
//! `bindings` is committed and checked for the layout of every structure at compile time, so that
//! neither libclang nor PMIx's headers are needed to build. `cargo xtask bindings` writes it.

mod bindings;

pub use bindings::*;
pub use libloading::Error as OpenError;

/// The name under which the library is installed, with the version of its interface: PMIx 2 to 6.
pub const LIBRARY: &str = "libpmix.so.2";
