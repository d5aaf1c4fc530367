//! PMIx's C API as types and function pointers, and the name of its library, which `bootstrap`
//! opens: no logic.
//!
//! `bindings` is committed and checked for the layout of every structure at compile time, so that
//! neither libclang nor PMIx's headers are needed to build. `regenerate.rs` writes it.

#[allow(
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unreachable_pub,
    unsafe_code,
    unsafe_op_in_unsafe_fn,
    dead_code,
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "generated; the names are PMIx's"
)]
mod bindings;

pub use bindings::*;
pub use libloading::Error as OpenError;

/// The name under which the library is installed, with the version of its interface: PMIx 2 to 6.
pub const LIBRARY: &str = "libpmix.so.2";
