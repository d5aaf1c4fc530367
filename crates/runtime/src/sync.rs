//! The means by which PEs wait for each other: flags, the doorbell, backoff, signals between the
//! members of a team, mailboxes, the checks that use them, the status that shows long waits, and
//! what ends a wait for a PE in finalize.
//!
//! It knows no team and no collective.

pub(crate) mod backoff;
pub(crate) mod check;
pub(crate) mod doorbell;
pub(crate) mod finalizing;
pub(crate) mod flags;
mod long_wait;
pub(crate) mod mailbox;
pub(crate) mod status;
pub(crate) mod team_signals;
pub(crate) mod watchdog;
