//! The tasks that await the completion of what an origin has issued. The thread that finds the
//! operations complete wakes them: a call, a thread that waits, or the service thread.
//!
//! A waker may own the memory of an operation whose caller does not wait any more. It is dropped
//! only when the network does not access that memory.

use super::origin::Origin;
use super::wire::{Wire, WireNetwork};
use crate::Error;
use std::task::Waker;

impl<W: Wire> Origin<W> {
    /// Returns true if all operations are complete, as [`is_quiet`](Self::is_quiet) does. Otherwise
    /// the task is woken once when they are, or when a PE was lost.
    pub(super) fn when_quiet(&mut self, task: &Waker) -> Result<bool, Error> {
        if self.is_quiet()? {
            return Ok(true);
        }

        if !self.tasks.iter().any(|known| known.will_wake(task)) {
            self.tasks.push(task.clone());
            self.network.local().state.add_task();
        }
        Ok(false)
    }

    /// Returns the tasks to wake if the operations are complete or a PE was lost, otherwise none.
    /// The caller releases the lock of the origin before it wakes them, since a waker may call
    /// anything. If `begins`, begins to complete the operations.
    pub(super) fn tasks_to_wake(&mut self, begins: bool) -> Vec<Waker> {
        if self.tasks.is_empty() {
            return Vec::new();
        }

        let is_quiet = if begins {
            self.is_quiet()
        } else {
            Ok(self.is_complete())
        };
        match is_quiet {
            Ok(false) => Vec::new(),
            Ok(true) => self.take_tasks(),
            // The wakers stay, since the network may access the memory that they own until the next
            // call cancels the operations. That call reports the loss.
            Err(_) => self.tasks.clone(),
        }
    }

    /// Takes all tasks. The network must not access memory of callers any more.
    pub(super) fn take_tasks(&mut self) -> Vec<Waker> {
        let tasks = std::mem::take(&mut self.tasks);
        self.network.local().state.remove_tasks(tasks.len());
        tasks
    }
}
