//! The verbs of a context over a network.
//!
//! The verbs are few, and take an operation as data. The engine implements them once for all
//! networks ([`WireEndpoint`](crate::engine::WireEndpoint)).

use crate::{AmoRequest, Dest, Error, Follows, Get, OldValue, Pe, Put, Source, StridedBlocks};
use std::task::Waker;

/// The access of a context, or of several that share it, to all PEs.
///
/// An operation owns its local memory until it is over: until the call returns, or until the next
/// [`quiet`](Endpoint::quiet), as its [`Completion`](crate::Completion) or
/// [`OldValue`](crate::OldValue) says. Addresses lie within the peer's segment and words are
/// aligned to their width; others are refused with [`Error::Invalid`]. When a verb returns an
/// error, the network does not use the local memory of that operation any more, and after a loss
/// that of no operation. Dropping an endpoint completes what it issued, unless a PE was lost.
pub trait Endpoint: Send {
    /// Copies local memory to a PE.
    ///
    /// # Errors
    /// When the PE cannot be reached.
    fn put(&mut self, pe: Pe, put: Put) -> Result<(), Error>;

    /// Copies a PE's memory to local memory.
    ///
    /// # Errors
    /// When the PE cannot be reached.
    fn get(&mut self, pe: Pe, get: Get) -> Result<(), Error>;

    /// Puts blocks. The local memory may be reused when the call returns.
    ///
    /// # Errors
    /// When the PE cannot be reached.
    fn put_strided(&mut self, pe: Pe, blocks: StridedBlocks<Source>) -> Result<(), Error>;

    /// Starts to get blocks. The data have arrived when the next quiet returns.
    ///
    /// # Errors
    /// When the PE cannot be reached.
    fn get_strided_nbi(&mut self, pe: Pe, blocks: StridedBlocks<Dest>) -> Result<(), Error>;

    /// Carries out an atomic operation on a word of a PE. With
    /// [`OldValue::Returned`](crate::OldValue::Returned), waits for the word's old value and
    /// returns it, zero-extended. Otherwise the result is unspecified, and the operation is
    /// complete at the next quiet.
    ///
    /// # Errors
    /// When the PE cannot be reached.
    fn amo(&mut self, pe: Pe, request: AmoRequest, old: OldValue) -> Result<u64, Error>;

    /// Puts, then sets or adds to the 8-byte word of the signal. The update is not visible before
    /// what it [follows](crate::Follows).
    ///
    /// # Errors
    /// When the PE cannot be reached.
    fn put_signal(
        &mut self,
        pe: Pe,
        put: Put,
        signal: AmoRequest,
        follows: Follows,
    ) -> Result<(), Error>;

    /// Begins or ends a session, in which many small operations follow each other
    /// (`SHMEM_CTX_SESSION_BATCH`), so that their throughput counts and the latency of one does
    /// not. Completes the operations issued before, unless nothing changes.
    ///
    /// # Errors
    /// When a PE was lost.
    fn session(&mut self, is_open: bool) -> Result<(), Error>;

    /// Orders puts, atomic operations and signals to each PE: those issued before take effect
    /// before those that follow.
    ///
    /// # Errors
    /// When a PE was lost.
    fn fence(&mut self) -> Result<(), Error>;

    /// Completes all operations that were issued, here and at the targets.
    ///
    /// # Errors
    /// When a PE was lost.
    fn quiet(&mut self) -> Result<(), Error>;

    /// Completes all operations that were issued to `pe`, and perhaps others.
    ///
    /// # Errors
    /// When a PE was lost.
    fn pe_quiet(&mut self, pe: Pe) -> Result<(), Error>;

    /// Returns true if all operations that were issued are complete, here and at the targets, as
    /// after a [`quiet`](Endpoint::quiet). Begins to complete them, but waits for no PE.
    ///
    /// # Errors
    /// When a PE was lost.
    fn is_quiet(&mut self) -> Result<bool, Error>;

    /// Works as [`is_quiet`](Endpoint::is_quiet). If it returns false, wakes the task once when the
    /// operations are complete or a PE was lost. The waker is dropped when the operations are
    /// complete, or when a call has reported the loss, so it may own local memory that they use.
    ///
    /// # Errors
    /// When a PE was lost.
    fn when_quiet(&mut self, task: &Waker) -> Result<bool, Error>;

    /// Returns the PEs with operations that are not known to be complete at the target, each with
    /// an estimate of their number, at least 1. Begins to complete them if there is room to do so,
    /// but waits for no PE.
    ///
    /// # Errors
    /// When a PE was lost.
    fn in_flight(&mut self) -> Result<Vec<(Pe, u64)>, Error>;
}
