//! The format of the trace file of a PE: words in the byte order of its machine.
//!
//! The file has a header, the names of functions, and the ring of records. The last word of a
//! record, its number, is written when all others but the time of its end are, so that a reader can
//! tell which records are valid even if the PE has died.

/// The first word, written after the rest of the new file's header.
pub const MAGIC: u64 = u64::from_ne_bytes(*b"RMTRACE1");
/// The size of a word in bytes.
pub const WORD: usize = size_of::<u64>();

/// The indices of the words of the header.
pub mod header {
    /// [`MAGIC`](super::MAGIC).
    pub const MAGIC: usize = 0;
    /// A number that distinguishes the job from others. It is equal in the files of all its PEs.
    pub const JOB: usize = 1;
    /// The number of the PE.
    pub const PE: usize = 2;
    /// The number of PEs of the job.
    pub const N_PES: usize = 3;
    /// The number of the PE's node.
    pub const NODE: usize = 4;
    /// The maximum number of records in the ring.
    pub const CAPACITY: usize = 5;
    /// The number of records begun so far.
    pub const BEGUN: usize = 6;
    /// The first of four words: two pairs of a time of the PE and the number of nanoseconds to add
    /// to it for the clock of PE 0. The first pair was measured at the begin of the job and the
    /// second one at its end. The words of a pair are 0 until then.
    pub const CLOCKS: usize = 7;
    /// The size of the header in words.
    pub const WORDS: usize = 16;
}

/// Maximum number of names.
pub const N_NAMES: usize = 1024;
/// The size of a name in words. It ends with a zero byte or at the end of its words. A name is that
/// of a function, perhaps with the location of the call: `shmem_quiet (ring.c:12)`.
pub const NAME_WORDS: usize = 8;
/// The index of the first word of the names.
pub const NAMES: usize = header::WORDS;
/// The index of the first word of the records.
pub const RECORDS: usize = NAMES + N_NAMES * NAME_WORDS;
/// The size of a record in words.
pub const RECORD_WORDS: usize = 8;

/// Returns the size in bytes of a file whose ring has room for `capacity` records.
pub const fn file_bytes(capacity: usize) -> usize {
    (RECORDS + capacity * RECORD_WORDS) * WORD
}

/// Returns the name of a PE's file.
pub fn file_name(pe: u32) -> String {
    format!("pe-{pe}.ring")
}

/// The indices of the words of a record, which [`TraceRecord`] describes.
pub mod record {
    /// The kind, whether the access remains in flight, the name, and the peer.
    pub const WHAT: usize = 0;
    /// The thread and the context.
    pub const WHO: usize = 1;
    /// The time of the begin.
    pub const BEGIN: usize = 2;
    /// The time of the end; 0 before that.
    pub const END: usize = 3;
    /// The number of bytes of data.
    pub const BYTES: usize = 4;
    /// The first of the two words of the subject.
    pub const SUBJECT: usize = 5;
    /// The number of the record, counted from 1.
    pub const NUMBER: usize = 7;
}

/// Defines [`Kind`] from its variants, each with its name in the trace of a job.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// The kind of a record.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Kind { $($(#[$doc])* $kind),* }

        impl Kind {
            const ALL: &[Kind] = &[$(Kind::$kind),*];

            /// Returns the name of the kind in the trace of a job.
            pub fn name(self) -> &'static str {
                match self { $(Kind::$kind => $name),* }
            }
        }
    };
}

kinds! {
    /// An access that writes memory of the peer. The first word of the subject is the location of
    /// the signal that is written last, or of the first byte if there is no signal.
    Put = "put",
    /// An access that reads memory of the peer. The first word of the subject is the location of
    /// the first byte.
    Get = "get",
    /// An atomic operation. The first word of the subject is the location of the word on the peer.
    Amo = "amo",
    /// A copy that a collective makes to the peer, or from it if the first word of the subject is
    /// 1.
    Move = "move",
    /// A collective. The subject is a number that identifies its members, and the number of the
    /// collective among those of these members.
    Collective = "collective",
    /// A wait for words of the PE. The subject is the location of the first word, and the number of
    /// bytes of all words.
    Wait = "wait",
    /// A call that uses a lock. The first word of the subject is the location of the lock.
    Lock = "lock",
    /// A fence.
    Fence = "fence",
    /// A quiet, also as a part of another call. It completes only operations on the peer if there
    /// is one.
    Quiet = "quiet",
    /// A flush, of the puts to the peer if there is one. It completes nothing.
    Flush = "flush",
}

/// A call or access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRecord {
    /// The kind of the record.
    pub kind: Kind,
    /// True if the access is incomplete until a quiet.
    pub in_flight: bool,
    /// The index of the name among the names of the file.
    pub name: u16,
    /// The world PE whose memory is accessed, or to which a quiet or flush is restricted.
    pub peer: Option<u32>,
    /// The number of the thread among the PE's threads in the trace, counted from 0.
    pub thread: u32,
    /// The index of the context; 0 for the default one.
    pub context: u32,
    /// The time of the begin in nanoseconds.
    pub begin: u64,
    /// The time of the end in nanoseconds; `None` if it has not ended.
    pub end: Option<u64>,
    /// The number of bytes of data.
    pub nbytes: u64,
    /// Two words whose meaning the kind determines. Those that it does not mention are 0.
    pub subject: [u64; 2],
}

impl TraceRecord {
    /// Returns the words of the record except the last one, its number.
    #[inline]
    pub fn words(&self) -> [u64; RECORD_WORDS - 1] {
        let peer = u64::from(self.peer.map_or(0, |pe| pe + 1));
        let name = u64::from(self.name);
        let what = self.kind as u64 | u64::from(self.in_flight) << 8 | name << 16 | peer << 32;
        let who = u64::from(self.thread) | u64::from(self.context) << 32;

        let [first, second] = self.subject;
        [
            what,
            who,
            self.begin,
            self.end.unwrap_or(0),
            self.nbytes,
            first,
            second,
        ]
    }

    /// Returns true for an access to memory of a PE, also one that a collective makes.
    pub fn is_access(&self) -> bool {
        matches!(self.kind, Kind::Put | Kind::Get | Kind::Amo | Kind::Move)
    }

    /// Returns `what`, the first word of a record, with the index of another name.
    pub fn renamed(what: u64, name: u16) -> u64 {
        what & !(0xffff << 16) | u64::from(name) << 16
    }

    /// Returns the record of these words; `None` if its kind is unknown.
    pub fn of_words(words: &[u64; RECORD_WORDS]) -> Option<TraceRecord> {
        let &[what, who, begin, end, nbytes, first, second, _] = words;
        Some(TraceRecord {
            kind: *Kind::ALL.get(what as u8 as usize)?,
            in_flight: what >> 8 & 1 == 1,
            name: (what >> 16) as u16,
            peer: ((what >> 32) as u32).checked_sub(1),
            thread: who as u32,
            context: (who >> 32) as u32,
            begin,
            end: (end > 0).then_some(end),
            nbytes,
            subject: [first, second],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_what_was_written() {
        let record = TraceRecord {
            kind: Kind::Quiet,
            in_flight: true,
            name: 1023,
            peer: Some(0),
            thread: 3,
            context: 7,
            begin: 1 << 60,
            end: None,
            nbytes: 9,
            subject: [u64::MAX, 5],
        };

        let mut words = [1; RECORD_WORDS];
        words[..record::NUMBER].copy_from_slice(&record.words());
        assert_eq!(TraceRecord::of_words(&words), Some(record));

        words[record::WHAT] = TraceRecord::renamed(words[record::WHAT], 5);
        assert_eq!(
            TraceRecord::of_words(&words),
            Some(TraceRecord { name: 5, ..record })
        );

        words[record::WHAT] = 200;
        assert_eq!(TraceRecord::of_words(&words), None);
    }
}
