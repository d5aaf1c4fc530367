//! Reads the statuses of the PEs of this machine in the memory that these share. This needs neither
//! the network nor the help of a PE. The watchdog explains waits by the statuses. A PE that needs
//! the location of a call finds in them the result of another PE that waits in the same call.
#![allow(unsafe_code)]

use crate::links::Links;
use rushmem_explain::collect::{Collector, LocalPe, SharedMemory};
use rushmem_explain::status::Search;
use rushmem_heap::NodeMemory;
use rushmem_pe::job;
use rushmem_pe::memory::statics;
use rushmem_transport::{Pe, mem};
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The time between two reads of the statuses. PEs that begin to search at the same time have all
/// written that to their statuses before the first read, so that only one of them searches.
const PERIOD: Duration = Duration::from_millis(50);

/// Maximum time that a PE waits for the result of another one's search, before it searches itself.
/// An error message waits as long for its place in the program.
const LIMIT: Duration = Duration::from_secs(10);

static STATUSES: OnceLock<Statuses> = OnceLock::new();

/// The statuses of the PEs of this machine.
pub struct Statuses {
    /// What reads them.
    pub collector: Collector<MappedNode>,
    /// The PEs of this machine.
    pub pes: Vec<LocalPe>,
}

/// Records where the statuses are, in the first init. They are read while other threads are in
/// calls, so the reader must not need the membership.
pub fn set_statuses(links: &Links) {
    let Links { job, area, .. } = links;
    let memory = job.memory;
    let in_slice = memory.internal().addr() - memory.heap().addr();
    let collector = Collector {
        memory: MappedNode(memory),
        offset: (in_slice + area.areas().status()) as u64,
        stride: memory.layout().stride() as u64,
    };

    let membership = job.membership();
    let machines = membership.nodes();
    let mut pes = Vec::new();
    for pe in machines.members(machines.node_of(job.me.0)) {
        pes.push(LocalPe {
            pe,
            local: machines.local_index(pe),
            pid: None,
        });
    }

    // They are set once, since only the first init joins the job.
    let _ = STATUSES.set(Statuses { collector, pes });
}

/// Returns the statuses; `None` before [`set_statuses`].
pub fn statuses() -> Option<&'static Statuses> {
    STATUSES.get()
}

/// Waits until another PE of this machine has searched for the location of a call with the same
/// stack, and returns its result: `Some(None)` if it has found no location. Returns `None` if this
/// PE must search itself: of the searches that are not over, its own began first, or the others
/// have taken longer than [`LIMIT`].
///
/// One PE searches for all, since reading debug information takes up to a second of a CPU, and
/// dozens of megabytes.
pub(crate) fn place_found_by_peer(own: Search) -> Option<Option<String>> {
    let job = job::known()?;
    let statuses = statuses()?;
    let until = Instant::now() + LIMIT;

    loop {
        sleep(PERIOD);
        match statuses.searches_of_peers(job.me, own) {
            PeerSearches::Over(place) => return Some(place),
            PeerSearches::EarlierOngoing if Instant::now() < until => {}
            PeerSearches::EarlierOngoing | PeerSearches::NoneEarlier => return None,
        }
    }
}

/// The searches of other PEs for the location that this PE needs, too.
enum PeerSearches {
    /// One is over, with this result.
    Over(Option<String>),
    /// None is over, and one began before that of this PE.
    EarlierOngoing,
    /// None is over, and none began before that of this PE.
    NoneEarlier,
}

impl Statuses {
    /// Returns what the statuses of the PEs other than `me` say of searches for the stack of
    /// `own`.
    fn searches_of_peers(&self, me: Pe, own: Search) -> PeerSearches {
        let mut is_own_first = true;
        for peer in self.pes.iter().filter(|peer| peer.pe != me.0) {
            let Some(status) = self.collector.status(peer.local) else {
                continue;
            };

            for wait in status.waits {
                let Some(search) = wait.search.filter(|search| search.stack == own.stack) else {
                    continue;
                };
                if search.is_over {
                    return PeerSearches::Over(wait.called_at);
                }
                // Of searches that began at the same time, the one of the lower PE goes on.
                is_own_first &= (own.since, me.0) < (search.since, peer.pe);
            }
        }

        if is_own_first {
            PeerSearches::NoneEarlier
        } else {
            PeerSearches::EarlierOngoing
        }
    }
}

/// The memory of the node, as it is mapped in this process.
pub struct MappedNode(&'static NodeMemory);

impl SharedMemory for MappedNode {
    fn read(&self, offset: u64, bytes: &mut [u8]) -> bool {
        let source = self.0.at(offset, bytes.len());
        // SAFETY: `at` returns a pointer only if the bytes are mapped.
        source.is_some_and(|source| unsafe { copy(source, bytes) })
    }

    fn read_static(&self, local: u32, address: u64, bytes: &mut [u8]) -> bool {
        let own = statics::own();
        let here = own.load_address().wrapping_add(address as usize);
        if !own.contains(here.wrapping_sub(own.start()), bytes.len()) {
            return false;
        }
        let Some(delta) = self.0.statics_delta(local) else {
            return false;
        };

        let source = std::ptr::with_exposed_provenance::<u8>(here).wrapping_offset(delta);
        // SAFETY: `contains` shows that the bytes are static data, which are mapped if there is a
        // delta.
        unsafe { copy(source, bytes) }
    }
}

/// Copies bytes of symmetric memory, and returns true.
///
/// # Safety
/// `bytes.len()` bytes at `source` are mapped here.
unsafe fn copy(source: *const u8, bytes: &mut [u8]) -> bool {
    // SAFETY: the caller promises that the source is mapped for as many bytes as the slice has.
    unsafe { mem::copy_bytes::<mem::AtomicLoads>(bytes.as_mut_ptr(), source, bytes.len()) };
    true
}
