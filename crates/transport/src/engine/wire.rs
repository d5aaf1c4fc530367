//! What a provider implements for the engine: a [`Wire`] starts single operations and reports their
//! completion, and a [`WireNetwork`] is the state that all wires of a PE share.
//!
//! A wire does not batch and does not wait, and keeps no more order than its [`StreamOrder`] says.
//!
//! To add a provider:
//!
//! 1. If it calls a C library, make `sys/NAME-sys`: bindings without logic, opened at run time, of
//!    the names in its `src/names.txt`, with a row in `ci/xtask/src/bindings.rs` and in
//!    `ci/xtask/src/bindings/generator.rs`.
//! 2. Make a crate `crates/transport-NAME`, with the `LICENSE-*` links of `transport-tcp` and those
//!    of its dependencies that it needs, and split as that one or `transport-ucx`: their `lib.rs`
//!    say what each file has. Use the modules `progress`, `peers` and `segments` of this crate. The
//!    smallest wire is `TestWire` in `engine/tests.rs`. The smallest one that moves data, with its
//!    network and its service, is in `tests/simulated` (`wire.rs` and `network.rs`), where no
//!    service thread runs: `progress.rs` of `transport-ucx` is a short driver. A provider over
//!    sockets without connections takes some 600 lines, half of them for its messages.
//! 3. Implement [`Wire`] for what starts the operations of an origin, [`WireNetwork`] and
//!    [`Driver`](super::driver::Driver) for the state that its wires share, and
//!    [`Serving`](super::target::Serving) for what carries out the requests of peers by a
//!    [`RequestTarget`](super::target::RequestTarget). (`transport-tcp` has a target of its own,
//!    since a connection keeps the order of requests.) `NetworkTransport` publishes, registers,
//!    connects, makes endpoints and leaves the job, and `WireEndpoint` has the verbs. A poll for
//!    one context may receive a reply for another one: it passes each reply to
//!    [`ReplyTable::deliver`](super::ReplyTable::deliver), and the wire of that context takes it
//!    from its [`Replies`](super::Replies). What threads that wait rely on is in the documentation
//!    of [`Driver::serve`](super::driver::Driver::serve).
//! 4. Write its `PROVIDER`. `sources` is the digest of its sources: PEs of other builds are refused
//!    by it.
//! 5. Add a test `tests/conformance.rs` with `harness = false` that calls `conformance::suite`, and
//!    in `crates/shmem-c/tests/programs.rs` a `Network` and its rows in `SETTINGS`. If the tests of
//!    the crate need a library or take minutes, they are a step in `ci/xtask/src/test/steps.rs`
//!    (with the crate in `WITH_LONG_SUITES`) and in `ci/xtask/src/test.rs`; otherwise
//!    `cargo xtask test --more` finds them.
//! 6. Register the crate in `Cargo.toml`, `crates/providers` and `ci/xtask/src/tidy/layers.rs`, its
//!    name in the row of `SHMEM_TRANSPORT` in `crates/pe/src/settings.rs` and, if it has events, in
//!    `crates/system/src/log/filter.rs` and docs/rust-reference.md. Then `cargo xtask codegen`
//!    writes docs/settings.md and the diagram of the crates, and `cargo xtask tidy` says what is
//!    missing. Describe it in docs/transports.md. `git grep '"ucx", "ofi"'` finds the tests that
//!    name all transports.
//! 7. Try it, with the prefix for tests of CONTRIBUTING.md:
//!
//!    ```sh
//!    cargo test -p rushmem-transport-NAME --test conformance signals    # one case; then all
//!    SHMEM_ONNODE=off SHMEM_TRANSPORT=NAME $OSHRUN -n 2 $RUSHMEM_PREFIX/bin/shmem-verify
//!    ```
#![allow(unsafe_code)]

use super::acks::Acks;
use super::message::{Reply, Request};
use crate::peers::Peers;
use crate::peers::loss::{Loss, RefusedMessage, Violation};
use crate::progress::backoff::WaitLimits;
use crate::progress::state::ProgressState;
use crate::segments::Segments;
use crate::segments::heap_blocks::{HeapBlock, OwnHeap, Registered};
use crate::{
    AmoRequest, AmoSet, Amos, DestBuf, Error, Host, LocalBuf, Open, Pe, RemoteAddr, Segment,
    SourceBuf,
};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A range of the memory of a peer that was used, which one key covers.
pub struct Remote<'a, N: WireNetwork> {
    /// The PE.
    pub pe: Pe,
    /// The address of the range.
    pub addr: RemoteAddr,
    /// The provider's data on the PE.
    pub peer: &'a N::Peer,
    /// The key.
    pub key: &'a N::Key,
}

/// The state of a provider that all wires of a PE share.
pub trait WireNetwork: Send + Sync {
    /// The provider's data on a segment of this PE, or on a block of its heap.
    type Extra: Send + Sync;
    /// The provider's data on another PE.
    type Peer: Send + Sync;
    /// A key of the memory of another PE.
    type Key: Send + Sync;

    /// Returns the state of this PE.
    fn local(&self) -> &NetworkPe<Self::Extra>;

    /// Returns the peers that were used.
    fn peers(&self) -> &Peers<Self::Peer, Self::Key>;

    /// Makes a segment of this PE reachable, or a block of its heap.
    ///
    /// # Safety
    /// The memory is valid for reads and writes until the network is dropped.
    ///
    /// # Errors
    /// When the network refuses the memory.
    unsafe fn register(
        &self,
        segment: Segment,
        memory: LocalBuf,
    ) -> Result<Registered<Self::Extra>, Error>;

    /// Returns the provider's data on a PE from the address that the PE has published. Called for
    /// each PE to check the address, and again at the first use of the PE. So it neither connects
    /// nor takes what a PE needs only while it is used. [`keys::peer`](super::keys::peer) has the
    /// data afterwards.
    ///
    /// # Errors
    /// When the address is damaged, or there is no path to the PE.
    fn peer(&self, pe: Pe, address: &[u8]) -> Result<Self::Peer, Error>;

    /// Returns a key that a PE has published of a segment or of a block of it. All of a segment
    /// that is not registered in blocks counts as its first block.
    ///
    /// # Errors
    /// When the key is damaged, or the network refuses it.
    fn key(
        &self,
        pe: Pe,
        segment: Segment,
        block: HeapBlock,
        bytes: &[u8],
    ) -> Result<Self::Key, Error>;

    /// Reports the loss of a PE by [`Loss::of_peer`], with the host of [`Peers::host_of`]. Returns
    /// the first loss that this transport has met, which may be another one.
    fn lose(&self, pe: Pe, why: &str) -> Error;
}

/// Reports a message that violates the protocol, as the loss of its sender, or of this PE if the
/// host of the sender is not known. Returns the first loss, which may be another one.
pub fn refuse(network: &impl WireNetwork, message: &RefusedMessage) -> Error {
    let loss = &network.local().loss;
    loss.of_message(message, |pe| network.peers().host_of(pe))
}

/// The order that a wire keeps among the operations to one PE. Each variant includes the guarantees
/// of the variants before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StreamOrder {
    /// No order: where the order matters, the engine starts an operation after a fence only once
    /// those before the fence are complete.
    Unordered,
    /// Writes after [`Wire::fence`] arrive after the writes before it.
    WritesByFence,
    /// Messages arrive after the writes before them, too.
    WritesBeforeMessages,
    /// All operations take effect as they were issued: a write also follows the requests before it,
    /// which the target's CPU carries out, and a read has the data of the writes before it. So the
    /// acknowledgment of a request and the data of a read also cover the writes that were issued
    /// before, and the engine flushes such a wire by a request that asks for one.
    Everything,
}

/// The time until which a wire must be polled so that its operations are carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PolledUntil {
    /// Until the wire has taken the operations. Other threads send and receive from then on.
    Started,
    /// Until the operations are over.
    Over,
    /// Until the target has acknowledged the messages: the network may report that a message is
    /// complete before it is sent.
    Acknowledged,
}

/// The capabilities and limits of a wire.
#[derive(Clone, Copy, Debug)]
pub struct WireCaps {
    /// Small operations are batched outside sessions, too. This pays where CPUs move the data,
    /// since a message then costs as much as a hundred small operations.
    pub batches: bool,
    /// A put that may be batched, and is lone, is a request and not a write. This pays where the
    /// target answers each write within the poll that has received it, so that a thread that waits
    /// for the data also waits until the answer is sent.
    pub lone_puts_are_requests: bool,
    /// A flag of the library that is set to its next value without data, once all requests to its
    /// PE are acknowledged, is a write of the bytes that change and not a request. This takes less
    /// time where a short write has no completion. It needs a wire that orders writes by fences,
    /// and PEs whose words have the low byte first.
    pub lone_flags_are_writes: bool,
    /// Small operations are batched in sessions.
    pub sessions: bool,
    /// The order that the wire keeps.
    pub order: StreamOrder,
    /// The time until which the wire must be polled.
    pub polled: PolledUntil,
    /// In a loop of a write and a quiet, [`Wire::begin_flush`] and [`Wire::is_flushed`] send no
    /// message.
    pub flushes_free: bool,
    /// Threads that wait for something else flush writes, which sends no message.
    pub flushes_in_wait: bool,
    /// The atomic operations that the network carries out itself.
    pub amos: NetworkAmos,
    /// Maximum number of bytes of a put that is sent in one message with its signal.
    pub longest_signaled: usize,
    /// Maximum number of bytes of a write.
    pub longest_write: usize,
    /// Maximum number of bytes of a read.
    pub longest_read: usize,
    /// Maximum number of bytes of a batch outside a session, and of its results: 300 or more, so
    /// that each entry fits.
    pub longest_batch: usize,
    /// Maximum number of bytes of a batch in a session, and of its results: 300 or more.
    pub longest_session_batch: usize,
    /// The number of unacknowledged requests to a PE from which on only requests that ask for an
    /// acknowledgment are sent.
    pub window: u32,
    /// Maximum number of requests whose answers have not arrived.
    pub max_unanswered: usize,
    /// The number of operations in flight and unanswered requests together from which on a thread
    /// that only polls starts no batch and no flush. Calls may exceed it.
    pub max_in_flight: usize,
}

/// The atomic operations that a network carries out itself. On a segment on which it carries out
/// any, the engine composes the others from compare-and-swap; on the other segments, the target's
/// CPU carries out all of them.
#[derive(Clone, Copy, Debug, Default)]
pub struct NetworkAmos {
    /// The operations; none if the target's CPU carries all of them out.
    pub operations: AmoSet,
    /// They include those on the library's own flags.
    pub on_flags: bool,
}

impl NetworkAmos {
    /// Returns true if the network carries out the atomic operations on a segment, false if the
    /// target's CPU does.
    #[inline]
    pub fn are_on(&self, segment: Segment) -> bool {
        !self.operations.is_empty() && (self.on_flags || segment != Segment::Internal)
    }
}

/// The result of an attempt to start an operation. `T` identifies the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostOutcome<T> {
    /// The call need not wait: its local memory may be reused, or has the data, or no call waits
    /// for the operation.
    Done,
    /// The operation is in flight.
    Pending(T),
    /// The wire has no room at present; the call tries again after a poll. If nothing signals that
    /// there is room, [`WaitLimits::sleep`] bounds how late it tries.
    Full,
}

/// A message to send: the encoded request, its entries, of at most a batch, and the attached data,
/// of at most [`longest_signaled`](WireCaps::longest_signaled) bytes.
pub struct SentMessage<'a> {
    /// The request, which is the head of the message.
    pub request: &'a Request,
    /// The entries of the request. The wire may keep the buffer and leave another one in its place.
    pub entries: &'a mut Vec<u8>,
    /// The data that the first entry attaches; empty if it attaches none. A wire that starts to
    /// send them may take the buffer.
    pub attached: &'a mut SourceBuf,
    /// The call waits until the attached data may be reused.
    pub awaited: bool,
}

/// When a write is sent, and when it counts as over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteEnd {
    /// The call waits until the source is free.
    pub awaited: bool,
    /// The write is over when its source may be reused, not only when the data are at the target:
    /// the acknowledgment of a later message covers the write.
    pub source_free: bool,
    /// When the write is sent.
    pub sent: WriteSent,
}

/// When a wire that collects operations sends a write. Other wires send it at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteSent {
    /// During the call that issues it.
    Now,
    /// With the next operation, which the same call issues, and which is sent at once.
    WithNext,
    /// When the wire has collected enough, at the next fence, or by the next thread that polls.
    WithOthers,
}

/// The result of a poll of a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polled {
    /// There was nothing to do.
    Idle,
    /// There was work.
    Worked,
    /// A connection broke, perhaps to a PE that has left the job in order. The engine
    /// [confirms](Wire::confirm) the PEs with which something is pending.
    Broke,
}

/// How the next event of a wire is signaled.
#[derive(Clone, Debug)]
pub enum NextEvent {
    /// By nothing: the wire must be polled.
    Unsignaled,
    /// By the descriptors of the network, on which the service thread sleeps in any case.
    OfNetwork,
    /// By this descriptor.
    On(Arc<OwnedFd>),
}

/// The function that a poll calls for each reply that has arrived, with the results that follow it.
pub type TakeReply<'a> = &'a mut dyn FnMut(Reply, &[u8]) -> Result<(), Violation>;

/// One origin's endpoint of the network. One thread at a time uses it.
///
/// An operation stays in flight until a poll completes it. Before a function returns a loss, the
/// loss has been recorded in [`NetworkPe::loss`].
pub trait Wire: Send + Sized {
    /// The state that the wires of a PE share.
    type Network: WireNetwork;
    /// Identifies an operation in flight, for which a call waits until it drops the token.
    type Token;

    /// Returns the capabilities and limits of the wire.
    fn caps(&self) -> WireCaps;

    /// Begins to connect to a PE that was used, or continues to. Returns true once operations can
    /// be started to the PE. A wire may block while it connects itself, but not to wait until the
    /// PE connects.
    fn reach(&mut self, network: &Self::Network, pe: Pe) -> Result<bool, Error>;

    /// Starts a write from local memory, of 1 to [`longest_write`](WireCaps::longest_write) bytes.
    /// A write that has started owns its source until it is over; the wire may take it from the
    /// argument. If the write is not started, the wire leaves the source there.
    ///
    /// The source may be symmetric memory, which others change meanwhile. No word of up to 8 bytes
    /// that is aligned at the target may be torn, since a program may poll it, unless the wire is
    /// [that of the runtime](crate::EndpointUser::Runtime). Where CPUs copy,
    /// [`Buffer::append_to`](crate::Buffer::append_to) with
    /// [`AtomicLoads`](crate::mem::AtomicLoads) at the origin and [`Segments::write`] at the target
    /// tear none. A copy by the kernel, as by `recv` or `process_vm_writev`, may.
    fn write(
        &mut self,
        network: &Self::Network,
        to: Remote<'_, Self::Network>,
        source: &mut SourceBuf,
        end: WriteEnd,
    ) -> Result<PostOutcome<Self::Token>, Error>;

    /// Starts a read to local memory, of 1 to [`longest_read`](WireCaps::longest_read) bytes.
    /// `awaited` says that the call waits for the data. The read owns its destination as a
    /// [`write`](Wire::write) owns its source, and tears no word either.
    fn read(
        &mut self,
        network: &Self::Network,
        from: Remote<'_, Self::Network>,
        dest: &mut DestBuf,
        awaited: bool,
    ) -> Result<PostOutcome<Self::Token>, Error>;

    /// Starts an atomic operation on a word that the network itself [carries out](WireCaps::amos).
    /// It stores the old value in `fetched`, if the caller gives such memory, before it is over. It
    /// owns this memory as a [`write`](Wire::write) owns its source.
    fn amo(
        &mut self,
        network: &Self::Network,
        word: Remote<'_, Self::Network>,
        request: &AmoRequest,
        fetched: &mut Option<DestBuf>,
    ) -> Result<PostOutcome<Self::Token>, Error>;

    /// Starts to send a message.
    fn send(
        &mut self,
        network: &Self::Network,
        pe: Pe,
        message: SentMessage<'_>,
    ) -> Result<PostOutcome<Self::Token>, Error>;

    /// Returns true if an operation with a PE is over.
    fn is_over(
        &mut self,
        network: &Self::Network,
        pe: Pe,
        token: &Self::Token,
    ) -> Result<bool, Error>;

    /// Makes writes after this call follow those before it, if the [order](WireCaps::order) of the
    /// wire includes that, and sends all operations that the wire holds back. Returns false if the
    /// call must be repeated after a poll.
    fn fence(&mut self, network: &Self::Network) -> Result<bool, Error>;

    /// Begins to complete all writes to a PE at the target. Does nothing by default: a wire that
    /// [orders everything](StreamOrder::Everything) is not flushed, and another may begin this in
    /// [`is_flushed`](Wire::is_flushed).
    fn begin_flush(&mut self, _: &Self::Network, _: Pe) -> Result<(), Error> {
        Ok(())
    }

    /// Returns true if nothing is in flight to a PE and its last flush has ended. Over a wire that
    /// [orders everything](StreamOrder::Everything), the engine calls it when it knows that all
    /// writes to the PE are complete.
    fn is_flushed(&mut self, network: &Self::Network, pe: Pe) -> Result<bool, Error>;

    /// Returns true if the wire reads no source of a write to a PE any more. An operation that is
    /// over reads none, so by default nothing is in flight to the PE.
    fn are_sources_free(&mut self, _: &Self::Network, pe: Pe) -> Result<bool, Error> {
        Ok(self.in_flight_to(pe) == 0)
    }

    /// Returns how many operations are in flight, also reads that no call waits for. A write whose
    /// start was [`Done`](PostOutcome::Done) need not count: the engine flushes it anyway.
    fn in_flight(&self) -> usize;

    /// Returns how many operations are in flight to a PE.
    fn in_flight_to(&self, pe: Pe) -> usize;

    /// Polls the network, processes completions, and passes replies to `take`: those that it
    /// receives for this origin, and those that other threads have received for it
    /// ([`Replies::take`](super::Replies::take)).
    fn poll(&mut self, network: &Self::Network, take: TakeReply<'_>) -> Result<Polled, Error>;

    /// Serves peers for a thread that waits, which calls this after each of its polls. Counts the
    /// poll ([`ProgressState::count_poll`]), so that the service thread leaves the network to this
    /// one. Returns true if there was work.
    fn serve(&self, network: &Self::Network) -> Result<bool, Error>;

    /// Checks that a PE with which something is pending is alive, after a long wait without an
    /// event, or after a poll has found a connection [broken](Polled::Broke).
    fn confirm(&mut self, network: &Self::Network, pe: Pe) -> Result<(), Error>;

    /// Sleeps until there may be an event, but no longer than `at_most`, by
    /// [`ProgressState::sleep_until_event`].
    fn sleep(&mut self, network: &Self::Network, at_most: Duration);

    /// Prepares the network to signal its next event by a descriptor, if it can. `are_unacked` says
    /// that some requests are not acknowledged, and so may not have been sent.
    fn arm(&self, are_unacked: bool) -> NextEvent;

    /// Cancels the operations in flight after a loss. When this returns, the network accesses no
    /// memory of callers any more.
    ///
    /// # Errors
    /// The reason for which the network may still access some.
    fn abandon(&mut self, network: &Self::Network) -> Result<(), String>;
}

/// The state of this PE that its wires, its service thread and the engine share. `X` is the
/// provider's data on a segment.
pub struct NetworkPe<X = ()> {
    /// The number of this PE.
    pub me: Pe,
    /// The party that carries out atomic operations.
    pub amos: Amos,
    /// The interface to the runtime.
    pub host: Arc<dyn Host>,
    /// Returns the time, as the engine reads it: that of the system, except in a simulation.
    pub clock: fn() -> Instant,
    /// The state that the service thread shares with threads that wait.
    pub state: ProgressState,
    /// The first loss of a PE, if there was one.
    pub loss: Loss,
    /// The acknowledgments that this PE has to send, and those that it has received.
    pub acks: Acks,
    /// The memory that peers may access.
    pub segments: Segments<X>,
    /// The heap, if it is registered in blocks.
    pub own_heap: OwnHeap<X>,
}

impl<X> NetworkPe<X> {
    /// Returns the state for a transport that is opened with these arguments, on host `own_host`.
    /// `limits` says how its threads wait.
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
            clock: Instant::now,
            state: ProgressState::new(limits, open.cpus_per_pe)?,
            loss: Loss::new(open.pe, own_host, Arc::clone(&open.host)),
            acks: Acks::new(open.n_pes),
            segments: Segments::default(),
            own_heap: OwnHeap::default(),
        })
    }
}
