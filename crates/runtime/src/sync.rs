//! The means by which PEs wait for each other: backoff, signals between the members of a team, and
//! mailboxes. This module knows neither `Team` nor the collectives, which are built on it.

pub(crate) mod backoff;
pub(crate) mod mailbox;
pub(crate) mod team_signals;
