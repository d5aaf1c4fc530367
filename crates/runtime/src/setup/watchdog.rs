//! The watchdog of a node (`SHMEM_WATCHDOG`): a thread of its first PE that looks at the statuses
//! of the node's PEs, and explains once on standard error why one of them has waited for too long.
//!
//! It reads shared memory and /proc alone, so it needs no help of a PE that hangs, nor the network.
//! For the same reason it does not know the PEs of other nodes, and concludes nothing on them.

#![allow(unsafe_code)]

use crate::base::job::Job;
use crate::base::time::nanoseconds;
use crate::memory::statics;
use crate::sync::flags;
use rushmem_bootstrap::NodeMap;
use rushmem_bootstrap::process_state::{self, Look};
use rushmem_explain::report::{PeReport, ProcessState};
use rushmem_explain::status::{PLACE_BYTES, Place, Status, Subject, Word};
use rushmem_explain::writes::{self, LastWrite, RING_BYTES};
use rushmem_explain::{explain, place};
use rushmem_heap::NodeMemory;
use rushmem_transport::kit::host_name;
use rushmem_transport::mem;
use rushmem_transport::thread::spawn_service;
use std::io::Write;
use std::time::Duration;

/// Between two looks at the statuses.
const PAUSE: Duration = Duration::from_secs(1);
/// Between two looks at the processes, which show how much CPU time they use.
const BETWEEN_LOOKS: Duration = Duration::from_millis(200);

/// Starts the watchdog if there is to be one and this PE is the first of its machine.
pub(super) fn start(job: &'static Job) {
    let session = job.session();
    let Some(limit) = job.settings.watchdog.filter(|_| session.local_id() == 0) else { return };
    let machines = session.nodes().clone();
    let pid_namespace = process_state::pid_namespace();
    let watchdog = Watchdog { memory: job.memory, machines, me: job.me.0, pid_namespace, limit };
    // It is of no use to end a job because there are too many threads.
    let _ = spawn_service("rushmem-watchdog", move || watchdog.run());
}

struct Watchdog {
    memory: &'static NodeMemory,
    machines: NodeMap,
    me: u32,
    pid_namespace: Option<u64>,
    limit: Duration,
}

/// A wait, by the PE, the thread and the time when it began.
type WaitId = (u32, u32, u64);

impl Watchdog {
    fn run(&self) {
        let mut explained = None;
        loop {
            std::thread::sleep(PAUSE);
            let waits = self.long_waits();
            if explained.is_some_and(|explained| waits.contains(&explained)) {
                continue;
            }
            explained = waits.first().copied();
            if explained.is_some() {
                self.print();
            }
        }
    }

    /// The PEs of this machine.
    fn pes(&self) -> impl Iterator<Item = u32> + '_ {
        self.machines.members(self.machines.node_of(self.me))
    }

    /// The waits that have lasted longer than the limit, the longest first.
    fn long_waits(&self) -> Vec<WaitId> {
        let (now, limit) = (nanoseconds(), self.limit.as_nanos() as u64);
        let mut waits: Vec<WaitId> = Vec::new();
        for pe in self.pes() {
            let status = self.status(pe);
            let of_pe = status.iter().flat_map(|status| &status.waits);
            let long = of_pe.filter(|wait| now.saturating_sub(wait.since) > limit);
            waits.extend(long.map(|wait| (pe, wait.thread, wait.since)));
        }
        waits.sort_by_key(|(_, _, since)| *since);
        waits
    }

    fn status(&self, pe: u32) -> Option<Status> {
        let at = self.place(pe)?;
        // SAFETY: mapped, as was just found.
        place::read(|nbytes| Some(unsafe { copy(at, nbytes) }))
    }

    fn writes(&self, pe: u32) -> Option<Vec<LastWrite>> {
        let at = self.place(pe)?.wrapping_add(PLACE_BYTES);
        // SAFETY: mapped, as was just found.
        writes::read(|| Some(unsafe { copy(at, RING_BYTES) }))
    }

    /// Where the status of a PE of this machine is mapped here, and after it the last writes.
    fn place(&self, pe: u32) -> Option<*const u8> {
        let in_slice = self.memory.internal().addr() - self.memory.heap().addr();
        let slice = u64::from(self.machines.local_index(pe)) * self.memory.layout().stride() as u64;
        let at = slice + in_slice as u64 + flags::area().areas().status() as u64;
        self.memory.at(at, PLACE_BYTES + RING_BYTES).map(<*mut u8>::cast_const)
    }

    fn print(&self) {
        let statuses = || self.pes().map(|pe| self.status(pe)).collect::<Vec<_>>();
        let before: Vec<Option<Look>> =
            statuses().iter().map(|status| self.look(status.as_ref())).collect();
        std::thread::sleep(BETWEEN_LOOKS);
        let found = self.pes().zip(statuses()).zip(before);
        let reports: Vec<PeReport> =
            found.map(|((pe, status), before)| self.report(pe, status, before)).collect();
        let seconds = self.limit.as_secs_f64();
        let others = match self.machines.n_nodes() {
            1 => String::new(),
            _ => format!(
                "; this is the part of {}, and other hosts print theirs if a call waits there",
                host_name()
            ),
        };
        // Without a stderr there is no place for the explanation, and the job goes on.
        let _ = writeln!(
            std::io::stderr(),
            "SHMEM_WATCHDOG: a call has waited for more than {seconds} s{others}\n{}",
            explain(self.machines.n_pes(), &reports).trim_end()
        );
    }

    /// Whether /proc shows the process of a PE here under the number in its status.
    fn shows_process(&self, status: &Status) -> bool {
        self.pid_namespace == Some(status.pid_namespace)
    }

    fn look(&self, status: Option<&Status>) -> Option<Look> {
        let status = status.filter(|status| self.shows_process(status))?;
        process_state::look(status.pid, Some(status))
    }

    fn report(&self, pe: u32, status: Option<Status>, before: Option<Look>) -> PeReport {
        let read_at = nanoseconds();
        let now = self.look(status.as_ref());
        let (before, now) = (before.as_ref(), now.as_ref());
        let pid = status.as_ref().map_or(0, |status| status.pid);
        let other_threads = process_state::other_threads(pid, status.as_ref(), before, now);
        let process = match &status {
            Some(status) if self.shows_process(status) => process_state::between(before, now),
            // Nothing is known of the process: it is in another PID namespace, or the PE has not
            // come to the point where it says which one it is.
            _ => ProcessState::Sleeps,
        };
        let values = status.as_ref().map_or_else(Vec::new, |status| self.values(pe, status));
        let (symbols, writes) = (Vec::new(), self.writes(pe));
        PeReport { pe, process, status, read_at, values, symbols, writes, other_threads }
    }

    /// The values of the words for which a PE waits.
    fn values(&self, pe: u32, status: &Status) -> Vec<Option<u64>> {
        let words = status.waits.iter().filter_map(|wait| match &wait.subject {
            Subject::Words(words) => Some(&words.words),
            _ => None,
        });
        words.flatten().map(|word| self.value(pe, word)).collect()
    }

    fn value(&self, pe: u32, word: &Word) -> Option<u64> {
        let nbytes = usize::from(word.nbytes);
        let at = match word.place {
            Place::Heap { .. } => self.memory.at(word.in_memfd?, nbytes)?.cast_const(),
            Place::Static { address } => {
                let own = statics::own();
                let here = own.load_address().wrapping_add(usize::try_from(address).ok()?);
                let local = self.machines.local_index(pe);
                let delta = self.memory.statics_delta(local)?;
                let is_static = own.hold(here.wrapping_sub(own.start()), nbytes);
                let here = std::ptr::with_exposed_provenance::<u8>(here);
                is_static.then(|| here.wrapping_offset(delta))?
            }
            Place::Other { .. } => return None,
        };
        let mut bytes = [0; 8];
        // SAFETY: mapped, as was just found.
        bytes.get_mut(..nbytes)?.copy_from_slice(&unsafe { copy(at, nbytes) });
        Some(u64::from_le_bytes(bytes))
    }
}

/// A copy of bytes of symmetric memory.
///
/// # Safety
/// They are mapped here.
unsafe fn copy(at: *const u8, nbytes: usize) -> Vec<u8> {
    let mut bytes = vec![0; nbytes];
    // SAFETY: mapped by contract, and as many private bytes.
    unsafe { mem::copy_bytes::<mem::AtomicLoads>(bytes.as_mut_ptr(), at, nbytes) };
    bytes
}
