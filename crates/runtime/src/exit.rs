//! The exit of a PE: [`finalize`], [`at_exit`] if the library makes it, [`leave`] for an exit
//! without it, and [`threads`] for a process in which only threads of the library are left.

pub(crate) mod at_exit;
pub(crate) mod finalize;
pub(crate) mod leave;
pub(crate) mod threads;
