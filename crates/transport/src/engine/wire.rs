//! The part that a provider supplies to an origin: a wire, which starts single operations and
//! reports their completion. It knows nothing of order, batching or waits.
#![allow(unsafe_code)]

use super::acks::Acks;
use super::message::{Reply, Request};
use crate::peers::loss::{Loss, RefusedMessage, Violation};
use crate::peers::{check_range, damaged};
use crate::progress::backoff::WaitLimits;
use crate::progress::state::ProgressState;
use crate::segments::Segments;
use crate::segments::heap_blocks::{Covered, ENTRY, HeapBlock};
use crate::{
    AmoOp, AmoRequest, AmoWidth, Amos, Error, Host, LocalBuf, Open, Pe, RemoteAddr, Segment,
};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// The network that all wires of a PE share.
pub trait WireNetwork: Send + Sync {
    /// The provider's data on a segment of this PE.
    type Extra: Send + Sync;

    /// This PE.
    fn local(&self) -> &NetworkPe<Self::Extra>;

    /// Returns how many bytes a segment of a PE has.
    ///
    /// # Errors
    /// When the PE cannot be reached.
    fn nbytes(&self, pe: Pe, segment: Segment) -> Result<u64, Error>;

    /// Returns the machine of a PE, if it is known.
    fn host_of(&self, pe: Pe) -> Option<String>;

    /// Requires that a range lies in a PE's segment.
    ///
    /// # Errors
    /// When it does not, or the PE cannot be reached.
    #[inline]
    fn check(&self, pe: Pe, at: RemoteAddr, nbytes: usize) -> Result<(), Error> {
        check_range(pe, at, nbytes, self.nbytes(pe, at.segment)?)
    }

    /// Reports that a PE is lost. Returns the first loss.
    fn lose(&self, pe: Pe, why: &str) -> Error {
        self.local().loss.of_peer(pe, self.host_of(pe).as_deref(), why)
    }

    /// Reports a message that cannot be carried out. Returns the first loss.
    fn refuse(&self, message: &RefusedMessage) -> Error {
        self.local().loss.of_message(message, |pe| self.host_of(pe))
    }
}

/// The order that a wire keeps among the operations to one PE. Each variant includes the guarantees
/// of the variants before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StreamOrder {
    /// No order: operations after a fence wait until those before it are complete.
    Unordered,
    /// Writes after [`Wire::fence`] arrive after the writes before it.
    WritesByFence,
    /// Messages arrive after the writes before them, too.
    WritesBeforeMessages,
    /// All operations take effect as they were issued: a write also follows the requests before it,
    /// which the target's CPU carries out.
    Everything,
}

/// The time until which a wire must be polled so that its operations are carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PolledUntil {
    /// Until the wire has taken the operations. Then other threads send and receive.
    Started,
    /// Until the operations are over.
    Over,
    /// Until the target has acknowledged the messages: the operation of a message may be over
    /// before the message is sent.
    Acknowledged,
}

/// The capabilities and limits of a wire.
#[derive(Clone, Copy, Debug)]
pub struct WireCaps {
    /// CPUs move the data, so that a fault in local memory would end this process.
    pub copies: bool,
    /// Small operations travel in batches outside sessions, too: where CPUs move the data, a
    /// message costs as much as a hundred of them.
    pub batches: bool,
    /// Small operations travel in batches in sessions.
    pub sessions: bool,
    /// The order that the wire keeps.
    pub order: StreamOrder,
    /// The time until which the wire must be polled.
    pub polled: PolledUntil,
    /// A flush sends nothing.
    pub flushes_free: bool,
    /// Bytes of the longest put that travels in one message with its signal.
    pub longest_signaled: usize,
    /// Bytes of the longest write.
    pub longest_write: usize,
    /// Bytes of the longest read.
    pub longest_read: usize,
    /// Bytes of the longest batch, outside a session and in one.
    pub longest_batch: (usize, usize),
    /// Requests to a PE that are not acknowledged, at most.
    pub window: u32,
    /// The maximum number of requests without an answer.
    pub max_unanswered: usize,
    /// The maximum number of operations in flight and of requests without an answer.
    pub max_in_flight: usize,
}

/// The result of an attempt to start an operation. `T` identifies the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostOutcome<T> {
    /// There is nothing for the call to wait for: its local memory is free already, or has the
    /// data, or no call waits.
    Done,
    /// It is in flight.
    Pending(T),
    /// There is no room for now.
    Full,
    /// No key covers the whole range, as far as keys were [learned](Wire::learn).
    Uncovered,
}

/// The payload that travels with a request.
pub enum Payload<'a> {
    /// Small operations. The wire may exchange the buffer for another one.
    Batch(&'a mut Vec<u8>),
    /// Data for the place that the request names, or none.
    Data(LocalBuf),
}

/// The end of a write, as its caller needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteEnd {
    /// The call waits until the source is free.
    pub awaited: bool,
    /// The operation ends when the source is free, rather than at the target: a message that
    /// follows is acknowledged.
    pub source_free: bool,
}

/// Takes a reply that has come, with the answers to a batch.
pub type TakeReply<'a> = &'a mut dyn FnMut(Reply, &[u8]) -> Result<(), Violation>;

/// The way of one origin into the network. One thread at a time uses it.
///
/// An operation that is started stays in flight until the wire is polled. An error of any function
/// is a loss, which was reported.
pub trait Wire: Send + Sized {
    /// The network that the wires of a PE share.
    type Network: WireNetwork;
    /// The identity of an operation in flight.
    type Token;
    /// The state that other threads read of a wire without its lock.
    type Outside: Send + Sync;

    /// Returns what it can do.
    fn caps(&self) -> WireCaps;

    /// Connects to a PE of the job, as far as that is possible now. Returns true once the PE can be
    /// used.
    fn reach(&mut self, network: &Self::Network, pe: Pe) -> Result<bool, Error>;

    /// Returns how much of a range in the segment of a PE is covered by one key. A wire without
    /// keys covers all of it.
    fn covered(
        &mut self,
        network: &Self::Network,
        pe: Pe,
        at: RemoteAddr,
        nbytes: usize,
    ) -> Result<Covered, Error> {
        let _ = (network, pe, at);
        Ok(Covered::Bytes(nbytes))
    }

    /// Learns the key of a block from its entry in the table of a PE, if the wire has keys.
    fn learn(
        &mut self,
        network: &Self::Network,
        pe: Pe,
        block: HeapBlock,
        entry: &[u8; ENTRY],
    ) -> Result<(), Error> {
        let _ = (network, block, entry);
        Err(damaged(pe, "table of keys"))
    }

    /// Starts a write from local memory, of 1 to [`longest_write`](WireCaps::longest_write) bytes.
    ///
    /// # Safety
    /// The source is valid for reads until the operation is over.
    unsafe fn write(
        &mut self,
        network: &Self::Network,
        pe: Pe,
        transfer: (RemoteAddr, LocalBuf),
        end: WriteEnd,
    ) -> Result<PostOutcome<Self::Token>, Error>;

    /// Starts a read to local memory, of 1 to [`longest_read`](WireCaps::longest_read) bytes. The
    /// call waits for it if it is `awaited`.
    ///
    /// # Safety
    /// The destination is valid for writes until the operation is over.
    unsafe fn read(
        &mut self,
        network: &Self::Network,
        pe: Pe,
        transfer: (RemoteAddr, LocalBuf),
        awaited: bool,
    ) -> Result<PostOutcome<Self::Token>, Error>;

    /// Returns whether the network has an atomic operation.
    fn has_amo(&self, network: &Self::Network, op: AmoOp, width: AmoWidth) -> bool {
        let _ = (network, op, width);
        false
    }

    /// Returns whether the network carries out the atomic operations on a segment, rather than the
    /// target's CPU.
    #[inline]
    fn carries_out(network: &Self::Network, segment: Segment) -> bool {
        let _ = (network, segment);
        false
    }

    /// Starts an atomic operation that the network itself [carries out](Wire::carries_out), and
    /// writes the old value to `fetched`, unless that is null.
    ///
    /// # Safety
    /// `fetched` is null or valid for writes of a word until the operation is over.
    unsafe fn amo(
        &mut self,
        network: &Self::Network,
        pe: Pe,
        request: &AmoRequest,
        fetched: *mut u8,
    ) -> Result<PostOutcome<Self::Token>, Error> {
        let _ = (network, request, fetched);
        Err(Error::Unreachable(pe))
    }

    /// Starts to send a request. If it is `awaited`, the call waits until the data are free.
    ///
    /// # Safety
    /// Data are valid for reads until the operation is over.
    unsafe fn send(
        &mut self,
        network: &Self::Network,
        pe: Pe,
        request: &Request,
        payload: Payload<'_>,
        awaited: bool,
    ) -> Result<PostOutcome<Self::Token>, Error>;

    /// Returns whether an operation with a PE is over.
    fn is_over(
        &mut self,
        network: &Self::Network,
        pe: Pe,
        token: &Self::Token,
    ) -> Result<bool, Error>;

    /// Forgets an operation for which no call waits any more.
    fn forget(&mut self, token: Self::Token) {
        let _ = token;
    }

    /// Returns whether attempts at a PE pause for now, because it has refused.
    fn pauses(&self, pe: Pe) -> bool {
        let _ = pe;
        false
    }

    /// Orders the writes before this call ahead of those after it, if the wire
    /// [can](WireCaps::order), and sends all operations that it has held back. Returns false if the
    /// call must be repeated.
    fn fence(&mut self, network: &Self::Network) -> Result<bool, Error> {
        let _ = network;
        Ok(true)
    }

    /// Begins to complete the writes to a PE at the target.
    fn begin_flush(&mut self, network: &Self::Network, pe: Pe) -> Result<(), Error> {
        let _ = (network, pe);
        Ok(())
    }

    /// Returns whether nothing is in flight to a PE, and its flush has ended.
    fn is_flushed(&mut self, network: &Self::Network, pe: Pe) -> Result<bool, Error>;

    /// Returns how many operations are in flight.
    fn in_flight(&self) -> usize;

    /// Returns how many operations are in flight to a PE.
    fn in_flight_to(&self, pe: Pe) -> usize;

    /// Lets the network work, and takes what has come. Returns whether there was work.
    fn poll(&mut self, network: &Self::Network, take: TakeReply<'_>) -> Result<bool, Error>;

    /// Returns a PE to which the connection broke, and why, if it is one that `is_used`: others may
    /// have left in order.
    fn broken(&mut self, is_used: &mut dyn FnMut(Pe) -> bool) -> Option<(Pe, String)> {
        let _ = is_used;
        None
    }

    /// Serves peers by a thread that waits, if it is time for that: for the `polls`th time, and if
    /// it `expects` the reply of a PE. Returns whether there was work.
    fn serve(&self, network: &Self::Network, polls: u32, expects: bool) -> Result<bool, Error>;

    /// Checks whether a PE still exists, after a long wait without an event.
    fn confirm(&mut self, network: &Self::Network, pe: Pe) -> Result<(), Error> {
        let _ = (network, pe);
        Ok(())
    }

    /// Sleeps until there may be an event, for `at_most` at the longest.
    fn sleep(&mut self, network: &Self::Network, at_most: Duration);

    /// Lets a descriptor of the network signal the next event, where requests may not have left if
    /// they `are_unacked`. Returns false if the wire must be polled.
    fn arm(&self, are_unacked: bool) -> bool;

    /// Frees buffers that only long batches need.
    fn end_session(&mut self) {}

    /// Ends the operations in flight after a loss, so that the network uses no memory of callers
    /// any more.
    ///
    /// # Errors
    /// Why it may still use some.
    fn abandon(&mut self, network: &Self::Network) -> Result<(), String>;
}

/// This PE, as its network knows it. `X` is what a provider knows of a segment.
pub struct NetworkPe<X = ()> {
    /// Its number.
    pub me: Pe,
    /// The party that carries out atomic operations.
    pub amos: Amos,
    /// The interface to the runtime.
    pub host: Arc<dyn Host>,
    /// The state that threads that wait share with the service thread.
    pub state: ProgressState,
    /// The first loss.
    pub loss: Loss,
    /// The acknowledgments between this PE's streams of requests and those of the others.
    pub acks: Acks,
    /// The memory that peers may use.
    pub segments: Segments<X>,
}

impl<X> NetworkPe<X> {
    /// Returns the state of a transport that is opened with these arguments, on a machine of this
    /// name. Its threads wait as `limits` says.
    ///
    /// # Errors
    /// If the kernel refuses a timer.
    pub fn new(
        open: &Open,
        own_host: String,
        limits: &'static WaitLimits,
    ) -> io::Result<NetworkPe<X>> {
        Ok(NetworkPe {
            me: open.pe,
            amos: open.amos,
            host: Arc::clone(&open.host),
            state: ProgressState::new(limits, open.cpus_per_pe)?,
            loss: Loss::new(open.pe, own_host, Arc::clone(&open.host)),
            acks: Acks::new(open.n_pes),
            segments: Segments::default(),
        })
    }
}
