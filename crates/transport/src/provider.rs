//! The interface between the runtime and a provider: how a provider is found, diagnosed and opened,
//! and the transport that it returns.
//!
//! A provider states the capabilities of its transport in [`Caps`], and claims none that it has not
//! tested.
#![allow(unsafe_code)]

use crate::progress::events::AwaitedWord;
use crate::segments::{Segments, heap_blocks};
use crate::{Directory, Endpoint, Error, Key, NetworkActivity, Pe, Segment};
use rushmem_system::devices::NicName;
use rushmem_system::setting::Setting;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A provider, as the runtime sees it: an entry of `providers::ALL`.
pub struct Provider {
    /// The name, which is a value of `SHMEM_TRANSPORT`.
    pub name: &'static str,
    /// The digest of the sources of the provider's crate, which must be equal on all PEs of a job.
    pub sources: u64,
    /// The provider's settings, whose values its [`Host`] returns. Their names begin with `SHMEM_`
    /// and the provider's name.
    pub settings: &'static [Setting],
    /// The provider opens shared libraries, which a statically linked program cannot.
    pub opens_libraries: bool,
    /// `SHMEM_TRANSPORT=auto` may choose the provider although it uses no RDMA device.
    pub without_rdma: bool,
    /// The provider can leave atomic operations to the network.
    pub network_amos: bool,
    /// Returns what the provider finds on this machine. Fast, and prints nothing. May open
    /// libraries, but opens devices only if [`devices::active`](rushmem_system::devices::active)
    /// finds some.
    ///
    /// # Errors
    /// [`Error::Unavailable`], saying what is missing.
    pub available: fn(&dyn Host) -> Result<Found, Error>,
    /// Returns the names of the parts of the provider that fit a job, best first. A process opens
    /// one of them ([`Open::part`]). `None` if the provider has no parts.
    ///
    /// # Errors
    /// [`Error::Unavailable`], saying why none fits.
    pub parts: Option<ListParts>,
    /// Returns a diagnosis of each part of the provider for a process that would be opened with
    /// these arguments. Of the [`parts`](Provider::parts), opens only the one that the arguments
    /// name. Opens libraries and devices and may take a second, unlike
    /// [`available`](Provider::available); no job calls it.
    pub diagnose: fn(&Open) -> Vec<Diagnosis>,
    /// Opens the provider's transport for this process. The caller blocks all signals but those of
    /// faults meanwhile, so that the threads of the transport receive no signal of the program.
    ///
    /// # Errors
    /// [`Error::Unavailable`], saying what is missing.
    pub open: fn(&Open) -> Result<Box<dyn Transport>, Error>,
}

/// The type of [`Provider::parts`].
pub type ListParts = fn(&Open) -> Result<Vec<String>, Error>;

/// What a provider finds on a machine. Formats as one line for users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The provider uses hardware that reads and writes a target's memory without the target's CPU.
    pub rdma: bool,
    /// The hardware also carries out the atomic operations of the standard, some of them perhaps by
    /// its compare-and-swap.
    pub hardware_amos: bool,
    /// A description in one line, such as `UCX 1.13.1: rc_mlx5 on mlx5_0:1`.
    pub description: String,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.description)
    }
}

/// The arguments with which a provider is opened.
#[derive(Clone)]
pub struct Open {
    /// This PE.
    pub pe: Pe,
    /// The number of PEs of the job.
    pub n_pes: u32,
    /// The secret of the job, the same on all PEs. Only they and their launcher know it.
    pub secret: [u8; 32],
    /// All PEs run on this machine and share its network stack, so that no address needs to be
    /// reachable from outside.
    pub one_machine: bool,
    /// The machine's usable CPUs divided by its PEs, rounded down: the number of threads of this PE
    /// that may spin at once while they wait. 0 if PEs outnumber the CPUs.
    pub cpus_per_pe: u32,
    /// The party that carries out atomic operations, the same on all PEs. It is the network only if
    /// the provider has [`network_amos`](Provider::network_amos).
    pub amos: Amos,
    /// The part to open, the same on all PEs. `None` stands for the first that can be opened.
    pub part: Option<String>,
    /// The interface to the runtime.
    pub host: Arc<dyn Host>,
}

/// The PE that carries out batched operations on itself or on another PE of its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proxy {
    /// The PE itself, or another PE of its node.
    pub pe: Pe,
    /// The PE of the node whose memory is accessed: 0 for the proxy itself, otherwise the number of
    /// the PE for [`Host::node_heap`].
    pub place: u8,
}

impl Proxy {
    /// Returns a PE as its own proxy.
    pub fn itself(pe: Pe) -> Proxy {
        Proxy { pe, place: 0 }
    }
}

/// The number of pairs of PEs ([`Host::pairs_of_node`]) beyond which connectionless providers of
/// libfabric are preferred. Over a cloud's RoCE of 200 Gbit/s, jobs of 8,192 connections per node
/// took seconds to start and mostly failed, while those of a connectionless provider worked with
/// 192 PEs per node.
pub const MANY_PAIRS: u64 = 4096;

/// The functions of the runtime, or of a test, that a provider calls. Any thread may call them at
/// any time while the transport exists. They must not call the transport and must not block.
pub trait Host: Send + Sync {
    /// Returns the value of an environment variable, usually of one of the provider's settings;
    /// `None` if it is not set.
    fn variable(&self, name: &str) -> Option<String> {
        let _ = name;
        None
    }

    /// Returns the NIC that this PE should prefer if the machine has several: one near its CPUs,
    /// shared with as few PEs as possible. Returns `None` if there is no choice, or if the user
    /// leaves it to the provider (`SHMEM_NIC=any`).
    fn nic(&self) -> Option<NicName> {
        None
    }

    /// Returns the number of connections of the node that has the most of them, if each PE had one
    /// endpoint: the number of pairs of a PE of the node and a PE of another node. All PEs get the
    /// same number.
    fn pairs_of_node(&self) -> u64 {
        0
    }

    /// Returns the time within which the job ends if another host is silent (`SHMEM_HOST_LIMIT`). A
    /// transport that detects silence reports a loss after three fifths of this time; the rest is
    /// for ending the job.
    fn host_limit(&self) -> Duration {
        Duration::from_secs(10)
    }

    /// Wakes threads that wait for a change of memory, after the CPU of this PE has, or may have,
    /// changed memory for a peer or for this PE itself. If `place` is 0, that is memory of this PE,
    /// otherwise the heap of the PE of this node with this number in a [`Proxy`].
    fn arrived(&self, place: u8) {
        let _ = place;
    }

    /// Returns the proxy of each PE, which carries out the operations on that PE's heap that this
    /// PE batches in a session ([`Endpoint::session`]). All PEs of another node have one proxy.
    /// Empty if every PE is its own.
    fn proxies(&self) -> &[Proxy] {
        &[]
    }

    /// Returns the heap of a PE of this PE's node, by its number in a [`Proxy`]; `None` if there is
    /// no such PE.
    fn node_heap(&self, place: u8) -> Option<&Segments> {
        let _ = place;
        None
    }

    /// Returns the report of a wait of the calling thread for operations, which has slept once. The
    /// wait ends when the report is dropped.
    fn report_wait(&self) -> Box<dyn WaitReport> {
        Box::new(Unreported)
    }

    /// Reports the first loss of a PE, after which every verb that uses the network fails. Called
    /// at most once.
    fn lost(&self, error: &Error) {
        let _ = error;
    }

    /// Ends the process at once: after the loss `error`, operations could not be canceled, for the
    /// reason `why`, so the network may still access memory of calls that have returned.
    fn cannot_go_on(&self, error: &Error, why: &str) -> ! {
        eprintln!("{error}; {why}");
        std::process::abort()
    }
}

/// The report of a wait for operations.
pub trait WaitReport {
    /// Called after each sleep of the wait. `awaited` returns what the thread waits for now.
    fn check(&mut self, awaited: &mut dyn FnMut() -> AwaitedOperations);
}

/// The operations for which a thread waits.
#[derive(Clone, Debug)]
pub struct AwaitedOperations {
    /// The PEs to name: one, or all with unfinished operations.
    pub pes: Vec<Pe>,
    /// The number of operations that are in flight or batched.
    pub in_flight: u64,
}

/// The report of a host that makes none.
pub struct Unreported;

impl WaitReport for Unreported {
    fn check(&mut self, _: &mut dyn FnMut() -> AwaitedOperations) {}
}

/// The capabilities of a transport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caps {
    /// Atomic operations of the transport and of the target's CPU are atomic with respect to each
    /// other, since the CPU carries out both, or the network is coherent with it. Otherwise the
    /// runtime uses the transport for all atomic operations, also on its own node and on the PE
    /// itself.
    pub amos_compose_with_cpu: bool,
    /// The first thread of the process must not end while the transport is open, since the
    /// transport relies on what the kernel shows of that thread.
    pub needs_first_thread: bool,
    /// Registered memory is locked: all its pages stay resident.
    pub locks_memory: bool,
    /// [`register`](Transport::register) registers only the beginning of the heap, and
    /// [`extend_heap`](Transport::extend_heap) the rest as it is allocated.
    pub heap_in_blocks: bool,
    /// Whatever changes this PE's memory ends a [`wait`](Transport::wait) at once.
    pub wakes_waits: bool,
}

impl Caps {
    /// Returns the number of bytes of a heap of `nbytes` bytes that
    /// [`register`](Transport::register) registers.
    pub fn registered_at_init(&self, nbytes: usize) -> usize {
        if self.heap_in_blocks {
            nbytes.min(heap_blocks::FIRST)
        } else {
            nbytes
        }
    }
}

/// The user of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointUser {
    /// A context of the program.
    Context,
    /// The runtime itself. Words of its data may be torn: the runtime announces them by signals,
    /// and no thread or PE accesses them before. A provider that makes use of this must have an
    /// endpoint for every context, since a context may share this one where the network has no
    /// more.
    Runtime,
}

/// A network as one process sees it.
///
/// The runtime calls its functions in this order:
///
/// 1. [`address`](Transport::address), then [`register`](Transport::register) for every segment.
///    All PEs exchange the results.
/// 2. [`connect`](Transport::connect). Requests of a peer that is faster may arrive before.
/// 3. [`endpoint`](Transport::endpoint) for itself, which it tests, and then for each context at
///    its first use.
/// 4. [`progress`](Transport::progress) and [`wait`](Transport::wait), by threads that wait. A
///    provider that must serve peers at other times has a service thread.
///
/// Endpoints are dropped before the transport. Dropping the transport ends its threads.
pub trait Transport: Send + Sync {
    /// Returns the capabilities of the transport.
    fn caps(&self) -> Caps;

    /// Makes a segment of this PE reachable. Returns the key, which all peers receive with the
    /// [`Directory`]. The last [`TABLE`](heap_blocks::TABLE) bytes of the internal segment are the
    /// provider's.
    ///
    /// # Safety
    /// `base` is valid for reads and writes of `nbytes` bytes until the transport is dropped.
    ///
    /// # Errors
    /// When the network refuses the memory.
    unsafe fn register(
        &mut self,
        segment: Segment,
        base: *mut u8,
        nbytes: usize,
    ) -> Result<Key, Error>;

    /// Makes the first `nbytes` bytes of the heap reachable, before any PE uses them, if
    /// [`heap_in_blocks`](Caps::heap_in_blocks). If any are missing, first calls `prepare` with the
    /// number of bytes of the heap that will be registered.
    ///
    /// # Errors
    /// When the network refuses the memory. Also returns the errors of `prepare`.
    fn extend_heap(
        &self,
        nbytes: usize,
        prepare: &mut dyn FnMut(usize) -> Result<(), Error>,
    ) -> Result<(), Error>;

    /// Returns the address of this PE, for its peers. The address must not depend on the segments,
    /// which are registered later.
    fn address(&self) -> Vec<u8>;

    /// Makes every PE of the job reachable by its address and keys. Checks that all of them can be
    /// used, but contacts no PE, and keeps nothing of a PE before its first use.
    ///
    /// # Errors
    /// When there is no path to a PE.
    fn connect(&mut self, directory: Arc<Directory>) -> Result<(), Error>;

    /// Returns a new endpoint for a user. One thread at a time uses it.
    ///
    /// # Errors
    /// When the network has no more endpoints. Then contexts share endpoints, also that of the
    /// runtime.
    fn endpoint(&self, user: EndpointUser) -> Result<Box<dyn Endpoint>, Error>;

    /// Makes the network progress, for this process and for peers that access its memory, and sends
    /// batches of all endpoints. Never blocks. Returns true if there was work for peers.
    ///
    /// # Errors
    /// When a PE was lost.
    fn progress(&self) -> Result<bool, Error>;

    /// Sleeps until there may be work or a change of this PE's memory, at most for `at_most`, and
    /// works as [`progress`](Transport::progress) then, unless another thread has done so. If the
    /// calling thread names the `awaited` words, it may sleep on while other words change.
    ///
    /// Prepares the sleep so that any later event ends it, then calls `is_over`, and does not sleep
    /// if that returns true. The caller has checked this before, but the preparation may make
    /// progress that ends the caller's wait, and no event will follow.
    ///
    /// # Errors
    /// When a PE was lost.
    fn wait(
        &self,
        at_most: Duration,
        awaited: &[AwaitedWord],
        is_over: &mut dyn FnMut() -> bool,
    ) -> Result<bool, Error>;

    /// Called at the end of a wait in which the calling thread has called
    /// [`wait`](Transport::wait): another thread that sleeps in that function, if there is one,
    /// watches the network from now on.
    fn end_wait(&self);

    /// Returns counts of what threads have done on the network, for statistics.
    fn activity(&self) -> NetworkActivity;

    /// Has the service thread take over at once, since the calling thread stops polling and sleeps
    /// elsewhere.
    fn stop_polling(&self);

    /// Reports the loss of a PE that has not answered for too long, for the reason `why`. All calls
    /// that wait for the network, of any thread, and all later ones that use it fail: with this
    /// loss, or with an earlier one.
    fn lose(&self, pe: Pe, why: &str);
}

/// The party that carries out atomic operations. It is chosen once for a job, before the transport
/// is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amos {
    /// The target's CPU, on request by messages. The operations are atomic with respect to those of
    /// PEs that share the target's memory.
    Software,
    /// The network.
    Network,
}

impl Amos {
    /// Returns the variant of a name, which is a value of `SHMEM_AMOS`; `None` for any other name.
    pub fn named(name: &str) -> Option<Amos> {
        [Amos::Software, Amos::Network]
            .into_iter()
            .find(|amos| amos.name() == name)
    }

    /// Returns the name, which is a value of `SHMEM_AMOS`.
    pub fn name(self) -> &'static str {
        match self {
            Amos::Software => "software",
            Amos::Network => "network",
        }
    }
}

impl fmt::Display for Amos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether a job can use a part of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// A job can use it.
    Usable,
    /// It is present, but the job does not use it: a setting excludes it, or another part is
    /// preferred.
    Unused,
    /// It is present, but no job can use it.
    Refused,
    /// It is not present.
    Absent,
}

/// The report of a provider on one of its parts, such as a library, a provider of libfabric or an
/// interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// The part, such as `tcp;ofi_rxm` or `eth0`.
    pub name: String,
    /// Whether a job can use the part.
    pub verdict: Verdict,
    /// The reason of the verdict, or a description of a usable part.
    pub reason: String,
    /// The advice to the user, if there is any.
    pub remedy: Option<String>,
    /// Jobs whose nodes would connect many pairs of PEs ([`MANY_PAIRS`]) prefer the part, since it
    /// is connectionless.
    pub is_for_many_pairs: bool,
}

impl Diagnosis {
    /// Returns a diagnosis without a remedy.
    pub fn new(name: impl Into<String>, verdict: Verdict, reason: impl Into<String>) -> Diagnosis {
        Diagnosis {
            name: name.into(),
            verdict,
            reason: reason.into(),
            remedy: None,
            is_for_many_pairs: false,
        }
    }

    /// Returns the diagnosis with this remedy.
    pub fn remedy(self, remedy: impl Into<String>) -> Diagnosis {
        Diagnosis {
            remedy: Some(remedy.into()),
            ..self
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Usable => "usable",
            Verdict::Unused => "unused",
            Verdict::Refused => "refused",
            Verdict::Absent => "absent",
        })
    }
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.reason)?;
        if let Some(remedy) = &self.remedy {
            write!(f, "; {remedy}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Open {
    /// Returns the arguments of PE 0 of 2 PEs on one machine, with a runtime that does nothing.
    pub(crate) fn for_tests() -> Open {
        struct IdleHost;
        impl Host for IdleHost {}
        Open {
            pe: Pe(0),
            n_pes: 2,
            secret: [0; 32],
            one_machine: true,
            cpus_per_pe: 1,
            amos: Amos::Software,
            part: None,
            host: Arc::new(IdleHost),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remedy_follows_the_reason() {
        let diagnosis = Diagnosis::new("tcp", Verdict::Refused, "it offers FI_EP_MSG");
        assert_eq!(diagnosis.to_string(), "tcp: it offers FI_EP_MSG");
        assert_eq!(
            diagnosis.remedy("use tcp;ofi_rxm").to_string(),
            "tcp: it offers FI_EP_MSG; use tcp;ofi_rxm"
        );
    }
}
