//! The status of a PE, as it writes it into the shared memory of its node.

use rushmem_wire::STATUS;
use serde::{Deserialize, Serialize};

/// Bytes of the slot of a status in the internal area of a PE, with the header of the slot.
pub const STATUS_BYTES: usize = 4096;

/// Maximum number of words, members, peers or locks that a status lists, so that it fits its slot.
pub const MAX_LISTED: usize = 64;

/// Maximum number of threads whose waits a status only counts.
pub const MAX_THREADS: usize = 512;

/// The activity of a PE in the library.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The process of the PE, in the PID namespace of that process.
    pub pid: u32,
    /// That namespace, by its inode number; 0 if it is not known.
    pub pid_namespace: u64,
    /// The stage that the PE has reached.
    pub stage: Stage,
    /// The waits of its threads that last long; empty while it computes.
    pub waits: Vec<Wait>,
    /// The threads of further such waits, for which there is no room, at most [`MAX_THREADS`].
    pub further_waits: Vec<u32>,
    /// The locks that it holds, at most [`MAX_LISTED`].
    pub held_locks: Vec<SymmetricLocation>,
    /// The operations in flight over a network; `None` if they are not known.
    pub in_flight: Option<InFlight>,
    /// While it waits for the other PEs in finalize.
    pub finalizing: Option<Finalizing>,
}

/// The state of a PE that is in finalize, and so enters no other collective before all PEs are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finalizing {
    /// The number of collectives that it has entered on each team, by the
    /// [number](Collective::number) of that; at most [`MAX_LISTED`].
    pub entered: Vec<(u64, u64)>,
}

/// Operations of a PE over a network that are not known to be complete.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InFlight {
    /// The number of collectives that are known.
    pub n: u64,
    /// PEs that they target, at most [`MAX_LISTED`].
    pub targets: Vec<u32>,
    /// They may target other PEs too.
    pub more: bool,
}

/// The stage that a PE has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Stage {
    /// In `shmem_init`, after it has mapped the memory of its node.
    Starting,
    /// Between init and finalize.
    Initialized,
    /// After its last finalize.
    Finalized,
    /// Before `shmem_init`, which the launcher knows. No PE writes it.
    Uninitialized,
}

/// A wait of a thread that lasts long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// The thread, as the kernel numbers it.
    pub thread: u32,
    /// The function as the user called it, such as `shmem_long_wait_until`.
    pub call: String,
    /// The location of the call in the program, such as `ring.c:12 in exchange`, once that is
    /// known.
    pub called_at: Option<String>,
    /// The location of the call that allocated the block of its first word, or of its lock, once
    /// that is known.
    pub allocated_at: Option<String>,
    /// When the wait began: nanoseconds of `CLOCK_MONOTONIC` of the host.
    pub since: u64,
    /// The subject of the wait.
    pub subject: Subject,
}

/// The subject of a wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Subject {
    /// Words of this PE that other PEs write (OpenSHMEM 1.6, §9.11).
    Words(Words),
    /// The other members, in a collective.
    Collective(Collective),
    /// A lock.
    Lock {
        /// The location of the lock.
        lock: SymmetricLocation,
        /// The PE before this one in the queue, if it is known. It holds the lock or waits too.
        behind: Option<u32>,
    },
    /// The completion of operations of this PE over a network.
    Operations {
        /// The PEs with unfinished operations, at most [`MAX_LISTED`].
        peers: Vec<u32>,
    },
    /// A message of the library from one PE: an agreement about a team.
    Message {
        /// The PE.
        from: u32,
    },
    /// All other PEs, in finalize.
    Exit,
    /// The synchronization of finalize, at the exit of a program that has not called finalize.
    Leaving,
}

impl Subject {
    /// Returns the offset of the block of the heap in which the first word is, or the lock.
    pub fn block(&self) -> Option<u64> {
        match self {
            Subject::Words(words) => words.words.first()?.location.block(),
            Subject::Lock { lock, .. } => lock.block(),
            _ => None,
        }
    }
}

/// Words of this PE that other PEs write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Words {
    /// The words, at most [`MAX_LISTED`].
    pub words: Vec<Word>,
    /// The number of more.
    pub more: u64,
    /// True if all must compare, or one is enough.
    pub all: bool,
    /// The comparison: one of `==`, `!=`, `>`, `>=`, `<`, `<=`.
    pub comparison: String,
}

/// A word that is waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Word {
    /// The location of the word.
    pub location: SymmetricLocation,
    /// Its offset in the memfd of the node, if it is there.
    pub in_memfd: Option<u64>,
    /// Its size: 1, 2, 4 or 8 bytes.
    pub nbytes: u8,
    /// True if its type is signed.
    pub signed: bool,
    /// The value with which it is compared: the low bytes.
    pub wanted: u64,
}

/// A location in symmetric memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SymmetricLocation {
    /// In the heap, which is the same on all PEs.
    Heap {
        /// Bytes from the start of the heap.
        offset: u64,
        /// The block around it, if it is known: its offset and size.
        block: Option<(u64, u64)>,
    },
    /// A static variable.
    Static {
        /// Its address in the executable file, as `nm` prints it.
        address: u64,
    },
    /// Elsewhere.
    Other {
        /// Its address in the process.
        address: u64,
    },
}

impl SymmetricLocation {
    /// Returns the offset of the block of the heap around it, if it is known.
    pub fn block(&self) -> Option<u64> {
        match self {
            SymmetricLocation::Heap { block: Some((start, _)), .. } => Some(*start),
            _ => None,
        }
    }
}

/// A collective that a PE has entered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collective {
    /// The name of the team, such as `SHMEM_TEAM_WORLD`, or of the active set.
    pub team: String,
    /// True if it is an active set.
    pub is_active_set: bool,
    /// A number that members of the team have in common and other teams do not.
    pub number: u64,
    /// The members.
    pub members: Members,
    /// Which collective of this PE on the team it is, counted from 1.
    pub nth: u64,
    /// The world PE for which this PE waits at the moment, if it is one.
    pub awaited: Option<u32>,
}

/// The world PEs of a team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Members {
    /// `start + i * stride` for `i` below `n`.
    Strided {
        /// The first.
        start: u32,
        /// The distance, negative where the order is reversed.
        stride: i32,
        /// The number of them.
        n: u32,
    },
    /// In this order, at most [`MAX_LISTED`].
    Listed {
        /// The first ones.
        pes: Vec<u32>,
        /// The number of more.
        more: u32,
    },
}

impl Status {
    /// Returns the status of a PE that waits for nothing.
    pub fn new(pid: u32, stage: Stage) -> Status {
        Status {
            pid,
            pid_namespace: 0,
            stage,
            waits: Vec::new(),
            further_waits: Vec::new(),
            held_locks: Vec::new(),
            in_flight: None,
            finalizing: None,
        }
    }

    /// Returns the threads that wait.
    pub fn waiting_threads(&self) -> impl Iterator<Item = u32> {
        self.waits.iter().map(|wait| wait.thread).chain(self.further_waits.iter().copied())
    }

    /// Returns the bytes of the status; they fit its slot if the limits of the lists were kept.
    pub fn encode(&self) -> Vec<u8> {
        rushmem_wire::encode(STATUS, self)
    }

    /// Returns the status in these bytes.
    ///
    /// # Errors
    /// If another version has written it, or it is damaged.
    pub fn decode(bytes: &[u8]) -> Result<Status, rushmem_wire::Error> {
        rushmem_wire::decode(STATUS, bytes)
    }
}

/// Returns the words of a wait, if it waits for words.
pub(crate) fn words_of(wait: &Wait) -> Option<&Words> {
    match &wait.subject {
        Subject::Words(words) => Some(words),
        _ => None,
    }
}

/// Returns whether the value of a word compares as it is waited for; `None` if the comparison is
/// unknown.
fn compares(word: &Word, comparison: &str, value: u64) -> Option<bool> {
    let ordering = if word.signed {
        signed(word, value).cmp(&signed(word, word.wanted))
    } else {
        unsigned(word, value).cmp(&unsigned(word, word.wanted))
    };
    match comparison {
        "==" => Some(ordering.is_eq()),
        "!=" => Some(ordering.is_ne()),
        ">" => Some(ordering.is_gt()),
        ">=" => Some(ordering.is_ge()),
        "<" => Some(ordering.is_lt()),
        "<=" => Some(ordering.is_le()),
        _ => None,
    }
}

impl Words {
    /// Returns the indices of the words that are not known to compare by these values.
    pub(crate) fn unmet(&self, values: &[Option<u64>]) -> Vec<usize> {
        let is_met = |index: &usize| {
            let value = values.get(*index).copied().flatten();
            let compares = |value| compares(&self.words[*index], &self.comparison, value);
            value.and_then(compares) == Some(true)
        };
        (0..self.words.len()).filter(|index| !is_met(index)).collect()
    }

    /// Returns true if the wait for them is about to end.
    pub(crate) fn are_satisfied(&self, values: &[Option<u64>]) -> bool {
        match (self.unmet(values).len(), self.words.len()) {
            (unmet, n) if self.all => unmet == 0 && n > 0 && self.more == 0,
            (unmet, n) => unmet < n,
        }
    }
}

/// Returns the value of a word in decimal.
pub(crate) fn number(word: &Word, value: u64) -> String {
    if word.signed { signed(word, value).to_string() } else { unsigned(word, value).to_string() }
}

/// Returns the bits of a word of 64 that the word does not have.
fn unused(word: &Word) -> u32 {
    64 - 8 * u32::from(word.nbytes.clamp(1, 8))
}

fn signed(word: &Word, value: u64) -> i64 {
    ((value << unused(word)) as i64) >> unused(word)
}

fn unsigned(word: &Word, value: u64) -> u64 {
    (value << unused(word)) >> unused(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(nbytes: u8, signed: bool, wanted: u64) -> Word {
        let location = SymmetricLocation::Other { address: 0 };
        Word { location, in_memfd: None, nbytes, signed, wanted }
    }

    #[test]
    fn words_compare_by_size_and_sign() {
        let minus_one = word(4, true, u64::from(u32::MAX));
        assert_eq!(compares(&minus_one, ">", 0), Some(true));
        assert_eq!(number(&minus_one, minus_one.wanted), "-1");
        let unsigned = word(4, false, u64::from(u32::MAX));
        assert_eq!(compares(&unsigned, ">", 0), Some(false));
        assert_eq!(compares(&word(1, false, 1), "==", 0x101), Some(true));
        assert_eq!(compares(&word(8, true, 1), "~", 1), None);
    }
}
