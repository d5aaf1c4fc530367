//! The means by which PEs wait for each other: backoff, signals between the members of a team, and
//! mailboxes. This module knows neither `Team` nor the collectives, which are built on it.

pub mod backoff;
pub mod finalizing;
pub mod lock_turns;
pub mod long_wait;
pub mod mailbox;
pub mod team_signals;
