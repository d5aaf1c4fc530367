//! The interface of a process manager to its processes, whichever protocol it speaks.

use std::fmt::Debug;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use super::abort_message;
use crate::error::Error;
use crate::records::Records;

/// A process's connection to the manager that started it.
///
/// Every process calls [`Manager::fence`] equally often; who puts and who gets is free.
pub(crate) trait Manager: Debug + Send {
    /// Returns the number of this process.
    fn pe(&self) -> u32;

    /// Returns the number of processes.
    fn n_pes(&self) -> u32;

    /// Stores `value`, for everybody to get after the next fence.
    fn put(&mut self, key: &str, value: &[u8]) -> Result<(), Error>;

    /// Waits until every process has called it.
    fn fence(&mut self) -> Result<(), Error>;

    /// Returns what process `from` has put under `key` before the last fence.
    fn get(&mut self, from: u32, key: &str) -> Result<Vec<u8>, Error>;

    /// Exchanges records with all processes, if the manager can do that itself; each calls it.
    fn exchange(&mut self, _record: &[u8]) -> Option<Result<Records, Error>> {
        None
    }

    /// Reports that the last finalize is done, to a manager that watches it.
    fn finalized(&self) {}

    /// Reports that initialization is entered again, to a manager that watches it.
    fn resumed(&self) {}

    /// Returns a handle that ends the job.
    fn ender(&self) -> Arc<dyn Ender>;

    /// Reports that the process is about to exit in good order. The manager accepts no request any
    /// more.
    fn leave(&mut self);
}

/// Ends the job, from any thread at any time.
pub(crate) trait Ender: Debug + Send + Sync {
    /// Requests the manager to kill all processes and to return `status` where it can. Returns
    /// whether the request was sent.
    fn ask(&self, status: i32) -> bool;

    /// Returns the connection that ends with the manager, if a watch may look at it: whether it has
    /// ended, not what arrives.
    fn line(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Returns true if this process has reported its end to the manager: then the connection may
    /// end.
    fn has_left(&self) -> bool {
        false
    }

    /// Works as [`Ender::ask`], once the manager has read what this process has printed.
    fn end(&self, status: i32) -> bool {
        abort_message::wait_until_read();
        self.ask(status)
    }
}
