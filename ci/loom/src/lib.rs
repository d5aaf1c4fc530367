//! Tests of the memory order that Rushmem promises, in every execution that the memory model
//! allows.
//!
//! loom knows only its own atomics, locks and threads. So the same source files that Rushmem uses
//! are compiled here with those of loom instead of the standard library's: the runtime's files
//! about waiting, ordering and tasks, and those of `transport` about tasks and the service thread.
//! Threads stand for PEs, or are the threads of one.
#![cfg(test)]
#![forbid(unsafe_code)]

#[path = "../../../crates/communication/src/net/doorbell.rs"]
mod doorbell;
mod primitive;
#[expect(dead_code, reason = "loom has no time, so intervals are not modeled")]
#[path = "../../../crates/communication/src/sync/word_tasks/registry.rs"]
mod registry;
#[path = "../../../crates/pe/src/memory/visibility.rs"]
mod visibility;
#[path = "../../../crates/transport/src/progress/wakeup.rs"]
mod wakeup;

mod engine;
mod litmus;
mod progress;
mod task;
mod wake_up;
mod word_tasks;

use rushmem_transport::{EndpointUser, Error};
