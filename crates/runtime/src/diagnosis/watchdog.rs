//! The watchdog of a node (`SHMEM_WATCHDOG`): a thread of the node's first PE that reads the
//! statuses of the node's PEs. If a wait has lasted too long, it explains the job once on standard
//! error.
//!
//! It reads only shared memory and /proc, so it needs neither the network nor the help of a PE that
//! hangs. Hence it knows nothing of the PEs of other nodes and concludes nothing about them.

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

/// The time between two reads of the statuses.
const PERIOD: Duration = Duration::from_secs(1);

/// Starts the watchdog, if it is wanted and this PE is the first of its machine.
pub(crate) fn start(job: &'static Job) {
    let session = job.session();
    let Some(limit) = job.settings.watchdog.filter(|_| session.local_id() == 0) else { return };
    let (machines, me) = (session.nodes().clone(), job.me.0);
    // Without a thread there is no watchdog, but the job can run.
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
    // If standard error is closed, the explanation is lost and the job goes on.
    let _ = writeln!(
        std::io::stderr(),
        "SHMEM_WATCHDOG: a call has waited for more than {} s{others}\n{explanation}",
        limit.as_secs_f64()
    );
}

/// The memory of the node, as it is mapped in this process.
struct MappedNode(&'static NodeMemory);

impl SharedMemory for MappedNode {
    fn read(&self, at: u64, bytes: &mut [u8]) -> bool {
        let source = self.0.at(at, bytes.len());
        // SAFETY: `at` returns a pointer only if the bytes are mapped.
        source.is_some_and(|source| unsafe { copy(source, bytes) })
    }

    fn read_static(&self, local: u32, address: u64, bytes: &mut [u8]) -> bool {
        let own = statics::own();
        let here = own.load_address().wrapping_add(address as usize);
        let is_static = own.hold(here.wrapping_sub(own.start()), bytes.len());
        let Some(delta) = self.0.statics_delta(local).filter(|_| is_static) else { return false };
        let source = std::ptr::with_exposed_provenance::<u8>(here).wrapping_offset(delta);
        // SAFETY: `hold` shows that the bytes are static data, which are mapped if there is a
        // delta.
        unsafe { copy(source, bytes) }
    }
}

/// Copies bytes of symmetric memory.
///
/// # Safety
/// `bytes.len()` bytes at `source` are mapped here.
unsafe fn copy(source: *const u8, bytes: &mut [u8]) -> bool {
    // SAFETY: the caller promises that the source is mapped; the destination is a slice.
    unsafe { mem::copy_bytes::<mem::AtomicLoads>(bytes.as_mut_ptr(), source, bytes.len()) };
    true
}
