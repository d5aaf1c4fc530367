//! The interface of this process to a transport (the trait `Host`): settings, the preferred NIC,
//! wake-ups, losses, and the proxies of PEs.
//!
//! A proxy is a PE that carries out operations for other PEs of its node: in a session, this PE
//! sends all operations that it batches for the heaps of a node to one PE of that node, which
//! applies them to the memory that the node shares.
#![allow(unsafe_code)]

use crate::links;
use crate::net::network::{LIBRARY_CALL, is_loss_of_peer, launcher_grace};
use crate::sync::long_wait;
use rushmem_pe::job::{self, Job};
use rushmem_pe::memory::address;
use rushmem_system::devices::NicName;
use rushmem_system::setting::{environment, is_blank};
use rushmem_transport::segments::Segments;
use rushmem_transport::{Error, Host, LocalBuf, Pe, Proxy, Segment, Unreported, WaitReport};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The time within which a call can report an error of the transport itself, under its own name,
/// before [`ProcessHost::lost`] ends the job. Long beside a turn of a thread that waits in a call,
/// and short for a user.
const CALL_GRACE: Duration = Duration::from_millis(200);

/// The NIC that this PE prefers, on a machine with several.
static NIC: OnceLock<NicName> = OnceLock::new();

/// Sets the preferred NIC, before a transport is opened.
pub fn set_preferred_nic(nic: NicName) {
    // This cannot fail: only the first init joins the job.
    let _ = NIC.set(nic);
}

/// The interface of this process to one transport.
pub struct ProcessHost {
    me: Pe,
    /// Set once the transport has been chosen: from then on the loss of a peer ends the job. While
    /// the transport is tested, the caller of the test gets the error. Relaxed: it publishes
    /// nothing else, and of a loss at the same time either may be said.
    is_chosen: AtomicBool,
    /// The only strong reference, dropped with the transport: afterwards no loss ends the job.
    open: Arc<()>,
    /// `SHMEM_HOST_LIMIT`; unused if the transport is not opened.
    host_limit: Duration,
}

impl Default for ProcessHost {
    fn default() -> ProcessHost {
        ProcessHost::new(Pe(0), Duration::ZERO)
    }
}

impl ProcessHost {
    /// Creates the interface for opening a transport.
    pub fn new(me: Pe, host_limit: Duration) -> ProcessHost {
        ProcessHost {
            me,
            is_chosen: AtomicBool::new(false),
            open: Arc::default(),
            host_limit,
        }
    }

    /// Ends the job if a peer is lost from now on: the transport was chosen.
    pub fn end_job_on_loss(&self) {
        self.is_chosen.store(true, Ordering::Relaxed);
    }
}

impl Host for ProcessHost {
    fn variable(&self, name: &str) -> Option<String> {
        let value = environment(name)?;
        // A script may leave a setting empty, which counts as not set. The variables of other
        // libraries are returned as they are.
        if name.starts_with("SHMEM_") && is_blank(&value) {
            return None;
        }
        Some(value)
    }

    fn nic(&self) -> Option<NicName> {
        NIC.get().cloned()
    }

    fn pairs_of_node(&self) -> u64 {
        let Some(job) = job::known() else { return 0 };

        let mut most = 0;
        for node in 0..job.nodes.n_nodes() {
            let size = job.nodes.size(node);
            let pairs = u64::from(size) * u64::from(job.n_pes - size);
            most = most.max(pairs);
        }
        most
    }

    fn host_limit(&self) -> Duration {
        self.host_limit
    }

    fn arrived(&self, place: u8) {
        if place == 0 {
            // The memory of this PE has changed.
            // Without a job, as while the machine is diagnosed, there are no areas, and no thread
            // sleeps.
            if let Some(links) = links::known() {
                links.area.ring_own();
            }
        } else if let Some(member) = member(place) {
            links::of_process().area.ring(member.pe);
        }
    }

    fn proxies(&self) -> &[Proxy] {
        match job::known() {
            Some(job) if job.n_pes > job.nodes.n_nodes() => proxies(job),
            // Each node has one PE, its own proxy.
            _ => &[],
        }
    }

    fn node_heap(&self, place: u8) -> Option<&Segments> {
        member(place).map(|member| &member.heap)
    }

    fn report_wait(&self) -> Box<dyn WaitReport> {
        // Without a job, as while the machine is diagnosed, there is no status.
        match links::known() {
            Some(links) => Box::new(long_wait::wait_for_operations(links)),
            None => Box::new(Unreported),
        }
    }

    fn lost(&self, error: &Error) {
        // A PE that can no longer use its own network ends the job even during a test: otherwise
        // the others would wait for it.
        let is_peer_lost = is_loss_of_peer(error, Some(self.me));
        if is_peer_lost && !self.is_chosen.load(Ordering::Relaxed) {
            return;
        }

        // The launcher may report first why a peer was lost, or a call in progress may report the
        // error under its own name.
        let grace = if is_peer_lost {
            launcher_grace(self.host_limit)
        } else {
            CALL_GRACE
        };

        // In another thread, since the calling thread serves the other peers. If no thread can be
        // started, the next call that needs the network reports the error.
        let error = error.clone();
        let open = Arc::downgrade(&self.open);
        let _ = std::thread::Builder::new().spawn(move || {
            std::thread::sleep(grace);
            if open.upgrade().is_some() {
                LIBRARY_CALL.fail(format_args!("{error}"))
            }
        });
    }

    fn cannot_go_on(&self, error: &Error, why: &str) -> ! {
        LIBRARY_CALL.fail(format_args!("{error}; {why}"))
    }
}

/// Maximum number of PEs of a node whose PEs have proxies: the number of a PE on its node is sent
/// as one byte, in which 0 denotes the proxy itself.
const MAX_NODE_PES: u32 = u8::MAX as u32;

/// A PE of this node, and its heap as this PE sees it.
struct NodeMember {
    pe: Pe,
    heap: Segments,
}

/// Returns the PE of this node with this number on the node, counted from 1; `None` if there is
/// none, or before the job is known.
fn member(place: u8) -> Option<&'static NodeMember> {
    static MEMBERS: OnceLock<Vec<NodeMember>> = OnceLock::new();
    let job = job::known()?;
    let members = MEMBERS.get_or_init(|| {
        let own_node = job.nodes.node_of(job.me.0);
        job.nodes
            .members(own_node)
            .map(Pe)
            .map(|pe| NodeMember {
                pe,
                heap: heap_of(job, pe),
            })
            .collect()
    });
    members.get(usize::from(place).checked_sub(1)?)
}

/// Returns the heap of a PE as this process sees it; without a segment if it is not mapped here.
fn heap_of(job: &Job, pe: Pe) -> Segments {
    let segments = Segments::default();
    if let Some(delta) = address::delta(Segment::Heap, pe.0 as i32) {
        let base = job.memory.heap().wrapping_byte_offset(delta);
        let nbytes = job.memory.layout().heap_bytes();
        // SAFETY: the range is the heap of a PE of this node, mapped for the life of the process.
        let registered = unsafe { segments.register(Segment::Heap, LocalBuf { base, nbytes }, ()) };
        registered.expect("no other heap is in this table");
    }
    segments
}

/// Returns the proxy of each PE of the job; a PE without one is its own. PEs share the work: on
/// another node, this PE uses the PE with the same number on its node, modulo the size of that
/// node.
fn proxies(job: &'static Job) -> &'static [Proxy] {
    static PROXIES: OnceLock<Vec<Proxy>> = OnceLock::new();
    PROXIES.get_or_init(|| {
        let nodes = &job.nodes;
        let own_node = nodes.node_of(job.me.0);
        let own_place = nodes.local_index(job.me.0) as usize;
        let mut proxies: Vec<Proxy> = (0..job.n_pes).map(|pe| Proxy::itself(Pe(pe))).collect();

        for node in 0..nodes.n_nodes() {
            if node == own_node || nodes.size(node) > MAX_NODE_PES {
                continue;
            }

            let members: Vec<u32> = nodes.members(node).collect();
            let proxy = Pe(members[own_place % members.len()]);
            // Places are counted from 1, since 0 denotes the proxy itself.
            for (pe, place) in members.into_iter().zip(1..) {
                if pe != proxy.0 {
                    proxies[pe as usize] = Proxy { pe: proxy, place };
                }
            }
        }
        proxies
    })
}
