//! The means by which PEs wait for each other: backoff, signals between the members of a team, and
//! mailboxes.
//!
//! It knows no team and no collective.

pub(crate) mod backoff;
pub(crate) mod mailbox;
pub(crate) mod team_signals;
