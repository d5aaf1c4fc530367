//! The status of a PE, which the PE writes into the shared memory of its node when its stage
//! changes and when a wait lasts long. Also compares awaited words with the values for which PEs
//! wait.

use rushmem_system::codec;
use serde::{Deserialize, Serialize};

/// Version of the encoding of a status, before each. It changes whenever [`Status`] does: `oshrun`
/// may read the status of a program that carries the library of another build.
const VERSION: u8 = 12;

/// The size of the slot of a status in the internal area of a PE, with its header.
pub const STATUS_BYTES: usize = 4096;

/// Maximum length of each list of words, members, peers, locks or teams in a status. A status that
/// does not fit its slot nevertheless is shortened further.
pub const MAX_LISTED: usize = 64;

/// Maximum number of threads in [`Status::further_waits`].
pub const MAX_THREADS: usize = 512;

/// The activity of a PE in the library.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The process of the PE, in the PID namespace of that process.
    pub pid: u32,
    /// The inode number of the PID namespace of the PE; 0 if it is not known.
    pub pid_namespace: u64,
    /// The stage: in init, between init and finalize, or after it.
    pub stage: Stage,
    /// The long waits of its threads; empty if no thread waits long.
    pub waits: Vec<Wait>,
    /// The threads of further long waits, which are not described, at most [`MAX_THREADS`].
    pub further_waits: Vec<u32>,
    /// The locks that the PE holds, at most [`MAX_LISTED`].
    pub held_locks: Vec<SymmetricLocation>,
    /// The operations in flight over a network; `None` if they are not known.
    pub in_flight: Option<InFlight>,
    /// The collectives that the PE has entered, while it is in finalize; `None` at other times.
    pub finalizing: Option<Finalizing>,
    /// True if the PE looks for a call that it repeats when it gets the signal SIGURG.
    pub finds_polls: bool,
    /// The call that it has found last.
    pub poll: Option<Poll>,
    /// True if `SHMEM_CHECK` is set, which compares the collectives of members.
    pub checks: bool,
}

/// A call that a thread repeats, on the same word, instead of a call that waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Poll {
    /// The function as the user called it, such as `shmem_long_test`.
    pub call: String,
    /// The location of the call in the program, if it was found.
    pub called_at: Option<String>,
    /// True once the search for that location has ended.
    pub is_searched: bool,
    /// When the call was repeated: nanoseconds of `CLOCK_MONOTONIC` of the host.
    pub at: u64,
    /// The location of the word, or of the first of several words.
    pub word: SymmetricLocation,
    /// The object of which the word is.
    pub of: PolledObject,
}

/// The object of a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PolledObject {
    /// The memory of this world PE.
    MemoryOf(u32),
    /// A lock.
    Lock,
}

/// The part of the status of a PE in finalize that does not change before all PEs are in finalize.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finalizing {
    /// The number of collectives that the PE has entered on each team, by the
    /// [number](Collective::number) of the team; at most [`MAX_LISTED`].
    pub entered: Vec<(u64, u64)>,
}

/// Operations of a PE over a network that are not known to be complete.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InFlight {
    /// The number of operations.
    pub n: u64,
    /// The world PEs that they target, at most [`MAX_LISTED`].
    pub targets: Vec<u32>,
    /// True if operations may target other PEs than those listed, too.
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
    /// Before `shmem_init`. Only the launcher can tell; no PE writes this stage.
    Uninitialized,
}

/// A wait of a thread that lasts long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// The thread, as the kernel numbers it.
    pub thread: u32,
    /// The function as the user called it, such as `shmem_long_wait_until`.
    pub call: String,
    /// The location of the call in the program, such as `ring.c:12 in exchange`, once it is known.
    pub called_at: Option<String>,
    /// The search for the location `called_at`, if other PEs may use its result.
    pub search: Option<Search>,
    /// The location of the call that has allocated the block of the first word, or of the lock, or
    /// that has registered its buffer, once it is known.
    pub allocated_at: Option<String>,
    /// When the wait began: nanoseconds of `CLOCK_MONOTONIC` of the host.
    pub since: u64,
    /// The nanoseconds after which the wait ends by itself, if it has a limit.
    pub limit: Option<u64>,
    /// The object or PEs for which the thread waits.
    pub subject: AwaitedObject,
}

/// The search for the location of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Search {
    /// A hash of the stack of the call, equal for equal stacks of PEs that run the same program.
    pub stack: u64,
    /// When the search began: nanoseconds of `CLOCK_MONOTONIC` of the host.
    pub since: u64,
    /// True once the search has ended, whether the location was found or not.
    pub is_over: bool,
}

/// The object or PEs for which a thread waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AwaitedObject {
    /// Words of this PE that other PEs write (OpenSHMEM 1.6, §9.11).
    Words(Words),
    /// Other members, in a collective.
    Collective(Collective),
    /// A lock.
    Lock {
        /// The location of the lock's word, which is the same on all PEs.
        lock: SymmetricLocation,
        /// The PE before this one in the queue, if it is known. It holds the lock, or waits for it,
        /// too.
        behind: Option<u32>,
    },
    /// The completion of operations of this PE over a network.
    Operations {
        /// The PEs with unfinished operations, at most [`MAX_LISTED`].
        peers: Vec<u32>,
    },
    /// A message of the library from one PE: an agreement about a team.
    Message {
        /// The world PE that must send it.
        from: u32,
    },
    /// All other PEs, in finalize.
    Exit,
    /// All other PEs, at the exit of a program that has not called finalize.
    Leaving,
}

impl AwaitedObject {
    /// Returns the block of the heap of the first word, or of the lock, if it is known.
    pub fn block(&self) -> Option<&HeapBlock> {
        match self {
            AwaitedObject::Words(words) => words.words.first()?.location.block(),
            AwaitedObject::Lock { lock, .. } => lock.block(),
            _ => None,
        }
    }
}

/// Words of this PE that other PEs write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Words {
    /// The words, at most [`MAX_LISTED`].
    pub words: Vec<Word>,
    /// The number of further words.
    pub more: u64,
    /// True if all words must satisfy the comparison; otherwise one is enough.
    pub all: bool,
    /// The comparison: one of `==`, `!=`, `>`, `>=`, `<`, `<=`.
    pub comparison: String,
}

/// An awaited word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Word {
    /// The location, by which messages name the word.
    pub location: SymmetricLocation,
    /// The offset in the node's shared memory (a memfd), if the word is in it.
    pub in_memfd: Option<u64>,
    /// The size of the word: 1, 2, 4 or 8 bytes.
    pub nbytes: u8,
    /// True if the type of the word is signed.
    pub signed: bool,
    /// The value with which the word is compared, in the low bytes.
    pub wanted: u64,
}

/// A location in symmetric memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SymmetricLocation {
    /// In the heap, which is the same on all PEs.
    Heap {
        /// Bytes from the start of the heap.
        offset: u64,
        /// The block that contains the location, if it is known.
        block: Option<HeapBlock>,
    },
    /// A static variable.
    Static {
        /// The address in the executable file, as `nm` prints it.
        address: u64,
    },
    /// At an address that is not symmetric.
    Other {
        /// The address in the process.
        address: u64,
    },
}

/// A block of the heap, or a registered buffer of the program in one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HeapBlock {
    /// Bytes from the start of the heap.
    pub offset: u64,
    /// The size in bytes.
    pub nbytes: u64,
    /// True for a registered buffer.
    pub is_buffer: bool,
}

impl SymmetricLocation {
    /// Returns the block of the heap that contains the location, if it is known.
    pub fn block(&self) -> Option<&HeapBlock> {
        match self {
            SymmetricLocation::Heap { block, .. } => block.as_ref(),
            _ => None,
        }
    }
}

/// A collective that a PE has entered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collective {
    /// The name of the team, such as `SHMEM_TEAM_WORLD`, or of the active set.
    pub team: String,
    /// True if `team` is an active set.
    pub is_active_set: bool,
    /// A number of the team: the same on all members, different from that of other teams.
    pub number: u64,
    /// The members of the team.
    pub members: Members,
    /// The number of the collective among those of this PE on the team, from 1.
    pub nth: u64,
    /// The world PE for which this PE waits at the moment, if it waits for a single one.
    pub awaited: Option<u32>,
}

/// The world PEs of a team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Members {
    /// `start + i * stride` for `i` below `n`.
    Strided {
        /// The world PE of the first member.
        start: u32,
        /// The difference between the world PEs of a member and the one before it.
        stride: i32,
        /// The number of members.
        n: u32,
    },
    /// A list in the order of the team.
    Listed {
        /// The first members, at most [`MAX_LISTED`].
        pes: Vec<u32>,
        /// The number of members that are not listed.
        more: u32,
    },
}

impl Status {
    /// Creates the status of a PE that does not wait.
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
            finds_polls: false,
            poll: None,
            checks: false,
        }
    }

    /// Returns the threads of all long waits, also of those that are not described.
    pub fn waiting_threads(&self) -> impl Iterator<Item = u32> {
        self.waits
            .iter()
            .map(|wait| wait.thread)
            .chain(self.further_waits.iter().copied())
    }

    /// Encodes the status, after its version.
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(&(VERSION, self))
    }

    /// Decodes a status. Returns `None` if another version has written it, or it is damaged.
    pub fn decode(bytes: &[u8]) -> Option<Status> {
        let (&version, status) = bytes.split_first()?;
        if version != VERSION {
            return None;
        }
        codec::decode(status).ok()
    }
}

/// Returns the words of a wait, if it waits for words.
pub(crate) fn words_of(wait: &Wait) -> Option<&Words> {
    match &wait.subject {
        AwaitedObject::Words(words) => Some(words),
        _ => None,
    }
}

/// Returns true if the value of a word satisfies the comparison; `None` if the comparison is not
/// known.
fn satisfies(word: &Word, comparison: &str, value: u64) -> Option<bool> {
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
    /// Returns the indices of the words that do not satisfy the comparison, or whose value is not
    /// known.
    pub(crate) fn unmet(&self, values: &[Option<u64>]) -> Vec<usize> {
        let is_met = |index: usize| match values.get(index).copied().flatten() {
            Some(value) => satisfies(&self.words[index], &self.comparison, value) == Some(true),
            None => false,
        };
        (0..self.words.len())
            .filter(|index| !is_met(*index))
            .collect()
    }

    /// Returns true if the wait for these words is about to end.
    pub(crate) fn are_satisfied(&self, values: &[Option<u64>]) -> bool {
        let unmet = self.unmet(values).len();
        let n = self.words.len();
        if self.all {
            // Words that are not listed may be unmet.
            unmet == 0 && n > 0 && self.more == 0
        } else {
            unmet < n
        }
    }
}

/// Returns the value of a word in decimal.
pub(crate) fn number(word: &Word, value: u64) -> String {
    if word.signed {
        signed(word, value).to_string()
    } else {
        unsigned(word, value).to_string()
    }
}

/// Returns the number of bits by which a word is shorter than 64 bits.
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
        Word {
            location,
            in_memfd: None,
            nbytes,
            signed,
            wanted,
        }
    }

    #[test]
    fn words_compare_by_size_and_sign() {
        let minus_one = word(4, true, u64::from(u32::MAX));
        assert_eq!(satisfies(&minus_one, ">", 0), Some(true));
        assert_eq!(number(&minus_one, minus_one.wanted), "-1");
        let unsigned = word(4, false, u64::from(u32::MAX));
        assert_eq!(satisfies(&unsigned, ">", 0), Some(false));
        assert_eq!(satisfies(&word(1, false, 1), "==", 0x101), Some(true));
        assert_eq!(satisfies(&word(8, true, 1), "~", 1), None);
    }
}
