//! The watchdog of a node (`SHMEM_WATCHDOG`): a thread of its first PE that looks at the statuses
//! of the node's PEs, and explains once on standard error why one of them has waited for too long.
//!
//! It reads shared memory and /proc alone, so it needs no help of a PE that hangs, nor the network.
//! For the same reason it does not know the PEs of other nodes, and concludes nothing about them.

#![allow(unsafe_code)]

use crate::call::demangled;
use crate::job::Job;
use crate::memory::statics;
use crate::net::flags;
use rushmem_bootstrap::NodeMap;
use rushmem_explain::collect::{Collector, LocalPe, PAUSE, SharedMemory};
use rushmem_explain::explain;
use rushmem_heap::NodeMemory;
use rushmem_transport::machine::host_name;
use rushmem_transport::mem;
use rushmem_transport::thread::spawn_service;
use std::io::Write;
use std::time::Duration;

/// Between two looks at the statuses.
const PERIOD: Duration = Duration::from_secs(1);

/// Starts the watchdog if there is to be one and this PE is the first of its machine.
pub(crate) fn start(job: &'static Job) {
    let session = job.session();
    let Some(limit) = job.settings.watchdog.filter(|_| session.local_id() == 0) else { return };
    let (machines, me) = (session.nodes().clone(), job.me.0);
    // It is of no use to end a job because there are too many threads.
    let _ = spawn_service("rushmem-watchdog", move || run(job.memory, &machines, me, limit));
}

fn run(memory: &'static NodeMemory, machines: &NodeMap, me: u32, limit: Duration) {
    let in_slice = memory.internal().addr() - memory.heap().addr();
    let at = (in_slice + flags::area().areas().status()) as u64;
    let stride = memory.layout().stride() as u64;
    let collector = Collector { memory: MappedNode(memory), at, stride, demangle: demangled };
    let local = |pe| LocalPe { pe, local: machines.local_index(pe), pid: None };
    let pes: Vec<LocalPe> = machines.members(machines.node_of(me)).map(local).collect();
    let mut explained = None;
    loop {
        std::thread::sleep(PERIOD);
        let waits = collector.long_waits(&pes, limit);
        if explained.is_some_and(|explained| waits.contains(&explained)) {
            continue;
        }
        explained = waits.into_iter().min_by_key(|wait| wait.since);
        if explained.is_some() {
            let snapshots = collector.snapshots(&pes, Some(PAUSE));
            print(limit, machines.n_nodes(), &explain(machines.n_pes(), &snapshots));
        }
    }
}

fn print(limit: Duration, n_nodes: u32, explanation: &str) {
    let others = match n_nodes {
        1 => String::new(),
        _ => format!(
            "; this is the part of {}, and other hosts print theirs if a call waits there",
            host_name()
        ),
    };
    // Without a stderr there is no place for the explanation, and the job goes on.
    let _ = writeln!(
        std::io::stderr(),
        "SHMEM_WATCHDOG: a call has waited for more than {} s{others}\n{explanation}",
        limit.as_secs_f64()
    );
}

/// The memory of the node as it is mapped here.
struct MappedNode(&'static NodeMemory);

impl SharedMemory for MappedNode {
    fn read(&self, at: u64, bytes: &mut [u8]) -> bool {
        let source = self.0.at(at, bytes.len());
        // SAFETY: mapped, as was just found.
        source.is_some_and(|source| unsafe { copy(source, bytes) })
    }

    fn read_static(&self, local: u32, address: u64, bytes: &mut [u8]) -> bool {
        let own = statics::own();
        let here = own.load_address().wrapping_add(address as usize);
        let is_static = own.hold(here.wrapping_sub(own.start()), bytes.len());
        let Some(delta) = self.0.statics_delta(local).filter(|_| is_static) else { return false };
        let source = std::ptr::with_exposed_provenance::<u8>(here).wrapping_offset(delta);
        // SAFETY: mapped, as all static variables of a PE whose delta is known.
        unsafe { copy(source, bytes) }
    }
}

/// Copies bytes of symmetric memory.
///
/// # Safety
/// They are mapped here.
unsafe fn copy(source: *const u8, bytes: &mut [u8]) -> bool {
    // SAFETY: mapped by contract, and as many private bytes.
    unsafe { mem::copy_bytes::<mem::AtomicLoads>(bytes.as_mut_ptr(), source, bytes.len()) };
    true
}
