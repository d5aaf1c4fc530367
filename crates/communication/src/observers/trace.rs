//! The trace of this PE for `SHMEM_TRACE`: records of its calls and accesses, in a ring in a mapped
//! file, which outlives the process. `rushmem_trace::layout` describes the file.
#![allow(unsafe_code)]

use super::event::{AccessKind, Action, Event};
use rushmem_pe::call::{Call, CallName, location, stack, thread};
use rushmem_pe::memory::symmetric_location;
use rushmem_pe::process::time::{fast_nanoseconds, nanoseconds};
use rushmem_trace::layout::{
    self, Kind, MAGIC, N_NAMES, NAME_WORDS, NAMES, RECORD_WORDS, RECORDS, TraceRecord, WORD,
    header, record,
};
use rustix::fs::{FallocateFlags, fallocate, ftruncate};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap};
use std::cell::Cell;
use std::fs::File;
use std::io;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicU32, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
    compiler_fence,
};
use std::time::{Duration, Instant};

static RING: OnceLock<Ring> = OnceLock::new();

/// The file of the trace, mapped for the life of the process.
pub struct Ring {
    words: &'static [AtomicU64],
    capacity: u64,
}

/// Returns the ring, if there is one.
pub fn get() -> Option<&'static Ring> {
    RING.get()
}

/// Creates the ring in a file, with room for `capacity` records. `words` are the words of the
/// header from [`header::JOB`] to [`header::NODE`].
///
/// # Errors
/// If the file cannot be extended or mapped.
pub fn start(file: &File, capacity: usize, words: &[u64]) -> io::Result<&'static Ring> {
    let nbytes = layout::file_bytes(capacity);
    // A store to a hole in the file would end the process if the disk is full. Not all file systems
    // can reserve room.
    match fallocate(file, FallocateFlags::empty(), 0, nbytes as u64) {
        Err(Errno::OPNOTSUPP) => ftruncate(file, nbytes as u64)?,
        allocated => allocated?,
    }

    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: the call creates a mapping at an address that the kernel chooses.
    let start = unsafe { mmap(null_mut(), nbytes, protection, MapFlags::SHARED, file, 0) }?;
    // SAFETY: the mapping has that many words, is aligned to a page and is never unmapped; all
    // accesses to it are atomic operations.
    let all = unsafe { std::slice::from_raw_parts(start.cast::<AtomicU64>(), nbytes / WORD) };
    let ring = Ring {
        words: all,
        capacity: capacity as u64,
    };

    for (index, word) in (header::JOB..).zip(words) {
        ring.words[index].store(*word, Relaxed);
    }
    ring.words[header::CAPACITY].store(capacity as u64, Relaxed);
    // Last: a reader that sees it takes the header as complete.
    ring.words[header::MAGIC].store(MAGIC, Release);
    Ok(RING.get_or_init(|| ring))
}

impl Ring {
    /// Stores the number to add to this PE's clock for the clock of PE 0, measured at the begin of
    /// the job.
    pub fn set_first_clock(&self, offset: i64) {
        self.set_clock(header::CLOCKS, offset);
    }

    /// Stores the number to add to this PE's clock for the clock of PE 0, measured at the end of
    /// the job.
    pub fn set_last_clock(&self, offset: i64) {
        self.set_clock(header::CLOCKS + 2, offset);
    }

    /// Stores the offset of a clock in the second of two words, and the time of its measurement in
    /// the `first`.
    fn set_clock(&self, first: usize, offset: i64) {
        self.words[first + 1].store(offset.cast_unsigned(), Relaxed);
        // Last: the offset counts once there is a time of its measurement.
        self.words[first].store(nanoseconds(), Release);
    }

    /// Returns the number that distinguishes the job from others.
    pub fn job(&self) -> u64 {
        self.words[header::JOB].load(Relaxed)
    }

    /// Returns the number of records in the ring.
    pub fn n_records(&self) -> u64 {
        self.words[header::BEGUN].load(Relaxed).min(self.capacity)
    }

    /// Returns the number of records that newer ones have replaced.
    pub fn n_dropped(&self) -> u64 {
        self.words[header::BEGUN]
            .load(Relaxed)
            .saturating_sub(self.capacity)
    }

    /// Begins a record of an event. The end of a brief one is recorded as its begin: see [`BRIEF`].
    #[inline(always)]
    fn begin(&self, event: &Event, recorded: Recorded, is_brief: bool) -> Begun {
        let begin = fast_nanoseconds();
        let since_last = begin.saturating_sub(LAST.replace(begin));

        let record = TraceRecord {
            kind: recorded.kind,
            in_flight: recorded.in_flight,
            name: self.name(event.call),
            peer: u32::try_from(event.pe).ok(),
            thread: thread_number(),
            context: event.ctx.index() as u32,
            begin,
            end: is_brief.then_some(begin),
            nbytes: recorded.nbytes as u64,
            subject: recorded.subject,
        };

        let number = thread::add(&self.words[header::BEGUN], 1, thread::is_alone()) + 1;
        // From now on the record that this one replaces does not count. Its words are changed only
        // then, so that a reader does not take a mix of both for it if the process ends in between.
        // Only the order of the instructions matters for that.
        compiler_fence(Release);
        let first_word = RECORDS + ((number - 1) % self.capacity) as usize * RECORD_WORDS;
        let slot = self.slot(first_word);
        for (word, value) in slot.iter().zip(record.words()) {
            word.store(value, Relaxed);
        }
        // Last: a reader that sees the number takes the record as complete.
        slot[record::NUMBER].store(number, Release);

        // Other PEs may have waited for a call that follows a long computation, so its place is
        // recorded.
        if since_last >= LOCATED {
            self.locate(event.call, slot, number);
        }

        Begun {
            number,
            first_word,
            begin,
        }
    }

    /// Ends a record, unless a newer one has replaced it.
    #[inline(always)]
    fn end(&self, call: Call, begun: Begun) {
        let slot = self.slot(begun.first_word);
        let end = fast_nanoseconds();
        LAST.set(end);

        if slot[record::NUMBER].load(Acquire) != begun.number {
            return;
        }
        slot[record::END].store(end, Relaxed);
        if end - begun.begin >= LOCATED {
            self.locate(call, slot, begun.number);
        }
    }

    /// Adds the place of the call in the program to a complete record.
    #[cold]
    fn locate(&self, call: Call, slot: &[AtomicU64], number: u64) {
        let name = self.located_name(call);
        if slot[record::NUMBER].load(Acquire) == number {
            let what = slot[record::WHAT].load(Relaxed);
            slot[record::WHAT].store(TraceRecord::renamed(what, name), Relaxed);
        }
    }

    #[inline(always)]
    fn slot(&self, first_word: usize) -> &[AtomicU64] {
        &self.words[first_word..first_word + RECORD_WORDS]
    }

    /// Returns the index of the name of a function. Stores the name when it is first used. If there
    /// is no room for it, returns the index of the last name, which is empty.
    #[inline(always)]
    fn name(&self, call: Call) -> u16 {
        let key = std::ptr::from_ref(call.0).addr();
        let i = first_index(key);
        if KEYS[i].load(Relaxed) == key {
            i as u16
        } else {
            self.find_name(key, call).index
        }
    }

    /// Returns the index of a name that also says where the program makes the call. Another thread
    /// finds the location and stores it later, if it fits into the words of the name. Once half of
    /// the names have a location, returns the index of the name without one.
    fn located_name(&self, call: Call) -> u16 {
        // Relaxed: threads that add names at the same time may exceed the half by a few.
        static N_LOCATED: AtomicUsize = AtomicUsize::new(0);
        if N_LOCATED.load(Relaxed) >= N_NAMES / 2 {
            return self.name(call);
        }

        let key = std::ptr::from_ref(call.0).addr() ^ stack::digest() as usize;
        let FoundName { index, is_new } = self.find_name(key, call);
        if !is_new {
            return index;
        }

        N_LOCATED.fetch_add(1, Relaxed);
        // Relaxed: the thread of the lookup is started afterwards.
        LOOKUPS.fetch_add(1, Relaxed);
        location::find(move |found| {
            if let Some(location) = found
                && let Some(ring) = self::get()
            {
                let text = format!("{} ({})", call.name(), location.short());
                if text.len() <= NAME_WORDS * WORD {
                    ring.write_name(index.into(), &text);
                }
            }
            LOOKUPS.fetch_sub(1, Release);
        });
        index
    }

    /// Finds a name by its key. Adds the name of `call` if there is none, or returns the index of
    /// the last name, which is empty, if there is no room.
    #[inline(never)]
    fn find_name(&self, key: usize, call: Call) -> FoundName {
        for probe in 0..N_CALL_NAMES {
            let i = (first_index(key) + probe) % N_CALL_NAMES;
            if KEYS[i].load(Relaxed) == key {
                return FoundName::known(i);
            }

            match KEYS[i].compare_exchange(0, key, Relaxed, Relaxed) {
                Ok(_) => {
                    self.write_name(i, call.name());
                    return FoundName {
                        index: i as u16,
                        is_new: true,
                    };
                }
                // Another thread has just added it.
                Err(other) if other == key => return FoundName::known(i),
                Err(_) => {}
            }
        }
        FoundName::known(EMPTY_NAME)
    }

    fn write_name(&self, i: usize, name: &str) {
        let words = &self.words[NAMES + i * NAME_WORDS..][..NAME_WORDS];
        for (word, bytes) in words.iter().zip(name.as_bytes().chunks(WORD)) {
            let mut letters = [0; WORD];
            letters[..bytes.len()].copy_from_slice(bytes);
            word.store(u64::from_ne_bytes(letters), Relaxed);
        }
    }
}

/// A name of the ring, as the search for it has found it.
struct FoundName {
    index: u16,
    /// True if the search has added it.
    is_new: bool,
}

impl FoundName {
    fn known(index: usize) -> FoundName {
        FoundName {
            index: index as u16,
            is_new: false,
        }
    }
}

/// The number of names that calls can have.
const N_CALL_NAMES: usize = N_NAMES - 1;
/// The index of the last name, which is empty. Calls whose names have no room get it.
const EMPTY_NAME: usize = N_CALL_NAMES;

/// The keys of the names, by index; 0 where there is no name yet. Relaxed: a thread that finds a
/// key uses its index alone. The thread that has added the key stores the name, and the lookup that
/// it starts may replace it.
static KEYS: [AtomicUsize; N_NAMES] = [const { AtomicUsize::new(0) }; N_NAMES];

/// Returns the index at which the search for a key begins. The low bits, which are the same in all
/// keys that are addresses alone, are dropped.
#[inline(always)]
fn first_index(key: usize) -> usize {
    key / align_of::<CallName>() % N_CALL_NAMES
}

/// The location in the program is recorded for calls that last at least this many nanoseconds, and
/// for calls that follow such a time outside the library. Reading the stack takes much less.
const LOCATED: u64 = 100_000;

/// Maximum time that the end of a trace waits for the places of calls: it bounds the delay of
/// finalize. Reading the debug information of a large program may take longer; then its calls have
/// no places.
const LIMIT: Duration = Duration::from_secs(2);

/// The number of places that are being looked up. A lookup ends with release order after it has
/// stored the name, and [`await_places`] reads 0 with acquire order before the names are read.
static LOOKUPS: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// When this thread last began or ended a record.
    static LAST: Cell<u64> = const { Cell::new(0) };
}

/// Waits until the places of all calls are known, for a limited time.
pub fn await_places() {
    let until = Instant::now() + LIMIT;
    while LOOKUPS.load(Acquire) > 0 && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the number of this thread among the threads of the trace.
fn thread_number() -> u32 {
    static THREADS: AtomicU32 = AtomicU32::new(0);
    thread_local! {
        static NUMBER: Cell<Option<u32>> = const { Cell::new(None) };
    }
    NUMBER.get().unwrap_or_else(|| {
        let number = THREADS.fetch_add(1, Relaxed);
        NUMBER.set(Some(number));
        number
    })
}

/// What the trace keeps of an event between its begin and its end.
#[derive(Clone, Copy, Default)]
pub(super) struct Begun {
    /// The number of the record; 0 if the event has none.
    number: u64,
    /// The index of the first word of the record.
    first_word: usize,
    /// The time of the begin in nanoseconds.
    begin: u64,
}

/// The part of a record that depends on the kind of event.
struct Recorded {
    kind: Kind,
    /// True for an access that remains in flight until a quiet.
    in_flight: bool,
    nbytes: usize,
    /// Two words whose meaning depends on the kind.
    subject: [u64; 2],
}

impl Recorded {
    /// Returns the part of a record that is no access.
    #[inline(always)]
    fn of_call(kind: Kind, subject: [u64; 2]) -> Recorded {
        Recorded {
            kind,
            in_flight: false,
            nbytes: 0,
            subject,
        }
    }
}

/// Returns the part of an event's record that depends on its kind; `None` if the trace has no
/// events of this kind.
#[inline(always)]
fn recorded(event: &Event) -> Option<Recorded> {
    let remote = event.remote;
    let location = || symmetric_location::in_trace(remote.addr);

    let recorded = match event.action {
        Action::Access(access) => {
            // The target may wait for this word.
            let word = if access.signal == 0 {
                remote.addr
            } else {
                access.signal
            };
            recorded_access(access.kind, word, remote.total())
        }
        Action::Move { is_from } => Recorded {
            kind: Kind::Move,
            in_flight: false,
            nbytes: remote.total(),
            subject: [u64::from(is_from), 0],
        },
        Action::Collective(member) | Action::CarriedOut(member) => {
            Recorded::of_call(Kind::Collective, [member.team, member.nth])
        }
        Action::Wait => Recorded::of_call(Kind::Wait, [location(), remote.total() as u64]),
        Action::Lock => Recorded::of_call(Kind::Lock, [location(), 0]),
        Action::Fence => Recorded::of_call(Kind::Fence, [0; 2]),
        Action::Quiet { .. } | Action::PeQuiet => Recorded::of_call(Kind::Quiet, [0; 2]),
        Action::Flush | Action::PeFlush | Action::LocalComplete => {
            Recorded::of_call(Kind::Flush, [0; 2])
        }
        _ => return None,
    };

    Some(recorded)
}

#[inline(always)]
fn recorded_access(kind: AccessKind, word: usize, nbytes: usize) -> Recorded {
    use AccessKind::*;
    let in_flight = matches!(kind, PutNbi | PutSignalNbi | GetNbi | AmoFetchNbi);
    let kind = match kind {
        Put | PutNbi | P | PutStrided | PutSignal | PutSignalNbi => Kind::Put,
        Get | GetNbi | G | GetStrided => Kind::Get,
        Amo | AmoFetch | AmoFetchNbi => Kind::Amo,
        Collective => Kind::Move,
    };
    Recorded {
        kind,
        in_flight,
        nbytes,
        subject: [symmetric_location::in_trace(word), 0],
    }
}

/// Maximum number of bytes of a brief access to mapped memory, which takes no longer than reading
/// the clock. The record of its end would make an 8-byte put take 18 ns more, beside the 4 ns of
/// one without a trace.
pub(super) const BRIEF: usize = 64;

/// Begins the record of an event, if the trace has events of this kind.
pub(super) fn begin(event: &Event, is_brief: bool) -> Begun {
    match (get(), recorded(event)) {
        (Some(ring), Some(recorded)) => ring.begin(event, recorded, is_brief),
        _ => Begun::default(),
    }
}

/// Ends the record of an event.
pub(super) fn end(event: &Event, begun: Begun) {
    if begun.number > 0
        && let Some(ring) = get()
    {
        ring.end(event.call, begun);
    }
}
