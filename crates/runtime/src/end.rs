//! The end of a PE: [`finalize`], [`leave`] for an exit without it, [`crash`] for a signal, and
//! [`threads`] when only threads of the library are left.

pub mod crash;
pub(crate) mod finalize;
pub(crate) mod leave;
pub(crate) mod threads;
