//! The proxies of PEs: in a session, what this PE batches for the heaps of a node travels to one PE
//! of that node, which carries it out in the memory that the node shares.
#![allow(unsafe_code)]

use crate::job::{self, Job};
use crate::memory::address;
use rushmem_transport::kit::segments::Segments;
use rushmem_transport::{LocalBuf, Pe, Proxy, Segment};
use std::sync::OnceLock;

/// Nodes of more PEs have none: a place is a byte, and 0 is the proxy itself.
const MOST: u32 = u8::MAX as u32;

/// Returns true if PEs may have proxies other than themselves.
pub(crate) fn exist() -> bool {
    job::known().is_some_and(|job| job.n_pes > job.nodes.n_nodes())
}

/// Returns who carries out what this PE batches for the heap of a PE of another node.
pub(crate) fn of(pe: Pe) -> Proxy {
    let proxies = job::known().map(proxies);
    let proxy = proxies.and_then(|proxies| proxies.get(pe.index()));
    proxy.copied().unwrap_or(Proxy::itself(pe))
}

/// Returns the PE of this node that has this place.
pub(crate) fn pe_at(place: u8) -> Option<Pe> {
    member(place).map(|(pe, _)| *pe)
}

/// Returns the heap of a PE of this node.
pub(crate) fn heap(place: u8) -> Option<&'static Segments> {
    member(place).map(|(_, heap)| heap)
}

/// Returns the PE of this node that has this place, and its heap.
fn member(place: u8) -> Option<&'static (Pe, Segments)> {
    static MEMBERS: OnceLock<Vec<(Pe, Segments)>> = OnceLock::new();
    let job = job::known()?;
    let members = MEMBERS.get_or_init(|| {
        let members = job.nodes.members(job.nodes.node_of(job.me.0)).map(Pe);
        members.map(|pe| (pe, heap_of(job, pe))).collect()
    });
    members.get(usize::from(place).checked_sub(1)?)
}

fn heap_of(job: &Job, pe: Pe) -> Segments {
    let segments = Segments::default();
    if let Some(delta) = address::delta(Segment::Heap, pe.0 as i32) {
        let base = job.memory.heap().wrapping_byte_offset(delta);
        let nbytes = job.memory.layout().heap_bytes();
        // SAFETY: the heap of a PE of this node, which is mapped for the life of the process.
        let registered = unsafe { segments.register(Segment::Heap, LocalBuf { base, nbytes }, ()) };
        registered.expect("the first of this table");
    }
    segments
}

/// Returns the proxy of each PE. The PEs of a node share the work: each has proxies of its own
/// place.
fn proxies(job: &'static Job) -> &'static [Proxy] {
    static PROXIES: OnceLock<Vec<Proxy>> = OnceLock::new();
    PROXIES.get_or_init(|| {
        let (nodes, me) = (&job.nodes, job.me.0);
        let (own, place) = (nodes.node_of(me), nodes.local_index(me));
        let mut proxies: Vec<Proxy> = (0..job.n_pes).map(|pe| Proxy::itself(Pe(pe))).collect();
        let others = (0..nodes.n_nodes()).filter(|&node| node != own && nodes.size(node) <= MOST);
        for node in others {
            let members: Vec<u32> = nodes.members(node).collect();
            let proxy = Pe(members[place as usize % members.len()]);
            for (pe, place) in members.into_iter().zip(1..).filter(|(pe, _)| *pe != proxy.0) {
                proxies[pe as usize] = Proxy { pe: proxy, place };
            }
        }
        proxies
    })
}
