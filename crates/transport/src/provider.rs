//! The interface by which the runtime finds and opens a provider, and the transport that it then
//! has.
//!
//! A provider states its capabilities in [`Caps`]. It never claims one that it has not tested.
#![allow(unsafe_code)]

use crate::segments::{Segments, heap_blocks};
use crate::{Directory, Endpoint, Error, Key, NetworkActivity, NicName, Pe, Segment, Setting};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A provider, as the runtime sees it: an entry of `providers::ALL`.
pub struct Provider {
    /// Its name, which is a value of `SHMEM_TRANSPORT`.
    pub name: &'static str,
    /// Its own settings, whose values its [`Host`] knows. Their names begin with `SHMEM_` and the
    /// provider's name.
    pub settings: &'static [Setting],
    /// True if it opens shared libraries, which a statically linked program cannot.
    pub opens_libraries: bool,
    /// True if `SHMEM_TRANSPORT=auto` may choose it where no RDMA device is behind it.
    pub without_rdma: bool,
    /// True if it can leave atomic operations to the network.
    pub network_amos: bool,
    /// The function that returns what the provider finds on this machine, given the variables of
    /// the host. It is fast and prints nothing. It may open libraries, but opens devices only if
    /// [`devices::active`](crate::machine::devices::active) finds some.
    ///
    /// # Errors
    /// [`Error::Unavailable`], saying what is missing.
    pub available: fn(&dyn Host) -> Result<Found, Error>,
    /// The parts of the provider that fit a job, by their names, best first; a process opens one of
    /// them ([`Open::part`]). `None` if it has no parts.
    ///
    /// # Errors
    /// [`Error::Unavailable`], saying why none fits.
    pub parts: Option<ListParts>,
    /// The function that returns what each part of the provider can do on this machine for a
    /// process that would be opened with these arguments, and why not. If it has
    /// [`parts`](Provider::parts), only the part that the arguments name is opened. Unlike
    /// [`available`](Provider::available) it opens libraries and devices, and may take a second: no
    /// job calls it.
    pub diagnose: fn(&Open) -> Vec<Diagnosis>,
    /// Opens the provider's transport for this process. All signals are blocked meanwhile, so that
    /// its threads take none.
    ///
    /// # Errors
    /// [`Error::Unavailable`], saying what is missing.
    pub open: fn(&Open) -> Result<Box<dyn Transport>, Error>,
}

/// Lists the parts of a provider: [`Provider::parts`].
pub type ListParts = fn(&Open) -> Result<Vec<String>, Error>;

/// The findings of a provider on a machine. Their text is one line for users.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// It uses hardware that reads and writes a target's memory without the target's CPU.
    pub rdma: bool,
    /// This hardware also carries out the atomic operations of the standard, some of them perhaps
    /// by its compare-and-swap.
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
    /// The number of PEs that the job has.
    pub n_pes: u32,
    /// The job's secret, which is the same on all PEs and known to them alone.
    pub secret: [u8; 32],
    /// All PEs run on this machine, so that nothing needs to be reachable from outside.
    pub one_machine: bool,
    /// The usable CPUs of each PE: the number of its threads that may spin at once while they wait.
    /// It is 0 if PEs outnumber the CPUs.
    pub cpus_per_pe: u32,
    /// The party that carries out atomic operations, the same on all PEs. It is the network only if
    /// the provider can leave them to it.
    pub amos: Amos,
    /// The part that is opened, the same on all PEs; if `None`, the first that can be opened.
    pub part: Option<String>,
    /// The interface to the runtime.
    pub host: Arc<dyn Host>,
}

/// The PE that carries out what an origin batches for a PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proxy {
    /// A PE of the same node, or the PE itself.
    pub pe: Pe,
    /// Which PE of its node it is done for: 0 for the proxy itself, and otherwise the number by
    /// which [`Host::node_heap`] knows that PE's heap.
    pub place: u8,
}

impl Proxy {
    /// Returns the PE itself.
    pub fn itself(pe: Pe) -> Proxy {
        Proxy { pe, place: 0 }
    }
}

/// The number of pairs of PEs ([`Host::pairs_of_node`]) beyond which libfabric's providers without
/// connections go first: over a cloud's RoCE of 200 Gbit/s, jobs of 8,192 connections per node took
/// seconds to start and mostly failed, while those of a provider without connections worked with
/// 192 PEs per node.
pub const MANY_PAIRS: u64 = 4096;

/// The interface of a provider to its user, which is the runtime or a test. Any thread may call it
/// at any time while the transport exists. An implementation must not call the transport and must
/// not block.
pub trait Host: Send + Sync {
    /// Returns the value of an environment variable, most often one of the provider's own settings.
    fn variable(&self, name: &str) -> Option<String> {
        let _ = name;
        None
    }

    /// Returns the NIC of this machine that the PE should prefer if there are several: one near it,
    /// shared with as few PEs as possible. `None` if there is no choice, or if the user leaves it
    /// to the provider (`SHMEM_NIC=any`).
    fn nic(&self) -> Option<NicName> {
        None
    }

    /// Returns how many pairs of PEs have one on a node and the other elsewhere, for the node that
    /// has the most: what an endpoint for each PE would connect. It is the same on all PEs.
    fn pairs_of_node(&self) -> u64 {
        0
    }

    /// Returns how long another host may be silent before the job has ended (`SHMEM_HOST_LIMIT`). A
    /// transport that detects silence reports a loss within three fifths of this time; the rest is
    /// for ending the job.
    fn host_limit(&self) -> Duration {
        Duration::from_secs(10)
    }

    /// Wakes threads that wait for a change of memory, after the CPU of this PE has changed its
    /// memory for a peer.
    fn arrived(&self) {}

    /// Wakes threads of a PE of this node that wait for a change of memory, after the CPU of this
    /// PE has changed that PE's heap for a peer. A [`Proxy`] has its number, `place`.
    fn arrived_at(&self, place: u8) {
        let _ = place;
    }

    /// Returns true if PEs of other nodes have proxies other than themselves.
    fn has_proxies(&self) -> bool {
        false
    }

    /// Returns who carries out the operations on the heap of a PE of another node that this PE
    /// batches in a session ([`Endpoint::session`]): for all PEs of a node the same one.
    fn proxy(&self, pe: Pe) -> Proxy {
        Proxy::itself(pe)
    }

    /// Returns the heap of a PE of this PE's node, by its number in a [`Proxy`].
    fn node_heap(&self, place: u8) -> Option<&Segments> {
        let _ = place;
        None
    }

    /// Reports that the calling thread has waited long for operations on these PEs, of which
    /// `in_flight` have not completed. Called again with other PEs while the wait goes on.
    fn waits(&self, peers: &[Pe], in_flight: u64) {
        let _ = (peers, in_flight);
    }

    /// Reports the end of a wait that was reported by [`waits`](Host::waits).
    fn ends_wait(&self) {}

    /// Reports the loss of a PE, after which every verb fails. Called once.
    fn lost(&self, error: &Error) {
        let _ = error;
    }

    /// Ends the process at once with this message, because after an error the network still uses
    /// memory that is no longer valid.
    fn cannot_go_on(&self, error: &Error, why: &str) -> ! {
        eprintln!("{error}; {why}");
        std::process::abort()
    }
}

/// The capabilities of a transport.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caps {
    /// Its atomic operations are carried out by the target's CPU, or coherently with it, so that
    /// they and the CPU's own are atomic with respect to each other. Otherwise the runtime uses the
    /// transport for all atomic operations, also for those on the own node and on the PE itself.
    pub amos_compose_with_cpu: bool,
    /// It relies on what the kernel shows of the process's first thread, which must not end while
    /// the transport is open.
    pub needs_first_thread: bool,
    /// Registered memory is locked: all its pages are resident as long as it is registered.
    pub locks_memory: bool,
    /// [`register`](Transport::register) registers only the beginning of the heap, and
    /// [`extend_heap`](Transport::extend_heap) the rest as it is allocated.
    pub heap_in_blocks: bool,
}

impl Caps {
    /// Returns how many bytes of a heap of `nbytes` [`register`](Transport::register) registers.
    pub fn registered_at_init(&self, nbytes: usize) -> usize {
        if self.heap_in_blocks { nbytes.min(heap_blocks::FIRST) } else { nbytes }
    }
}

/// A network as one process sees it.
///
/// The runtime calls its functions in this order:
///
/// 1. [`address`](Transport::address), then [`register`](Transport::register) for every segment.
///    All PEs exchange the results.
/// 2. [`connect`](Transport::connect).
/// 3. [`internal_endpoint`](Transport::internal_endpoint) for itself, which it tests, and then
///    [`endpoint`](Transport::endpoint) for each context at its first use.
/// 4. [`progress`](Transport::progress) and [`wait`](Transport::wait), by threads that wait. A
///    provider that must serve peers at other times has a service thread.
///
/// Endpoints are dropped before the transport. Dropping the transport ends its threads.
pub trait Transport: Send + Sync {
    /// Returns its capabilities.
    fn caps(&self) -> Caps;

    /// Makes a segment of this PE reachable; the key goes to every peer that connects. The last
    /// [`TABLE`](heap_blocks::TABLE) bytes of the internal segment are the provider's.
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
    /// [`heap_in_blocks`](Caps::heap_in_blocks). `prepare` gets how many bytes of the heap will be
    /// registered, if any are missing.
    ///
    /// # Errors
    /// When the network refuses the memory; those of `prepare`.
    fn extend_heap(
        &self,
        nbytes: usize,
        prepare: &mut dyn FnMut(usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let _ = (nbytes, prepare);
        Ok(())
    }

    /// Returns this PE's address, for its peers. It must not depend on the segments, which are
    /// registered later.
    fn address(&self) -> Vec<u8>;

    /// Makes every PE of the job reachable by its address and the keys of its segments. Checks that
    /// all of these can be used, but contacts no PE and keeps nothing of it before its first use.
    ///
    /// # Errors
    /// When there is no path to one of them.
    fn connect(&mut self, directory: Arc<Directory>) -> Result<(), Error>;

    /// Returns a new endpoint, one per context. One thread at a time uses it.
    ///
    /// # Errors
    /// When the network has no more; then contexts share endpoints, and perhaps the runtime's.
    fn endpoint(&self) -> Result<Box<dyn Endpoint>, Error>;

    /// Returns the endpoint of the runtime itself. The runtime announces what it transfers by
    /// signals, and no other thread or PE accesses the data before, on either side, so that its
    /// words need not be whole. A provider that makes use of this has an endpoint for every
    /// context: where [`endpoint`](Transport::endpoint) fails, a context may share this one.
    ///
    /// # Errors
    /// As [`endpoint`](Transport::endpoint).
    fn internal_endpoint(&self) -> Result<Box<dyn Endpoint>, Error> {
        self.endpoint()
    }

    /// Makes the network progress, for this process and for peers that access its memory, and
    /// sends what any endpoint has delayed. Never blocks. Returns whether there was work for peers.
    ///
    /// # Errors
    /// When a PE was lost.
    fn progress(&self) -> Result<bool, Error>;

    /// Works as [`progress`](Transport::progress), but if there was nothing to do, sleeps until
    /// there may be, at most for `at_most`.
    ///
    /// # Errors
    /// When a PE was lost.
    fn wait(&self, at_most: Duration) -> Result<bool, Error> {
        let worked = self.progress()?;
        if !worked {
            std::thread::sleep(at_most);
        }
        Ok(worked)
    }

    /// Returns what threads have done on the network, for statistics.
    fn activity(&self) -> NetworkActivity {
        NetworkActivity::default()
    }

    /// Makes the service thread take over at once, since the calling thread stops polling and
    /// sleeps elsewhere.
    fn stop_polling(&self) {}

    /// Gives a PE up that has not answered for too long, as `why` says: every call that waits
    /// returns this loss, whichever thread made it, and so does every later one.
    fn lose(&self, pe: Pe, why: &str);
}

/// The party that carries out atomic operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amos {
    /// The target's CPU, on request by messages. They are atomic with respect to the operations of
    /// PEs that share the target's memory.
    Software,
    /// The network.
    Network,
}

impl Amos {
    /// Returns the way of a name, which is a value of `SHMEM_AMOS`.
    pub fn named(name: &str) -> Option<Amos> {
        [Amos::Software, Amos::Network].into_iter().find(|amos| amos.name() == name)
    }

    /// Returns its name.
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

/// The verdict on whether a job can use something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It can.
    Usable,
    /// It is there, and a setting or a better part is preferred to it.
    Unused,
    /// It is there, and no job can use it.
    Refused,
    /// It is not there.
    Absent,
}

/// The report of a provider on one of its parts: a library, one of its own providers, an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// The part, such as `tcp;ofi_rxm` or `eth0`.
    pub name: String,
    /// The verdict on whether a job can use the part.
    pub verdict: Verdict,
    /// Why; of a usable part, what it is.
    pub reason: String,
    /// The advice to the user, if there is any.
    pub remedy: Option<String>,
    /// A job whose nodes would connect many pairs of PEs ([`MANY_PAIRS`](crate::MANY_PAIRS)) uses
    /// it before others, since it needs no connections.
    pub is_for_many_pairs: bool,
}

impl Diagnosis {
    /// Returns a diagnosis without a remedy.
    pub fn new(name: impl Into<String>, verdict: Verdict, reason: impl Into<String>) -> Diagnosis {
        let (name, reason) = (name.into(), reason.into());
        Diagnosis { name, verdict, reason, remedy: None, is_for_many_pairs: false }
    }

    /// Returns the diagnosis with this remedy.
    pub fn remedy(self, remedy: impl Into<String>) -> Diagnosis {
        Diagnosis { remedy: Some(remedy.into()), ..self }
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
        self.remedy.as_ref().map_or(Ok(()), |remedy| write!(f, "; {remedy}"))
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
