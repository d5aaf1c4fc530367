//! Counts the operations of this PE by target, and the time that it spends in calls that wait, if
//! `SHMEM_STATS` is set.

use super::event::{AccessKind, Action, CallKind, Event};
use rushmem_pe::call::thread;
use rushmem_pe::job::handle::ContextHandle;
use rushmem_pe::process::time::nanoseconds;
use rushmem_system::lock::{read, write};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{OnceLock, RwLock};

impl AccessKind {
    /// The kinds that the counter of writes of Sandia OpenSHMEM counts: those that return nothing.
    const WRITES: [AccessKind; 7] = [
        AccessKind::Put,
        AccessKind::PutNbi,
        AccessKind::P,
        AccessKind::PutStrided,
        AccessKind::PutSignal,
        AccessKind::PutSignalNbi,
        AccessKind::Amo,
    ];
    /// The kinds that the counter of reads of Sandia OpenSHMEM counts: those that return data.
    const READS: [AccessKind; 6] = [
        AccessKind::Get,
        AccessKind::GetNbi,
        AccessKind::G,
        AccessKind::GetStrided,
        AccessKind::AmoFetch,
        AccessKind::AmoFetchNbi,
    ];
}

/// A number of events, and the sum of their bytes or nanoseconds. Relaxed: a reader may see an
/// event in one of them before it is in the other.
#[derive(Default)]
pub struct Tally {
    n: AtomicU64,
    sum: AtomicU64,
}

impl Tally {
    #[inline(always)]
    fn add(&self, amount: u64, is_alone: bool) {
        thread::add(&self.n, 1, is_alone);
        thread::add(&self.sum, amount, is_alone);
    }

    /// Returns the number of events and the sum.
    pub fn read(&self) -> (u64, u64) {
        (self.n.load(Relaxed), self.sum.load(Relaxed))
    }
}

/// The operations issued on a context.
#[derive(Default)]
pub struct ContextCounters {
    /// The accesses by kind: to PEs on this node, and to others.
    pub accesses: [[Tally; 2]; AccessKind::NAMES.len()],
    /// The number of writes that are known to be complete. Relaxed: the numbers publish nothing.
    completed_writes: AtomicU64,
    /// The number of reads that are known to be complete.
    completed_reads: AtomicU64,
}

/// The operations on a context, as Sandia OpenSHMEM divides them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperationCounts {
    /// The number of operations that return nothing.
    pub writes: u64,
    /// The number of operations that return data.
    pub reads: u64,
}

impl ContextCounters {
    /// Returns the numbers of operations that were issued so far.
    pub fn issued(&self) -> OperationCounts {
        OperationCounts {
            writes: self.count(&AccessKind::WRITES),
            reads: self.count(&AccessKind::READS),
        }
    }

    /// Returns the number of accesses of these kinds, on the node and off it.
    fn count(&self, kinds: &[AccessKind]) -> u64 {
        let mut n = 0;
        for kind in kinds {
            for tally in &self.accesses[*kind as usize] {
                n += tally.n.load(Relaxed);
            }
        }
        n
    }

    /// Returns the numbers of operations that are known to be complete.
    pub fn completed(&self) -> OperationCounts {
        OperationCounts {
            writes: self.completed_writes.load(Relaxed),
            reads: self.completed_reads.load(Relaxed),
        }
    }

    /// Records that operations are complete, which were the first `issued` ones.
    pub fn complete(&self, issued: OperationCounts) {
        // The maximum: another thread may have found later operations complete.
        self.completed_writes.fetch_max(issued.writes, Relaxed);
        self.completed_reads.fetch_max(issued.reads, Relaxed);
    }
}

/// The operations to one PE.
pub struct PeerCounters {
    /// True if the PE is on the node of this one.
    pub is_on_node: bool,
    /// The operations, with their bytes.
    pub traffic: Tally,
}

/// The counters of this PE.
pub struct Counters {
    /// The operations to each PE.
    pub peers: Box<[PeerCounters]>,
    /// The calls of each kind, with their durations.
    pub calls: [Tally; CallKind::NAMES.len()],
    default_context: ContextCounters,
    /// The counters of other contexts, by index. They are never freed.
    contexts: RwLock<BTreeMap<usize, &'static ContextCounters>>,
}

static COUNTERS: OnceLock<Counters> = OnceLock::new();

/// Returns the counters, if there are any.
#[inline(always)]
pub fn get() -> Option<&'static Counters> {
    COUNTERS.get()
}

/// Creates the counters, for the life of the process. `on_node` has an entry for each PE, which
/// says whether it is on this node.
pub fn start(on_node: impl Iterator<Item = bool>) {
    COUNTERS.get_or_init(|| Counters {
        peers: on_node
            .map(|is_on_node| PeerCounters {
                is_on_node,
                traffic: Tally::default(),
            })
            .collect(),
        calls: Default::default(),
        default_context: ContextCounters::default(),
        contexts: RwLock::default(),
    });
}

impl Counters {
    /// Counts an access. If there is no such PE, the access itself ends the job.
    fn count_access(&self, kind: AccessKind, event: &Event) {
        let Some(peer) = self.peers.get(event.pe as u32 as usize) else {
            return;
        };
        let nbytes = event.remote.total() as u64;
        let is_alone = thread::is_alone();

        peer.traffic.add(nbytes, is_alone);
        let [on_node, off_node] = &self.context(event.ctx).accesses[kind as usize];
        let tally = if peer.is_on_node { on_node } else { off_node };
        tally.add(nbytes, is_alone);
    }

    /// Returns the counters of a context. A context that gets the index of a destroyed one adds to
    /// its counters.
    pub fn context(&self, ctx: ContextHandle) -> &ContextCounters {
        let index = ctx.index();
        if index == 0 {
            return &self.default_context;
        }

        // A statement of its own: the lock for reading is released at its end, before the one for
        // writing is taken.
        let known = read(&self.contexts).get(&index).copied();
        if let Some(counters) = known {
            return counters;
        }
        write(&self.contexts)
            .entry(index)
            .or_insert_with(|| Box::leak(Box::default()))
    }

    /// Returns the counters of all contexts, by index, the default context first.
    pub fn contexts(&self) -> Vec<(usize, &ContextCounters)> {
        let mut all = vec![(0, &self.default_context)];
        for (index, counters) in read(&self.contexts).iter() {
            all.push((*index, *counters));
        }
        all
    }
}

/// What the counters keep of an event between its begin and its end.
#[derive(Clone, Copy, Default)]
pub(super) struct Begun {
    /// The time of the begin in nanoseconds, if the duration is counted.
    since: u64,
    /// The operations that were issued on its context before a quiet.
    issued: OperationCounts,
}

/// Returns the kind of call to which the duration of an event is added; `None` if the duration is
/// not counted.
fn timed(action: Action) -> Option<CallKind> {
    Some(match action {
        Action::Collective(_) | Action::CarriedOut(_) => CallKind::Collective,
        Action::Wait => CallKind::Wait,
        Action::Lock => CallKind::Lock,
        Action::Fence => CallKind::Fence,
        Action::Quiet { is_part: false } | Action::QuietOfPes => CallKind::Quiet,
        Action::Flush | Action::FlushOfPes | Action::LocalComplete => CallKind::Flush,
        _ => return None,
    })
}

/// Counts an event at its begin.
pub(super) fn begin(event: &Event) -> Begun {
    let mut begun = Begun::default();
    let Some(counters) = get() else {
        return begun;
    };

    match event.action {
        Action::Access(access) => counters.count_access(access.kind, event),
        Action::Move { .. } => counters.count_access(AccessKind::Collective, event),
        Action::Quiet { .. } if event.ctx != ContextHandle::INVALID => {
            // Before the quiet: it completes these, and not what other threads issue meanwhile.
            begun.issued = counters.context(event.ctx).issued();
            begun.since = nanoseconds();
        }
        action if timed(action).is_some() => begun.since = nanoseconds(),
        _ => {}
    }
    begun
}

/// Adds the duration of an event at its end.
pub(super) fn end(event: &Event, begun: Begun) {
    let Some(counters) = get() else { return };

    if let Some(kind) = timed(event.action) {
        let nanoseconds = nanoseconds() - begun.since;
        counters.calls[kind as usize].add(nanoseconds, thread::is_alone());
    }
    if matches!(event.action, Action::Quiet { .. }) && event.ctx != ContextHandle::INVALID {
        counters.context(event.ctx).complete(begun.issued);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_access_is_a_write_or_a_read_but_those_of_collectives() {
        let mut kinds: Vec<usize> = AccessKind::WRITES.map(|kind| kind as usize).to_vec();
        kinds.extend(AccessKind::READS.map(|kind| kind as usize));
        kinds.push(AccessKind::Collective as usize);
        kinds.sort_unstable();
        assert_eq!(kinds, (0..AccessKind::NAMES.len()).collect::<Vec<_>>());
    }

    #[test]
    fn a_context_is_complete_up_to_its_last_quiet() {
        let context = ContextCounters::default();
        context.accesses[AccessKind::PutNbi as usize][0].add(8, true);
        context.accesses[AccessKind::G as usize][1].add(8, true);
        let issued = context.issued();
        context.accesses[AccessKind::P as usize][1].add(4, true);
        context.complete(issued);

        let counts = |writes, reads| OperationCounts { writes, reads };
        assert_eq!(context.issued(), counts(2, 1));
        assert_eq!(context.completed(), counts(1, 1));
    }
}
