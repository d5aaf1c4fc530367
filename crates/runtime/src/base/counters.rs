//! What this PE sends to whom, and how long it stays in calls that wait, while `SHMEM_STATS` asks
//! for it.
//!
//! Without counters nothing is allocated. `base::observe` counts what it sees.

use crate::base::handle::ContextHandle;
use rushmem_race_interface::AccessOperation;
use rushmem_trace::layout::Kind;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{OnceLock, PoisonError, RwLock};
use std::time::Duration;

macro_rules! kinds {
    ($(#[$doc:meta])* $name:ident: $($kind:ident = $text:literal),* $(,)?) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $name { $($kind),* }

        impl $name {
            /// Their names in the output, in the order of the variants.
            pub(crate) const NAMES: &[&str] = &[$($text),*];
        }
    };
}

kinds! {
    /// Operations on memory of a PE.
    AccessKind:
    Put = "put",
    PutNbi = "put_nbi",
    P = "p",
    PutStrided = "put_strided",
    PutSignal = "put_signal",
    PutSignalNbi = "put_signal_nbi",
    Get = "get",
    GetNbi = "get_nbi",
    G = "g",
    GetStrided = "get_strided",
    Amo = "amo",
    AmoFetch = "amo_fetch",
    AmoFetchNbi = "amo_fetch_nbi",
    // What plans of collectives move.
    Collective = "collective",
}

kinds! {
    /// Calls whose time counts.
    CallKind:
    Collective = "collective",
    Wait = "wait",
    Lock = "lock",
    Fence = "fence",
    Quiet = "quiet",
}

impl AccessKind {
    /// As what a trace has it, and whether a quiet completes it.
    pub(crate) fn traced(self) -> (Kind, bool) {
        use AccessKind::*;
        let kind = match self {
            Put | PutNbi | P | PutStrided | PutSignal | PutSignalNbi => Kind::Put,
            Get | GetNbi | G | GetStrided => Kind::Get,
            Amo | AmoFetch | AmoFetchNbi => Kind::Amo,
            Collective => Kind::Move,
        };
        (kind, matches!(self, PutNbi | PutSignalNbi | GetNbi | AmoFetchNbi))
    }

    /// As what the race detector has it; what plans of collectives move is not for it.
    pub(crate) fn checked(self) -> Option<AccessOperation> {
        use AccessKind::*;
        Some(match self {
            Put | P | PutStrided | PutSignal => AccessOperation::Put,
            PutNbi | PutSignalNbi => AccessOperation::PutNbi,
            Get | G | GetStrided => AccessOperation::Get,
            GetNbi => AccessOperation::GetNbi,
            Amo => AccessOperation::Update,
            AmoFetch => AccessOperation::Fetch,
            AmoFetchNbi => AccessOperation::FetchNbi,
            Collective => return None,
        })
    }

    /// Those that write there, and those that bring something back: the two sides of SOS's
    /// counters.
    const WRITES: [AccessKind; 7] = [
        AccessKind::Put,
        AccessKind::PutNbi,
        AccessKind::P,
        AccessKind::PutStrided,
        AccessKind::PutSignal,
        AccessKind::PutSignalNbi,
        AccessKind::Amo,
    ];
    const READS: [AccessKind; 6] = [
        AccessKind::Get,
        AccessKind::GetNbi,
        AccessKind::G,
        AccessKind::GetStrided,
        AccessKind::AmoFetch,
        AccessKind::AmoFetchNbi,
    ];
}

impl CallKind {
    /// As what a trace has it.
    pub(crate) fn traced(self) -> Kind {
        match self {
            CallKind::Collective => Kind::Collective,
            CallKind::Wait => Kind::Wait,
            CallKind::Lock => Kind::Lock,
            CallKind::Fence => Kind::Fence,
            CallKind::Quiet => Kind::Quiet,
        }
    }
}

/// A number of events, and the sum of their bytes or nanoseconds.
#[derive(Default)]
pub(crate) struct Tally {
    n: AtomicU64,
    sum: AtomicU64,
}

impl Tally {
    fn add(&self, amount: u64) {
        self.n.fetch_add(1, Relaxed);
        self.sum.fetch_add(amount, Relaxed);
    }

    /// The number and the sum.
    pub(crate) fn read(&self) -> (u64, u64) {
        (self.n.load(Relaxed), self.sum.load(Relaxed))
    }
}

/// What was issued on a context.
#[derive(Default)]
pub(crate) struct ContextCounters {
    /// By kind: on the node, and off it.
    pub(crate) accesses: [[Tally; 2]; AccessKind::NAMES.len()],
    /// The writes and the reads that the last quiet found issued.
    completed: [AtomicU64; 2],
}

impl ContextCounters {
    /// Writes and reads issued so far.
    pub(crate) fn issued(&self) -> [u64; 2] {
        let of = |kinds: &[AccessKind]| {
            let each = |kind: &AccessKind| &self.accesses[*kind as usize];
            kinds.iter().flat_map(each).map(|tally| tally.n.load(Relaxed)).sum()
        };
        [of(&AccessKind::WRITES), of(&AccessKind::READS)]
    }

    /// Writes and reads known to be complete.
    pub(crate) fn completed(&self) -> [u64; 2] {
        self.completed.each_ref().map(|number| number.load(Relaxed))
    }

    /// Records that what was issued up to a point is complete.
    pub(crate) fn complete(&self, issued: [u64; 2]) {
        for (completed, issued) in self.completed.iter().zip(issued) {
            completed.fetch_max(issued, Relaxed);
        }
    }
}

/// A PE to which this one sends.
pub(crate) struct PeerCounters {
    pub(crate) on_node: bool,
    pub(crate) traffic: Tally,
}

/// The counters of this PE.
pub(crate) struct Counters {
    pub(crate) peers: Box<[PeerCounters]>,
    pub(crate) calls: [Tally; CallKind::NAMES.len()],
    default_context: ContextCounters,
    /// Of other contexts, by place. They are never freed.
    contexts: RwLock<BTreeMap<usize, &'static ContextCounters>>,
}

static COUNTERS: OnceLock<Counters> = OnceLock::new();

/// The counters, if there are any.
pub(crate) fn get() -> Option<&'static Counters> {
    COUNTERS.get()
}

/// Counts from now on, for the life of the process; for each PE of the job whether it is on this
/// node.
pub(crate) fn start(on_node: impl Iterator<Item = bool>) {
    COUNTERS.get_or_init(|| Counters {
        peers: on_node.map(|on_node| PeerCounters { on_node, traffic: Tally::default() }).collect(),
        calls: Default::default(),
        default_context: ContextCounters::default(),
        contexts: RwLock::default(),
    });
}

impl Counters {
    /// Counts an access to `pe`. If there is no such PE the access itself reports that.
    pub(crate) fn access(&self, kind: AccessKind, ctx: ContextHandle, pe: usize, nbytes: usize) {
        let (Some(peer), nbytes) = (self.peers.get(pe), nbytes as u64) else { return };
        peer.traffic.add(nbytes);
        self.context(ctx).accesses[kind as usize][usize::from(!peer.on_node)].add(nbytes);
    }

    /// Counts a call that lasted so long.
    pub(crate) fn stayed(&self, kind: CallKind, time: Duration) {
        self.calls[kind as usize].add(time.as_nanos() as u64);
    }

    /// The counters of a context. Contexts that have a place one after another share them.
    pub(crate) fn context(&self, ctx: ContextHandle) -> &ContextCounters {
        let place = ctx.place();
        if place == 0 {
            return &self.default_context;
        }
        let known =
            self.contexts.read().unwrap_or_else(PoisonError::into_inner).get(&place).copied();
        known.unwrap_or_else(|| {
            let mut contexts = self.contexts.write().unwrap_or_else(PoisonError::into_inner);
            contexts.entry(place).or_insert_with(|| Box::leak(Box::default()))
        })
    }

    /// All contexts on which something was issued, by place, the default one first.
    pub(crate) fn contexts(&self) -> Vec<(usize, &ContextCounters)> {
        let others = self.contexts.read().unwrap_or_else(PoisonError::into_inner);
        let others = others.iter().map(|(place, counters)| (*place, *counters));
        [(0, &self.default_context)].into_iter().chain(others).collect()
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
        context.accesses[AccessKind::PutNbi as usize][0].add(8);
        context.accesses[AccessKind::G as usize][1].add(8);
        let issued = context.issued();
        context.accesses[AccessKind::P as usize][1].add(4);
        context.complete(issued);
        assert_eq!((context.issued(), context.completed()), ([2, 1], [1, 1]));
    }
}
