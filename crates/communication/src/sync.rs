//! The means by which PEs wait for each other: the wait of a thread ([`waits`]), what becomes of
//! a long one ([`long_wait`], [`finalizing`]), signals between the members of a team, mailboxes,
//! the turns of threads at a lock, tasks that wait for words, and the wait for a waker. This module
//! knows neither `Team` nor the collectives, which are built on it.
//!
//! A new protocol between PEs is a file here or in `crates/runtime/src/teams`, with a case of
//! several PEs in `crates/runtime/src/tests` and a fault in `ci/xtask/src/mutants/pes.txt`.

pub mod finalizing;
pub mod lock_turns;
pub mod long_wait;
pub mod mailbox;
pub mod team_signals;
pub mod waits;
pub mod woken;
pub mod word_tasks;
