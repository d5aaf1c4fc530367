//! What all other layers need: the identity of this PE, how a call ends in an error, handles,
//! constants, settings.
//!
//! It knows no symmetric memory and no network, and knows other PEs only by their numbers.

pub(crate) mod call;
pub(crate) mod caller;
pub mod constants;
pub(crate) mod digest;
pub mod extension_constants;
pub mod handle;
pub(crate) mod in_force;
pub(crate) mod job;
pub(crate) mod location;
pub(crate) mod members;
mod not_forked;
pub(crate) mod primitive;
pub(crate) mod process;
pub(crate) mod refusal;
pub mod settings;
pub(crate) mod signal_handler;
pub mod stdio;
pub mod thread;
pub mod time;
pub(crate) mod visibility;
pub(crate) mod warning;
