//! The file of a PE: words in the byte order of its machine.
//!
//! A header is followed by the names of functions, and these by the ring of records. The last word
//! of a record, its number, is written after the others, so that a reader can tell which records are
//! complete even if the PE has died.

/// The first word, written last.
pub const MAGIC: u64 = u64::from_ne_bytes(*b"RMTRACE1");
/// Bytes of a word.
pub const WORD: usize = size_of::<u64>();

/// Words of the header.
pub mod header {
    /// [`MAGIC`](super::MAGIC).
    pub const MAGIC: usize = 0;
    /// A number of the job.
    pub const JOB: usize = 1;
    /// The PE.
    pub const PE: usize = 2;
    /// The PEs of the job.
    pub const N_PES: usize = 3;
    /// The node of the PE.
    pub const NODE: usize = 4;
    /// Records that the ring has room for.
    pub const CAPACITY: usize = 5;
    /// Records that were begun.
    pub const BEGUN: usize = 6;
    /// Twice, at the begin and at the end of the job: a time of the PE, and what is to be added to
    /// it for the clock of PE 0. The second time is 0 as long as it is not known.
    pub const CLOCKS: usize = 7;
    /// Words in all.
    pub const WORDS: usize = 16;
}

/// Maximum number of names.
pub const N_NAMES: usize = 1024;
/// Words of a name, which ends with a zero byte or at the end of its words. A name is that of a
/// function, or also has the location of the call, as in `shmem_quiet (ring.c:12)`.
pub const NAME_WORDS: usize = 8;
/// The first word of the names.
pub const NAMES: usize = header::WORDS;
/// The first word of the records.
pub const RECORDS: usize = NAMES + N_NAMES * NAME_WORDS;
/// Words of a record.
pub const RECORD_WORDS: usize = 8;

/// Returns the bytes of a file whose ring has room for this number of records.
pub const fn file_bytes(capacity: usize) -> usize {
    (RECORDS + capacity * RECORD_WORDS) * WORD
}

/// Returns the name of a PE's file.
pub fn file_name(pe: u32) -> String {
    format!("pe-{pe}.ring")
}

/// Words of a record, as [`TraceRecord`] describes them.
pub mod record {
    /// Kind, whether it remains in flight, name, and peer.
    pub const WHAT: usize = 0;
    /// Thread and context.
    pub const WHO: usize = 1;
    /// When it began.
    pub const BEGIN: usize = 2;
    /// When it ended; 0 if it did not.
    pub const END: usize = 3;
    /// Bytes.
    pub const BYTES: usize = 4;
    /// Two words.
    pub const SUBJECT: usize = 5;
    /// The number of the record, counted from 1.
    pub const NUMBER: usize = 7;
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident = $name:literal,)*) => {
        /// The kind of a record.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Kind { $($(#[$doc])* $kind),* }

        impl Kind {
            const ALL: &[Kind] = &[$(Kind::$kind),*];

            /// Returns its name in a trace.
            pub fn name(self) -> &'static str {
                match self { $(Kind::$kind => $name),* }
            }
        }
    };
}

kinds! {
    /// An access that writes memory of the peer. The subject is the place of the word there that is
    /// written last.
    Put = "put",
    /// An access that reads memory of the peer, from the place that is the subject.
    Get = "get",
    /// An atomic operation on the word of the peer that is the subject.
    Amo = "amo",
    /// Bytes that a collective moves to the peer, or from it if the first word of the subject is 1.
    Move = "move",
    /// A collective. The subject is a number that identifies its members, and the number of the
    /// collective among those of these members.
    Collective = "collective",
    /// A wait for words of the PE. The subject is the place of the first, and the bytes of all.
    Wait = "wait",
    /// A call that uses a lock.
    Lock = "lock",
    /// A fence.
    Fence = "fence",
    /// A quiet, also as a part of another call; towards the peer alone if there is one.
    Quiet = "quiet",
}

/// A call or access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRecord {
    /// The kind of the record.
    pub kind: Kind,
    /// True if a quiet completes it.
    pub in_flight: bool,
    /// The place of its name.
    pub name: u16,
    /// The other PE.
    pub peer: Option<u32>,
    /// The thread, counted from 0.
    pub thread: u32,
    /// The place of the context.
    pub context: u32,
    /// When it began, in nanoseconds.
    pub begin: u64,
    /// When it ended.
    pub end: Option<u64>,
    /// Bytes of data.
    pub nbytes: u64,
    /// As the kind says.
    pub subject: [u64; 2],
}

impl TraceRecord {
    /// Returns the words but the last.
    #[inline]
    pub fn words(&self) -> [u64; RECORD_WORDS - 1] {
        let peer = u64::from(self.peer.map_or(0, |pe| pe + 1));
        let name = u64::from(self.name);
        let what = self.kind as u64 | u64::from(self.in_flight) << 8 | name << 16 | peer << 32;
        let who = u64::from(self.thread) | u64::from(self.context) << 32;
        let [first, second] = self.subject;
        [what, who, self.begin, self.end.unwrap_or(0), self.nbytes, first, second]
    }

    /// Returns true for an access to memory of a PE.
    pub fn is_access(&self) -> bool {
        matches!(self.kind, Kind::Put | Kind::Get | Kind::Amo | Kind::Move)
    }

    /// Returns the first word of a record with another name.
    pub fn renamed(what: u64, name: u16) -> u64 {
        what & !(0xffff << 16) | u64::from(name) << 16
    }

    /// Returns the record of these words; `None` if they are not one.
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
        assert_eq!(TraceRecord::of_words(&words), Some(TraceRecord { name: 5, ..record }));
        words[record::WHAT] = 200;
        assert_eq!(TraceRecord::of_words(&words), None);
    }
}
