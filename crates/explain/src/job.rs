//! The PEs of a job, and the state of each of them, from its process and its status.

use crate::ranges::{self, Group};
use crate::snapshot::{PeSnapshot, ProcessState};
use crate::status::{self, AwaitedObject, Poll, Stage, SymmetricLocation, Wait};
use std::collections::{BTreeMap, HashMap};

/// The duration in nanoseconds from which on a wait is long. Shorter waits may end while the
/// snapshots are made, so nothing is concluded from them.
const LONG: u64 = 1_000_000_000;

/// Maximum number of groups of PEs that a description names.
const NAMED: usize = 3;

/// The PEs of a job, in order.
pub struct Job<'a> {
    pub pes: Vec<Pe<'a>>,
    holders: HashMap<SymmetricLocation, u32>,
}

/// Sentences, and the PEs that they describe completely.
#[derive(Clone, Default)]
pub struct Description {
    pub sentences: Vec<String>,
    pub described: Vec<u32>,
}

/// What PEs do.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Situation {
    /// The calls in which they wait, or the predicate of a sentence about one that does not wait.
    text: String,
    /// True if other threads of them compute.
    is_busy: bool,
}

/// The detail in which waits are described.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// The calls, and which collectives they are.
    Calls,
    /// Also the words with their values, and the locks.
    Objects,
    /// Also the PEs that hold the locks, are the targets of operations, or send the messages.
    Peers,
}

/// A PE, as far as it is known.
#[derive(Clone, Copy)]
pub struct Pe<'a> {
    pub state: ObservedState<'a>,
    pub snapshot: Option<&'a PeSnapshot>,
}

/// The state of a PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObservedState<'a> {
    /// It has no snapshot, so it is taken to be on another host.
    Elsewhere,
    /// Nothing is known: its host does not answer.
    HostSilent(&'a str),
    /// Its process has ended; how, if it is known.
    Ended(Option<&'a str>),
    /// It has called `exec` after `shmem_init`, and runs this program.
    RunsOtherProgram(&'a str),
    /// It has called finalize for the last time.
    Finalized,
    /// It has reached the exit of its program without finalize.
    Leaving,
    /// A signal has stopped it.
    Stopped,
    /// A debugger has stopped it.
    Traced,
    /// It waits for a disk.
    WaitsForDisk,
    /// It waits for a child of `vfork`.
    WaitsForChild,
    /// It has no status that can be read: it has not completed `shmem_init`, or its memory is not
    /// accessible.
    NoStatus,
    /// It has not called `shmem_init`.
    Uninitialized,
    /// It is in `shmem_init`.
    Starting,
    /// It sleeps outside the library.
    Sleeps,
    /// It uses CPU time and does not wait in the library.
    Computes,
    /// It repeats a call of the library.
    Polls(&'a Poll),
    /// It waits in the library.
    Waits(&'a [Wait]),
}

impl<'a> Job<'a> {
    pub fn new(n_pes: u32, snapshots: &'a [PeSnapshot]) -> Job<'a> {
        let mut of_pe = vec![None; n_pes as usize];
        for snapshot in snapshots {
            if let Some(entry) = of_pe.get_mut(snapshot.pe as usize) {
                *entry = Some(snapshot);
            }
        }

        let pes: Vec<Pe> = of_pe
            .into_iter()
            .map(|snapshot| Pe {
                state: ObservedState::of(snapshot),
                snapshot,
            })
            .collect();
        Job {
            holders: holders(&pes),
            pes,
        }
    }

    pub fn n_pes(&self) -> u32 {
        self.pes.len() as u32
    }

    /// Returns the PEs that `matches` accepts, in ascending order.
    pub fn all(&self, matches: impl Fn(&Pe<'a>) -> bool) -> Vec<u32> {
        (0..self.n_pes())
            .filter(|pe| matches(&self.pes[*pe as usize]))
            .collect()
    }

    /// Returns the PE that holds a lock, if it is known.
    pub fn holder(&self, lock: &SymmetricLocation) -> Option<u32> {
        self.holders.get(&key(lock)).copied()
    }

    /// Describes what PEs do, in one sentence for each group that does the same, such as `PE 3
    /// computes.` or `PE 3 has waited 31 s in shmem_quiet.` Only the first groups are named.
    pub fn describe(&self, pes: &[u32]) -> Description {
        let mut groups = ranges::group_by(pes, |pe| {
            let observed = &self.pes[pe as usize];
            Situation {
                text: match observed.state {
                    ObservedState::Waits(_) => self.waits(pe, Detail::Peers),
                    _ => self.activity(pe, 1),
                },
                is_busy: observed.is_busy(),
            }
        });
        let rest = groups.split_off(NAMED.min(groups.len()));

        let mut description = Description::default();
        for group in groups {
            description.sentences.push(self.sentence(&group));
            description.described.extend(group.pes);
        }

        let others: Vec<u32> = rest.into_iter().flat_map(|group| group.pes).collect();
        if !others.is_empty() {
            let predicate = if others.len() == 1 {
                "is in another situation"
            } else {
                "are in other situations"
            };
            let names = ranges::pes(&ranges::sorted(&others));
            description.sentences.push(format!("{names} {predicate}."));
        }
        description
    }

    /// Returns the sentence about PEs that do the same.
    fn sentence(&self, group: &Group<Situation>) -> String {
        let Group { key, pes } = group;
        let names = ranges::pes(pes);
        if !self.pes[pes[0] as usize].is_waiting() {
            return format!("{names} {}.", self.predicate(pes));
        }

        let is_one = pes.len() == 1;
        let have = if is_one { "has" } else { "have" };
        let lasted = self.durations(pes);
        let waits = &key.text;
        if !key.is_busy {
            return format!("{names} {have} waited {lasted} {waits}.");
        }
        let compute = if is_one {
            "computes in another thread"
        } else {
            "compute in other threads"
        };
        format!("{names} {compute}, and {have} waited {lasted} {waits}.")
    }

    /// Returns the predicate of a sentence about PEs in the same state.
    pub fn predicate(&self, pes: &[u32]) -> String {
        format!("{}{}", self.activity(pes[0], pes.len()), self.cpu_time(pes))
    }

    /// Returns the share of a CPU that PEs use, in parentheses; empty unless they compute.
    fn cpu_time(&self, pes: &[u32]) -> String {
        let percents: Vec<u64> = pes
            .iter()
            .filter_map(|pe| self.pes[*pe as usize].cpu_percent())
            .collect();
        let (Some(min), Some(max)) = (percents.iter().min(), percents.iter().max()) else {
            return String::new();
        };

        let each = if pes.len() == 1 { "" } else { " each" };
        if min == max {
            format!(" ({max} % of a CPU{each})")
        } else {
            format!(" ({min}-{max} % of a CPU{each})")
        }
    }
}

impl<'a> Pe<'a> {
    /// Returns the waits of the PE, each with the values of its words.
    pub fn waits(&self) -> impl Iterator<Item = (&'a Wait, &'a [Option<u64>])> + use<'a> {
        let waits = match self.state {
            ObservedState::Waits(waits) => waits,
            _ => &[],
        };

        // The snapshot has the values of all waits in one list. One that another process has sent
        // may lack some.
        let values = self.snapshot.map_or(&[][..], |snapshot| &snapshot.values);
        let mut first = 0;
        waits.iter().map(move |wait| {
            let nwords = status::words_of(wait).map_or(0, |words| words.words.len());
            let of_wait = values.get(first..first + nwords).unwrap_or_default();
            first += nwords;
            (wait, of_wait)
        })
    }

    /// Returns the share of a CPU that the PE uses, if it computes.
    fn cpu_percent(&self) -> Option<u64> {
        match (self.state, &self.snapshot?.process) {
            (ObservedState::Computes, ProcessState::Runs { cpu_ms, of_ms }) => {
                Some(100 * cpu_ms / (*of_ms).max(1))
            }
            _ => None,
        }
    }

    /// Returns the number of further waits, of which only the threads are known.
    pub fn further_waits(&self) -> usize {
        let status = self.snapshot.and_then(|snapshot| snapshot.status.as_ref());
        status.map_or(0, |status| status.further_waits.len())
    }

    /// Returns true if the main thread of a PE that does not wait has ended, but others go on.
    pub fn has_no_main_thread(&self) -> bool {
        use ObservedState::{Computes, Polls, Sleeps};
        matches!(self.state, Computes | Polls(_) | Sleeps)
            && self
                .snapshot
                .is_some_and(|snapshot| snapshot.has_no_main_thread)
    }

    /// Returns true if the PE waits in the library.
    pub fn is_waiting(&self) -> bool {
        matches!(self.state, ObservedState::Waits(_))
    }

    /// Returns true if threads of the PE compute while others wait in the library.
    pub fn is_busy(&self) -> bool {
        self.is_waiting()
            && self
                .snapshot
                .is_some_and(|snapshot| snapshot.other_threads.busy > 0)
    }

    /// Returns true if the wait has lasted long enough for conclusions.
    pub fn is_long(&self, wait: &Wait) -> bool {
        self.snapshot
            .is_some_and(|snapshot| snapshot.age(wait) >= LONG)
    }
}

impl<'a> ObservedState<'a> {
    /// Returns the state of a PE from its snapshot; there is none of a PE on another host.
    fn of(snapshot: Option<&'a PeSnapshot>) -> ObservedState<'a> {
        let Some(snapshot) = snapshot else {
            return ObservedState::Elsewhere;
        };
        let status = snapshot.status.as_ref();
        let stage = status.map(|status| status.stage);
        let waits = status.map_or(&[][..], |status| &status.waits);
        let is_at_exit = |wait: &Wait| wait.subject == AwaitedObject::Leaving;

        // What the kernel says comes first: a process that does not run cannot have changed its
        // status since.
        match (&snapshot.process, stage) {
            (ProcessState::HostSilent(host), _) => ObservedState::HostSilent(host),
            (ProcessState::Ended(how), _) => ObservedState::Ended(how.as_deref()),
            (ProcessState::RunsOtherProgram(name), _) => ObservedState::RunsOtherProgram(name),
            (ProcessState::Stopped, _) => ObservedState::Stopped,
            (ProcessState::Traced, _) => ObservedState::Traced,
            (ProcessState::WaitsForDisk, _) => ObservedState::WaitsForDisk,
            (ProcessState::WaitsForChild, _) => ObservedState::WaitsForChild,
            (_, Some(Stage::Finalized)) => ObservedState::Finalized,
            _ if waits.iter().any(is_at_exit) => ObservedState::Leaving,
            _ if !waits.is_empty() => ObservedState::Waits(waits),
            (_, Some(Stage::Starting)) => ObservedState::Starting,
            (_, Some(Stage::Uninitialized)) => ObservedState::Uninitialized,
            (_, None) => ObservedState::NoStatus,
            (ProcessState::Runs { .. }, _) => {
                match status.and_then(|status| status.poll.as_ref()) {
                    Some(poll) => ObservedState::Polls(poll),
                    None => ObservedState::Computes,
                }
            }
            (ProcessState::Sleeps, _) => ObservedState::Sleeps,
        }
    }

    /// Returns true if the PE has left the job.
    pub fn is_gone(&self) -> bool {
        matches!(
            self,
            ObservedState::Ended(_)
                | ObservedState::RunsOtherProgram(_)
                | ObservedState::Finalized
                | ObservedState::Leaving
        )
    }

    /// Returns true if the PE cannot serve operations of other PEs, as far as is known.
    pub fn is_hindered(&self) -> bool {
        use ObservedState::{
            Elsewhere, Ended, HostSilent, RunsOtherProgram, Stopped, Traced, WaitsForDisk,
        };
        matches!(
            self,
            Elsewhere
                | HostSilent(_)
                | Ended(_)
                | RunsOtherProgram(_)
                | Stopped
                | Traced
                | WaitsForDisk
        )
    }
}

/// Returns the holder of each lock. It is the PE whose status lists the lock. Otherwise it is the
/// PE behind which another one waits in the queue, if it does not wait for the lock itself.
fn holders(pes: &[Pe]) -> HashMap<SymmetricLocation, u32> {
    let mut holders = HashMap::new();
    // By PE and lock: the PE before this one in the queue, if it is known.
    let mut waiters = BTreeMap::new();
    for (pe, observed) in (0..).zip(pes) {
        if let Some(status) = observed
            .snapshot
            .and_then(|snapshot| snapshot.status.as_ref())
        {
            holders.extend(status.held_locks.iter().map(|lock| (key(lock), pe)));
        }

        for (wait, _) in observed.waits() {
            if let AwaitedObject::Lock { lock, behind } = &wait.subject {
                // For a thread that waits for another thread of its PE, `behind` is not known.
                let known: &mut Option<u32> = waiters.entry((pe, key(lock))).or_default();
                *known = known.or(*behind);
            }
        }
    }

    for ((pe, lock), behind) in &waiters {
        let Some(behind) = *behind else { continue };
        let waits_itself = behind != *pe && waiters.contains_key(&(behind, lock.clone()));
        if !waits_itself {
            holders.entry(lock.clone()).or_insert(behind);
        }
    }
    holders
}

/// Returns the location of a lock without the block of the heap, which not every status has.
fn key(lock: &SymmetricLocation) -> SymmetricLocation {
    match lock {
        SymmetricLocation::Heap { offset, .. } => SymmetricLocation::Heap {
            offset: *offset,
            block: None,
        },
        other => other.clone(),
    }
}
