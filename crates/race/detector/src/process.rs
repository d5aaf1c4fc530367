//! The detector of this process: it maps addresses to symmetric memory, keeps the state of the
//! threads and of their operations in flight, and records each access with the order it has.

pub mod accesses;
mod calls;
pub mod freed;
pub mod memory_order;
mod threads;

use crate::access::{ShadowKind, ShadowRecord};
use crate::actors::{ActorInfo, ActorRole, ContextFlights, EndedThread, THREAD, Thread};
use crate::areas::{Counter, Memory, ShadowPlace, ShadowSegment, SharedAreas, by_page};
use crate::clock::{Actor, Stamp, VectorClock};
use crate::own_memory::WatchedRanges;
use crate::report::Reporter;
use crate::shadow::View;
use crate::{known, own_memory, private, sync_words};
use rushmem_race_interface::{ByteBlocks, DetectorOpening};
use rushmem_system::stderr::print_line;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::{
    AtomicBool, AtomicU32, AtomicU64,
    Ordering::{AcqRel, Relaxed, SeqCst},
    fence,
};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// A segment of a PE that is mapped in this process.
struct MappedSegment {
    addresses: Range<usize>,
    pe: u32,
    segment: ShadowSegment,
}

/// The detector of this process.
pub struct ProcessDetector {
    areas: SharedAreas,
    me: u32,
    reporter: Reporter,
    status: i32,
    n_pes: u32,
    /// Sorted by address.
    mapped: Vec<MappedSegment>,
    contexts: Mutex<HashMap<u64, ContextFlights>>,
    /// The clocks of the objects by which threads of this process synchronize.
    objects: Mutex<HashMap<usize, VectorClock>>,
    /// The number of threads so far. Relaxed: it only gives each thread another number.
    threads: AtomicU32,
    ended: Mutex<VecDeque<EndedThread>>,
    /// Actors of completed tasks, which may serve other tasks, with their last epochs.
    spare: Mutex<VecDeque<Stamp>>,
    // Relaxed: numbers for the summary alone.
    operations: AtomicU64,
    accesses: AtomicU64,
}

static PROCESS: OnceLock<ProcessDetector> = OnceLock::new();

// Relaxed, all three: `PROCESS` publishes the detector. Init, finalize and the only thread of a
// child store them, and the loader before `main`.
/// True between init and finalize.
static IS_ACTIVE: AtomicBool = AtomicBool::new(false);
/// True in a child that a PE has created by `fork`.
static IS_CHILD: AtomicBool = AtomicBool::new(false);
/// True if the program was compiled for the detector and reports its loads, stores and threads.
static IS_INSTRUMENTED: AtomicBool = AtomicBool::new(false);

/// The object that each call acquires and releases if the program was not compiled for the
/// detector, which then does not know how its threads are ordered.
const EVERYTHING: usize = 0;

/// Records that the program was compiled for the detector.
pub fn mark_instrumented() {
    IS_INSTRUMENTED.store(true, Relaxed);
}

/// Returns the detector between init and finalize; otherwise, and in a forked child, `None`.
#[inline]
pub fn active() -> Option<&'static ProcessDetector> {
    if IS_ACTIVE.load(Relaxed) {
        PROCESS.get()
    } else {
        None
    }
}

/// Resumes the detection after a finalize. Returns false if there was no detector before.
pub fn resume() -> bool {
    let is_known = PROCESS.get().is_some();
    if is_known {
        IS_ACTIVE.store(true, Relaxed);
    }
    is_known
}

/// Ends the detection in a child that a PE has created by `fork`: the child may be killed at any
/// time, and must not hold a lock in the shared memory then.
pub extern "C" fn end_in_child() {
    IS_ACTIVE.store(false, Relaxed);
    IS_CHILD.store(true, Relaxed);
}

/// Returns the exit status for a PE that would end with 0 although some PE has reported a race;
/// `None` if none has, if the setting of that status is 0, or in a forked child.
pub fn status() -> Option<i32> {
    if IS_CHILD.load(Relaxed) {
        return None;
    }
    let process = PROCESS.get()?;
    let is_found = process.areas.counter(Counter::Reported).load(Relaxed) > 0;
    if !is_found || process.status == 0 {
        return None;
    }
    Some(process.status)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An access in the program's code: its kind, the number of its site, and its length in bytes.
#[derive(Clone, Copy)]
struct AccessSite {
    kind: ShadowKind,
    site: u32,
    nbytes: usize,
}

impl AccessSite {
    /// Returns the record of such an access by an actor in an epoch, with an empty mask: the shadow
    /// sets it for each eight bytes of the access.
    fn record(self, by: Stamp) -> ShadowRecord {
        ShadowRecord {
            actor: by.actor,
            epoch: by.epoch,
            mask: 0,
            kind: self.kind,
            site: self.site,
            // A longer access is reported as one of four gigabytes.
            nbytes: self.nbytes.try_into().unwrap_or(u32::MAX),
        }
    }
}

/// Returns the segments of all PEs that this process has mapped, sorted by address. The arguments
/// are those of [`ProcessDetector::start`].
fn mapped_segments(
    opening: &DetectorOpening,
    heaps: &[usize],
    statics: &[usize],
) -> Vec<MappedSegment> {
    let mut mapped = Vec::new();
    for (segment, starts, nbytes) in [
        (ShadowSegment::Heap, heaps, opening.heap_bytes),
        (ShadowSegment::Static, statics, opening.static_bytes),
    ] {
        for (pe, &start) in (0..).zip(starts) {
            if start != 0 {
                mapped.push(MappedSegment {
                    addresses: start..start + nbytes,
                    pe,
                    segment,
                });
            }
        }
    }
    mapped.sort_by_key(|mapped| mapped.addresses.start);
    mapped
}

/// Returns the range from the first of these segments to the last one, which are sorted by address;
/// no addresses if there are none.
fn enclosing_range<'a>(mut segments: impl Iterator<Item = &'a MappedSegment>) -> Range<usize> {
    let Some(first) = segments.next() else {
        return 0..0;
    };
    let last = segments.last().unwrap_or(first);
    first.addresses.start..last.addresses.end
}

impl ProcessDetector {
    /// Starts the detection. `heaps` and `statics` have the address at which this process has
    /// mapped the segment of each PE, or 0.
    pub fn start(
        areas: SharedAreas,
        opening: &DetectorOpening,
        heaps: &[usize],
        statics: &[usize],
    ) {
        let me = opening.pe;
        let mapped = mapped_segments(opening, heaps, statics);

        let own = |segment| {
            let segments = mapped.iter().filter(|mapped| mapped.segment == segment);
            enclosing_range(segments.filter(|mapped| mapped.pe == me))
        };
        let others = |segment| {
            let segments = mapped.iter().filter(|mapped| mapped.segment == segment);
            enclosing_range(segments.filter(|mapped| mapped.pe != me))
        };
        let ranges = WatchedRanges {
            own_heap: own(ShadowSegment::Heap),
            own_statics: own(ShadowSegment::Static),
            other_heaps: others(ShadowSegment::Heap),
            other_statics: others(ShadowSegment::Static),
        };
        own_memory::watch(&areas, me, ranges);

        let own_statics = statics.get(me as usize).map_or(0, |start| *start);
        let process = ProcessDetector {
            areas,
            me,
            reporter: Reporter::new(areas, opening, own_statics),
            status: opening.status,
            n_pes: heaps.len() as u32,
            mapped,
            contexts: Mutex::default(),
            objects: Mutex::default(),
            threads: AtomicU32::new(0),
            ended: Mutex::default(),
            spare: Mutex::default(),
            operations: AtomicU64::new(0),
            accesses: AtomicU64::new(0),
        };
        // The runtime calls this once in a process, so it cannot fail.
        let _ = PROCESS.set(process);
        IS_ACTIVE.store(true, Relaxed);
    }

    /// Ends the detection. The last PE that does so prints how much all PEs have checked.
    pub fn close(&self) {
        IS_ACTIVE.store(false, Relaxed);

        // After a later initialization, each PE counts from 0 again, and the job goes on counting.
        let operations = self.operations.swap(0, Relaxed);
        let accesses = self.accesses.swap(0, Relaxed) + known::take_uncounted();
        let is_instrumented = u64::from(IS_INSTRUMENTED.load(Relaxed));
        for (counter, n) in [
            (Counter::Operations, operations),
            (Counter::Accesses, accesses),
            (Counter::Instrumented, is_instrumented),
        ] {
            self.areas.counter(counter).fetch_add(n, Relaxed);
        }

        // Acquire and release: the PE that counts last reads what all have counted above. It finds
        // a multiple, since a job may finalize and initialize again.
        let closed = self.areas.counter(Counter::Closed).fetch_add(1, AcqRel) + 1;
        if closed.is_multiple_of(u64::from(self.n_pes)) {
            print_line(format_args!("rushmem: {}", self.summary(closed)));
        }
    }

    /// Returns what all PEs have found and checked in this many finalizations.
    fn summary(&self, n_finalizations: u64) -> String {
        let get = |counter| self.areas.counter(counter).load(Relaxed);
        let operations = get(Counter::Operations);
        let accesses = get(Counter::Accesses);

        let races = match get(Counter::Reported) {
            0 => "no race".to_owned(),
            1 => "1 race".to_owned(),
            n => format!("{n} races"),
        };
        let checked = match get(Counter::Instrumented) {
            0 => "; loads and stores were not checked: compile with oshcc --race".to_owned(),
            n if n < n_finalizations => format!(
                " and {accesses} loads and stores; those of {} PEs were not checked: compile with \
                 oshcc --race",
                n_finalizations - n
            ),
            _ => format!(" and {accesses} loads and stores"),
        };
        let incomplete = if get(Counter::Full) == 0 {
            ""
        } else {
            "; a table of the detector was full, so that not all was checked"
        };
        format!("{races} in {operations} operations{checked}{incomplete}")
    }

    /// Looks up an address of this process among the mapped segments.
    #[inline]
    fn find(&self, addr: usize) -> Memory {
        // The last segment that begins at the address or before it.
        let n = self
            .mapped
            .partition_point(|mapped| mapped.addresses.start <= addr);
        match self.mapped[..n].last() {
            Some(mapped) if addr < mapped.addresses.end => Memory::Symmetric(ShadowPlace {
                pe: mapped.pe,
                segment: mapped.segment,
                offset: addr - mapped.addresses.start,
            }),
            _ => Memory::Private(addr),
        }
    }

    /// Returns the place on `pe` of the symmetric object that has this address on this PE; `None`
    /// if the address is private.
    fn place_on(&self, addr: usize, pe: u32) -> Option<ShadowPlace> {
        match self.find(addr) {
            Memory::Symmetric(place) => Some(ShadowPlace { pe, ..place }),
            Memory::Private(_) => None,
        }
    }

    /// Calls `f` with the calling thread, after the bits of its epoch were checked: `f` may change
    /// the thread's clock, and so order its accesses with those of other threads.
    fn with_thread<R>(&self, f: impl FnOnce(&mut Thread) -> R) -> Option<R> {
        self.with_accessing(|thread| {
            self.check_pages(thread);
            f(thread)
        })
    }

    /// Compares the accesses of the thread's epoch that are kept as bits with the accesses that
    /// others have recorded on these pages since, and reports races.
    fn check_pages(&self, thread: &mut Thread) {
        // No page has bits of this epoch.
        if thread.marked.epoch != thread.epoch() {
            return;
        }

        // Pairs with the fence of `Page::look_at_bits`: another access either finds the thread's
        // bit, or has already changed the word of the page's lock, which is compared below.
        fence(SeqCst);
        for place in &thread.marked.pages {
            let page = self.areas.page(*place);
            if page.must_be_checked(thread.stamp().bits()) {
                self.begin_page(*place, thread);
            }
        }
    }

    /// Begins the bits of the thread's epoch in a page. If they have begun, compares them with the
    /// records added since, and reports races.
    fn begin_page(&self, place: ShadowPlace, thread: &Thread) {
        let page = self.areas.page(place);
        let view = View::of(&thread.clock);
        for conflict in page.begin(thread.stamp().bits(), view) {
            let memory = ShadowPlace {
                offset: place.offset + conflict.offset,
                ..place
            };
            self.reporter
                .race(Memory::Symmetric(memory), &conflict.new, &conflict.old);
        }
    }

    /// Calls `f` with the calling thread, which gets an actor at its first access. Returns `None`
    /// if the thread is in the detector already or has dropped its variables, or if a table of the
    /// detector is full.
    fn with_accessing<R>(&self, f: impl FnOnce(&mut Thread) -> R) -> Option<R> {
        if self.reporter.has_full_table() || known::is_recording() {
            return None;
        }

        let entered = THREAD.try_with(|thread| {
            let mut thread = thread.try_borrow_mut().ok()?;
            if thread.actor == 0 {
                let number = self.threads.fetch_add(1, Relaxed);
                let actor = self.enroll_thread(number)?;
                thread.actor = actor;
                thread.number = number;
                thread.clock.raise(actor, 1);
            }

            let result = known::while_recording(|| {
                let result = f(&mut thread);
                // `f` may have begun another epoch, section or task; a section or task is another
                // actor.
                known::set_stamp(thread.stamp().bits(), thread.number == 0);
                result
            });
            Some(result)
        });
        entered.ok().flatten()
    }

    /// Returns a new actor for the thread with this number, or for a task of it. `None` if the
    /// table of actors is full.
    fn enroll_thread(&self, number: u32) -> Option<Actor> {
        let info = ActorInfo {
            pe: self.me,
            role: ActorRole::Thread(number),
            on_context: false,
        };
        info.enroll(&self.areas)
    }

    /// Calls `f` with the thread that calls the library, after the bits of its epoch were checked.
    /// If the program was not compiled for the detector, each call is ordered after all earlier
    /// ones of its PE.
    fn with_caller(&self, f: impl FnOnce(&mut Thread)) {
        self.with_issuing(|thread| {
            self.check_pages(thread);
            f(thread);
        });
    }

    /// Calls `f` with the thread that calls the library, as [`with_caller`](Self::with_caller)
    /// does, but does not check the bits of its epoch: `f` may change the thread's clock only by
    /// [`release`](Self::release), which checks them.
    fn with_issuing(&self, f: impl FnOnce(&mut Thread)) {
        // No more races are reported, so the cache may stay as it is. To fill it again after each
        // call would only slow the program down.
        if self.reporter.has_full_table() {
            return;
        }

        // The call may change records in the shadow on which the cache relies.
        known::forget();
        self.with_accessing(|thread| {
            // Relaxed: the object files of the program set the flag before `main`.
            if IS_INSTRUMENTED.load(Relaxed) {
                return f(thread);
            }

            // What orders the threads of this program, such as a mutex, is not known. So its calls
            // are ordered as if a lock was held during each of them: races between threads of one
            // PE are missed, rather than reported where there are none.
            if let Some(known) = locked(&self.objects).get(&EVERYTHING) {
                thread.clock.join(known);
            }
            f(thread);
            locked(&self.objects)
                .entry(EVERYTHING)
                .or_default()
                .join(&thread.clock);
        });
    }

    /// Returns `kind`, or the kind of an access to a peer if the bytes are another PE's.
    fn kind_for(&self, memory: Memory, kind: ShadowKind) -> ShadowKind {
        match memory {
            Memory::Symmetric(place) if place.pe != self.me => kind.to_peer(),
            _ => kind,
        }
    }

    /// Records an access to contiguous bytes. Reports only the first conflict that it finds.
    fn record_access(&self, memory: Memory, nbytes: usize, record: ShadowRecord, view: View<'_>) {
        let first = match memory {
            Memory::Symmetric(place) => place.offset,
            Memory::Private(addr) => addr,
        };

        // The access is recorded on all pages, whatever is found.
        let mut first_conflict = None;
        for part in by_page(first, nbytes) {
            let start = part.page + part.bytes.start;
            let memory = match memory {
                Memory::Symmetric(place) => Memory::Symmetric(ShadowPlace {
                    offset: start,
                    ..place
                }),
                Memory::Private(_) => Memory::Private(start),
            };
            let page = match memory {
                Memory::Symmetric(place) => Some(self.areas.page(place)),
                Memory::Private(addr) => private::page(addr, record.kind.is_of_library()),
            };
            let Some(page) = page else { continue };
            if let Some(old) = page.record_access(part.bytes, record, view) {
                first_conflict.get_or_insert((memory, old));
            }
        }

        if let Some((memory, old)) = first_conflict {
            self.reporter.race(memory, &record, &old);
        }
    }

    /// Records an access to blocks of this process, or with `pe` to the corresponding symmetric
    /// blocks of that PE.
    fn record_blocks(
        &self,
        blocks: ByteBlocks,
        pe: Option<u32>,
        record: ShadowRecord,
        view: View<'_>,
    ) {
        if blocks.nbytes == 0 || blocks.addr == 0 {
            return;
        }

        for i in 0..blocks.n {
            let addr = blocks.addr + i * blocks.stride;
            let memory = match pe {
                Some(pe) => self.place_on(addr, pe).map(Memory::Symmetric),
                None => Some(self.find(addr)),
            };
            if let Some(memory) = memory {
                self.record_access(memory, blocks.nbytes, record, view);
            }
        }
    }

    /// Releases `clock` to the actors that acquire one of the words from now on. Begins a new epoch
    /// of the thread if there are any words.
    fn release(
        &self,
        thread: &mut Thread,
        words: impl IntoIterator<Item = sync_words::Key>,
        clock: &VectorClock,
    ) {
        self.check_pages(thread);

        let mut has_words = false;
        for word in words {
            sync_words::release(&self.areas, word, clock);
            has_words = true;
        }

        // Later accesses of the thread must not count as released with the words.
        if has_words {
            thread.advance();
        }
    }

    /// Adds to the clock of the calling thread those of the threads that have released the object,
    /// or have changed the word of symmetric memory.
    pub fn acquire(&self, object: usize) {
        self.with_thread(|thread| self.join_released(object, &mut thread.clock));
    }

    /// Acquires an object that no other thread acquires, and forgets it.
    pub fn acquire_last(&self, object: usize) {
        self.acquire(object);
        self.forget_object(object);
    }

    /// Forgets an object, which no thread acquires any more.
    pub fn forget_object(&self, object: usize) {
        locked(&self.objects).remove(&object);
    }

    /// Releases the clock of the calling thread to the threads that acquire the object from now on.
    pub fn release_object(&self, object: usize) {
        self.with_thread(|thread| {
            self.release_clock(object, &thread.clock);
            thread.advance();
        });
    }

    /// Adds to `clock` what was released at an object or a word of symmetric memory.
    fn join_released(&self, object: usize, clock: &mut VectorClock) {
        match self.find(object) {
            Memory::Symmetric(place) => {
                sync_words::acquire(&self.areas, sync_words::of_word(place), clock);
            }
            Memory::Private(_) => {
                if let Some(known) = locked(&self.objects).get(&object) {
                    clock.join(known);
                }
            }
        }
    }

    /// Releases `clock` at an object or a word of symmetric memory.
    fn release_clock(&self, object: usize, clock: &VectorClock) {
        if clock.is_empty() {
            return;
        }
        match self.find(object) {
            Memory::Symmetric(place) => {
                sync_words::release(&self.areas, sync_words::of_word(place), clock);
            }
            Memory::Private(_) => {
                let mut objects = locked(&self.objects);
                objects.entry(object).or_default().join(clock);
            }
        }
    }
}
