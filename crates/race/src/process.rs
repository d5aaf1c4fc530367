//! The detector of this process: where memory is, what is in flight, and what each event means.

use crate::access::{AtomicityDomain, ShadowKind, ShadowRecord};
use crate::actors::{ActorRole, ContextFlights, THREAD, Thread, Who};
use crate::areas::{Counter, ShadowPlace, ShadowSegment, SharedAreas, by_page};
use crate::clock::{Actor, Epoch, VectorClock};
use crate::report::{Memory, Reporter};
use crate::shadow::{PAGE, Page, View};
use crate::{meetings, private, sites, sync_words};
use rushmem_race_interface::{
    AccessOperation, ByteBlocks, CheckedAccess, CollectiveEvent, DetectorOpening, FollowedMembers,
    Order,
};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The memory of a PE that is mapped in this process.
struct Mapped {
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
    /// By address.
    mapped: Vec<Mapped>,
    contexts: Mutex<HashMap<u64, ContextFlights>>,
    /// What threads of this process synchronize by.
    objects: Mutex<HashMap<usize, VectorClock>>,
    threads: AtomicU32,
    /// Actors of strands that are done, and their last epochs.
    spare: Mutex<VecDeque<(Actor, Epoch)>>,
    operations: AtomicU64,
    accesses: AtomicU64,
}

static PROCESS: OnceLock<ProcessDetector> = OnceLock::new();
static IS_ACTIVE: AtomicBool = AtomicBool::new(false);
/// The program reports its loads, stores and threads.
static IS_INSTRUMENTED: AtomicBool = AtomicBool::new(false);

/// What the number of a task has as an object.
const TASK: usize = 0xf << 60;
/// Actors that wait before they serve another strand: races between the two are not found.
const SPARE: usize = 256;

/// The object of all threads whose order is not known.
const EVERYTHING: usize = 0;

/// The program was compiled for the detector.
pub fn is_instrumented() {
    IS_INSTRUMENTED.store(true, Relaxed);
}

/// The detector, between init and finalize.
#[inline]
pub fn active() -> Option<&'static ProcessDetector> {
    if IS_ACTIVE.load(Relaxed) { PROCESS.get() } else { None }
}

/// The exit status of a process that would end with 0, if a race was found, by any PE.
pub fn status() -> Option<i32> {
    let process = PROCESS.get()?;
    let is_found = process.areas.counter(Counter::Reported).load(Relaxed) > 0;
    (is_found && process.status != 0).then_some(process.status)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The bytes of an access.
#[derive(Clone, Copy)]
enum Where {
    Symmetric(ShadowPlace),
    Private(usize),
}

/// A kind of access at a place of the program.
#[derive(Clone, Copy)]
struct How {
    kind: ShadowKind,
    site: u32,
    nbytes: usize,
}

impl How {
    fn record(self, actor: Actor, epoch: Epoch) -> ShadowRecord {
        let nbytes = self.nbytes.try_into().unwrap_or(u32::MAX);
        ShadowRecord { actor, epoch, mask: 0, kind: self.kind, site: self.site, nbytes }
    }
}

impl ProcessDetector {
    /// Starts to detect, with the addresses of the segments of all PEs.
    pub fn start(
        areas: SharedAreas,
        opening: &DetectorOpening,
        heaps: &[usize],
        statics: &[usize],
    ) {
        let (me, nbytes) = (opening.pe, [opening.heap_bytes, opening.static_bytes]);
        let of = |starts: &[usize], nbytes: usize, segment| {
            let range = |start: usize| start..start + nbytes;
            let all = (0..).zip(starts).filter(|(_, start)| **start != 0);
            all.map(|(pe, start)| Mapped { addresses: range(*start), pe, segment }).collect()
        };
        let mut mapped: Vec<Mapped> = of(heaps, nbytes[0], ShadowSegment::Heap);
        mapped.extend::<Vec<Mapped>>(of(statics, nbytes[1], ShadowSegment::Static));
        mapped.sort_by_key(|mapped| mapped.addresses.start);
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
            spare: Mutex::default(),
            operations: AtomicU64::new(0),
            accesses: AtomicU64::new(0),
        };
        let _ = PROCESS.set(process);
        IS_ACTIVE.store(true, Relaxed);
    }

    /// Ends it: whether this was the last PE, and what was checked by all of them.
    pub fn close(&self) {
        IS_ACTIVE.store(false, Relaxed);
        let count = |counter, n: &AtomicU64| {
            self.areas.counter(counter).fetch_add(n.swap(0, Relaxed), Relaxed);
        };
        count(Counter::Operations, &self.operations);
        count(Counter::Accesses, &self.accesses);
        let closed = self.areas.counter(Counter::Closed).fetch_add(1, Relaxed) + 1;
        if closed != u64::from(self.n_pes) {
            return;
        }
        let get = |counter| self.areas.counter(counter).load(Relaxed);
        let (operations, accesses) = (get(Counter::Operations), get(Counter::Accesses));
        let races = match get(Counter::Reported) {
            0 => "no race".to_owned(),
            1 => "1 race".to_owned(),
            n => format!("{n} races"),
        };
        let incomplete = match get(Counter::Full) {
            0 => "",
            _ => "; a table of the detector was full, so that not all was checked",
        };
        eprintln!(
            "rushmem: {races} in {operations} operations and {accesses} loads and stores{incomplete}"
        );
    }

    /// Where an address of this process is.
    #[inline]
    fn find(&self, addr: usize) -> Where {
        let index = self.mapped.partition_point(|mapped| mapped.addresses.start <= addr);
        let mapped = index.checked_sub(1).and_then(|index| self.mapped.get(index));
        match mapped.filter(|mapped| mapped.addresses.contains(&addr)) {
            Some(Mapped { addresses, pe, segment }) => {
                let offset = addr - addresses.start;
                Where::Symmetric(ShadowPlace { pe: *pe, segment: *segment, offset })
            }
            None => Where::Private(addr),
        }
    }

    /// Symmetric bytes at an address of this PE's, on another one.
    fn on(&self, addr: usize, pe: u32) -> Option<ShadowPlace> {
        match self.find(addr) {
            Where::Symmetric(place) => Some(ShadowPlace { pe, ..place }),
            Where::Private(_) => None,
        }
    }

    /// Calls `f` with the calling thread. Not if the thread is in the detector already.
    fn with_thread<R>(&self, f: impl FnOnce(&mut Thread) -> R) -> Option<R> {
        let entered = THREAD.try_with(|thread| {
            let mut thread = thread.try_borrow_mut().ok()?;
            if thread.actor == 0 {
                let number = self.threads.fetch_add(1, Relaxed);
                let who = Who { pe: self.me, role: ActorRole::Thread(number) };
                let actor = who.enroll(&self.areas)?;
                thread.actor = actor;
                thread.number = number;
                thread.clock.raise(actor, 1);
            }
            Some(f(&mut thread))
        });
        entered.ok().flatten()
    }

    /// The same for a call of the library. The order of threads of a program that does not report
    /// it is that of their calls.
    fn with_caller(&self, f: impl FnOnce(&mut Thread)) {
        if self.areas.counter(Counter::Full).load(Relaxed) != 0 {
            return;
        }
        self.with_thread(|thread| {
            if IS_INSTRUMENTED.load(Relaxed) {
                return f(thread);
            }
            if let Some(known) = locked(&self.objects).get(&EVERYTHING) {
                thread.clock.join(known);
            }
            f(thread);
            locked(&self.objects).entry(EVERYTHING).or_default().join(&thread.clock);
        });
    }

    /// Notes an access to contiguous bytes.
    fn note(&self, at: Where, nbytes: usize, record: ShadowRecord, view: View<'_>) {
        let mut conflict = None;
        match at {
            Where::Symmetric(place) => {
                for (start, bytes) in by_page(place.offset, nbytes) {
                    let offset = start + bytes.start;
                    let page = self.areas.page(ShadowPlace { offset, ..place });
                    if let Some(old) = page.note(bytes.start, bytes.end, record, view) {
                        conflict = conflict
                            .or(Some((Memory::Symmetric(ShadowPlace { offset, ..place }), old)));
                    }
                }
            }
            Where::Private(addr) => {
                for (start, bytes) in by_page(addr, nbytes) {
                    let page = private::page(start, record.kind.is_of_library());
                    let Some(page) = page else { continue };
                    if let Some(old) = page.note(bytes.start, bytes.end, record, view) {
                        conflict = conflict.or(Some((Memory::Private(start + bytes.start), old)));
                    }
                }
            }
        }
        if let Some((memory, old)) = conflict {
            self.reporter.race(memory, &record, &old);
        }
    }

    /// Notes an access to blocks of this process, or of symmetric memory of `pe`.
    fn note_blocks(
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
            let at = match pe {
                Some(pe) => self.on(addr, pe).map(Where::Symmetric),
                None => Some(self.find(addr)),
            };
            if let Some(at) = at {
                self.note(at, blocks.nbytes, record, view);
            }
        }
    }

    /// An access of the library begins.
    pub fn begin(&self, access: &CheckedAccess) {
        let call = access.call.get();
        // The words of a lock are the library's.
        if call.ends_with("_lock") {
            return;
        }
        self.operations.fetch_add(1, Relaxed);
        self.with_caller(|thread| {
            let site = sites::of_call(&self.areas, call);
            let mut contexts = locked(&self.contexts);
            let context = contexts.entry(access.ctx).or_default();
            let nbytes = access.remote.nbytes * access.remote.n;
            let how = |kind| How { kind, site, nbytes };
            let word = || self.on(access.remote.addr, access.pe).map(sync_words::of_word);
            let own = thread.epoch();
            match access.operation {
                AccessOperation::Put | AccessOperation::PutNbi | AccessOperation::Update => {
                    let CheckedAccess { pe, signal, .. } = *access;
                    let Some(flight) = context.puts(&self.areas, self.me, pe, signal) else {
                        return;
                    };
                    let (actor, epoch) = (flight.actor, flight.issue());
                    let fenced = context.fenced(pe, &thread.clock);
                    let view = View { clock: &thread.clock, fenced: &fenced };
                    let kind = match access.operation {
                        AccessOperation::Update => atomic(access, call, nbytes),
                        _ => ShadowKind::WRITE,
                    };
                    self.note_blocks(access.remote, Some(pe), how(kind).record(actor, epoch), view);
                    let reads = match access.operation {
                        AccessOperation::PutNbi => how(ShadowKind::READ).record(actor, epoch),
                        _ => how(ShadowKind::READ).record(thread.actor, own),
                    };
                    self.note_blocks(access.local, None, reads, view);
                    let mut released = thread.clock.clone();
                    fenced.iter().for_each(|&(actor, epoch)| released.raise(actor, epoch));
                    if signal != 0 {
                        let kind = ShadowKind::atomic(AtomicityDomain::Signal, 8, false, true);
                        let record = How { kind, site, nbytes: 8 }.record(actor, epoch);
                        self.note_blocks(ByteBlocks::one(signal, 8), Some(pe), record, view);
                        released.raise(actor, epoch);
                        let word = self.on(signal, pe).map(sync_words::of_word);
                        self.release(thread, word, &released);
                    } else if nbytes <= 8 {
                        self.release(thread, word(), &released);
                    }
                }
                AccessOperation::Get => {
                    let view = View { clock: &thread.clock, fenced: &[] };
                    let (reads, writes) = (how(ShadowKind::READ), how(ShadowKind::WRITE));
                    let reads = reads.record(thread.actor, own);
                    self.note_blocks(access.remote, Some(access.pe), reads, view);
                    let writes = writes.record(thread.actor, own);
                    self.note_blocks(access.local, None, writes, view);
                }
                AccessOperation::Fetch => {
                    let view = View { clock: &thread.clock, fenced: &[] };
                    let record = how(atomic(access, call, nbytes)).record(thread.actor, own);
                    self.note_blocks(access.remote, Some(access.pe), record, view);
                    if !access.reads_only {
                        let mut released = thread.clock.clone();
                        context
                            .fenced(access.pe, &thread.clock)
                            .iter()
                            .for_each(|&(a, e)| released.raise(a, e));
                        self.release(thread, word(), &released);
                    }
                }
                AccessOperation::GetNbi => {
                    let Some(flight) = context.gets(&self.areas, self.me, access.pe) else {
                        return;
                    };
                    let (actor, epoch) = (flight.actor, flight.issue());
                    let view = View { clock: &thread.clock, fenced: &[] };
                    let reads = how(ShadowKind::READ).record(actor, epoch);
                    self.note_blocks(access.remote, Some(access.pe), reads, view);
                    let writes = how(ShadowKind::WRITE).record(actor, epoch);
                    self.note_blocks(access.local, None, writes, view);
                }
                AccessOperation::FetchNbi => {
                    // A fence orders the operation, but not what it fetches.
                    let Some(flight) = context.gets(&self.areas, self.me, access.pe) else {
                        return;
                    };
                    let writes = how(ShadowKind::WRITE).record(flight.actor, flight.issue());
                    let view = View { clock: &thread.clock, fenced: &[] };
                    self.note_blocks(access.local, None, writes, view);
                    let flight = context.puts(&self.areas, self.me, access.pe, 0);
                    let Some(flight) = flight else { return };
                    let record = how(atomic(access, call, nbytes));
                    let record = record.record(flight.actor, flight.issue());
                    let fenced = context.fenced(access.pe, &thread.clock);
                    let view = View { clock: &thread.clock, fenced: &fenced };
                    self.note_blocks(access.remote, Some(access.pe), record, view);
                    if !access.reads_only {
                        let mut released = thread.clock.clone();
                        fenced.iter().for_each(|&(actor, epoch)| released.raise(actor, epoch));
                        self.release(thread, word(), &released);
                    }
                    context.fetched.extend(word());
                }
            }
        });
    }

    fn release(&self, thread: &mut Thread, word: Option<sync_words::Key>, clock: &VectorClock) {
        if let Some(word) = word {
            sync_words::release(&self.areas, word, clock);
            thread.advance();
        }
    }

    /// A blocking access is done: who reads a word by an atomic operation knows what those knew who
    /// have changed it.
    pub fn end(&self, access: &CheckedAccess) {
        if access.operation != AccessOperation::Fetch || access.call.get().ends_with("_lock") {
            return;
        }
        self.with_caller(|thread| {
            if let Some(place) = self.on(access.remote.addr, access.pe) {
                let word = sync_words::of_word(place);
                sync_words::acquire(&self.areas, word, &mut thread.clock);
            }
        });
    }

    /// A fence, or a quiet is done.
    pub fn order(&self, order: Order, ctx: u64, pe: u32) {
        self.with_caller(|thread| {
            let mut contexts = locked(&self.contexts);
            let Some(context) = contexts.get_mut(&ctx) else { return };
            match order {
                Order::Fence => {
                    context.fence(thread);
                    thread.advance();
                }
                Order::PeQuiet => context.quiet(Some(pe), &mut thread.clock),
                Order::Quiet => {
                    context.quiet(None, &mut thread.clock);
                    for word in context.fetched.drain(..) {
                        sync_words::acquire(&self.areas, word, &mut thread.clock);
                    }
                }
            }
        });
    }

    /// A wait has seen a word of this PE: what was written to it is done, and what came before.
    pub fn seen(&self, addr: usize) {
        self.with_caller(|thread| {
            let Some(place) = self.on(addr, self.me) else { return };
            sync_words::acquire(&self.areas, sync_words::of_word(place), &mut thread.clock);
            let (at, first) = (place.offset % PAGE, place.offset % 8);
            self.areas.page(place).forget(at, at + 1, |old| {
                let is_word = old.kind.is_of_library() && old.nbytes <= 8 && old.kind.writes();
                is_word && old.mask & 1 << first != 0
            });
        });
    }

    /// This PE enters a collective.
    pub fn enter(&self, collective: &CollectiveEvent) {
        self.with_caller(|thread| {
            meetings::enter(&self.areas, collective, &thread.clock);
            thread.advance();
        });
    }

    /// It leaves the collective.
    pub fn leave(&self, collective: &CollectiveEvent) {
        self.operations.fetch_add(1, Relaxed);
        self.with_caller(|thread| {
            let CollectiveEvent { source, dest, .. } = *collective;
            let site = match source.addr | dest.addr {
                0 => 0,
                _ => sites::of_call(&self.areas, collective.call.get()),
            };
            let how =
                |kind, blocks: ByteBlocks| How { kind, site, nbytes: blocks.nbytes * blocks.n };
            let reads = how(ShadowKind::READ, source).record(thread.actor, thread.epoch());
            let view = View { clock: &thread.clock, fenced: &[] };
            self.note_blocks(source, None, reads, view);
            let members = match collective.follows {
                FollowedMembers::All => 0..collective.n,
                FollowedMembers::Member => collective.member..collective.member + 1,
                FollowedMembers::Below => 0..collective.member,
            };
            meetings::leave(&self.areas, collective, members, &mut thread.clock);
            let writes = how(ShadowKind::WRITE, dest).record(thread.actor, thread.epoch());
            let view = View { clock: &thread.clock, fenced: &[] };
            self.note_blocks(dest, None, writes, view);
        });
    }

    /// This PE gets a lock, or gives it up.
    pub fn lock(&self, addr: usize, is_taken: bool) {
        self.with_caller(|thread| {
            let Some(key) = self.on(addr, self.me).map(sync_words::of_lock) else { return };
            if is_taken {
                sync_words::acquire(&self.areas, key, &mut thread.clock);
            } else {
                let clock = thread.clock.clone();
                self.release(thread, Some(key), &clock);
            }
        });
    }

    /// A block of the heap is allocated or freed.
    pub fn block(&self, call: &'static str, addr: usize, nbytes: usize, is_allocated: bool) {
        self.with_caller(|thread| {
            let Some(place) = self.on(addr, self.me) else { return };
            let site = sites::of_call(&self.areas, call);
            if is_allocated {
                self.reporter.allocated(place.offset, nbytes, site);
                for (start, bytes) in by_page(place.offset, nbytes) {
                    let page = self.areas.page(ShadowPlace { offset: start, ..place });
                    page.forget(bytes.start, bytes.end, |_| true);
                }
                return;
            }
            let record =
                How { kind: ShadowKind::WRITE, site, nbytes }.record(thread.actor, thread.epoch());
            let view = View { clock: &thread.clock, fenced: &[] };
            self.note(Where::Symmetric(place), nbytes, record, view);
        });
    }

    /// The program loads or stores.
    #[inline]
    pub fn touch(&self, addr: usize, nbytes: usize, kind: ShadowKind, pc: usize) {
        let at = self.find(addr);
        if nbytes == 0 || (matches!(at, Where::Private(_)) && !private::is_watched()) {
            return;
        }
        self.touch_at(at, nbytes, kind, pc);
    }

    fn touch_at(&self, at: Where, nbytes: usize, kind: ShadowKind, pc: usize) {
        let page = match at {
            Where::Symmetric(place) => Some((self.areas.page(place), place.offset)),
            Where::Private(addr) => private::page(addr, false).map(|page| (page, addr)),
        };
        let Some((page, at_byte)) = page else { return };
        self.with_thread(|thread| {
            self.accesses.fetch_add(1, Relaxed);
            let record = How { kind, site: 0, nbytes }.record(thread.actor, thread.epoch());
            if is_known(page, at_byte, nbytes, record) {
                return;
            }
            let record = ShadowRecord { site: sites::of_address(&self.areas, pc), ..record };
            let view = View { clock: &thread.clock, fenced: &[] };
            self.note(at, nbytes, record, view);
        });
    }

    /// A new strand of a thread, which knows what `clock` knows.
    fn strand(&self, number: u32, clock: &VectorClock) -> Option<Thread> {
        let mut spare = locked(&self.spare);
        let reused = if spare.len() >= SPARE { spare.pop_front() } else { None };
        let who = Who { pe: self.me, role: ActorRole::Thread(number) };
        let (actor, last) = reused.or_else(|| Some((who.enroll(&self.areas)?, 0)))?;
        let mut clock = clock.clone();
        clock.raise(actor, last + 1);
        Some(Thread { actor, clock, number, before_strands: None })
    }

    /// The strand is done: its actor may serve another one.
    fn retire(&self, strand: &Thread) {
        locked(&self.spare).push_back((strand.actor, strand.epoch()));
    }

    /// The calling thread begins a section, unless there is none left, whose accesses are ordered
    /// with those of the thread's other sections no more than with those of other threads.
    pub fn begin_strand(&self, is_one: bool) {
        self.with_thread(|thread| {
            let (outer, mut done) = match thread.before_strands.take() {
                Some(before) => {
                    self.retire(thread);
                    (before.0, before.1)
                }
                None => (std::mem::take(thread), VectorClock::default()),
            };
            if outer.actor != thread.actor {
                done.join(&thread.clock);
            }
            let strand = if is_one { self.strand(outer.number, &outer.clock) } else { None };
            *thread = match strand {
                Some(strand) => Thread { before_strands: Some(Box::new((outer, done))), ..strand },
                None => after(outer, &done),
            };
        });
    }

    /// The calling thread has no section any more, and knows what was done in them.
    pub fn end_strands(&self) {
        self.with_thread(|thread| {
            if thread.before_strands.is_some() {
                self.retire(thread);
            }
            if let Some(before) = thread.before_strands.take() {
                let (outer, mut done) = *before;
                done.join(&thread.clock);
                *thread = after(outer, &done);
            }
        });
    }

    /// The calling thread makes a task.
    pub fn make_task(&self, number: usize) {
        self.release_object(TASK | number);
    }

    /// It begins the task, and leaves what it did aside.
    pub fn enter_task(&self, number: usize) -> Option<Thread> {
        let known = locked(&self.objects).remove(&(TASK | number)).unwrap_or_default();
        self.with_thread(|thread| {
            let strand = self.strand(thread.number, &known)?;
            Some(std::mem::replace(thread, strand))
        })?
    }

    /// The task is done: who acquires `object` knows of it.
    pub fn leave_task(&self, outer: Option<Thread>, object: usize) {
        self.release_object(object);
        let Some(outer) = outer else { return };
        self.with_thread(|thread| {
            self.retire(thread);
            *thread = outer;
        });
    }

    /// The calling thread knows what those knew who have released the object, or have changed the
    /// word of symmetric memory.
    pub fn acquire(&self, object: usize) {
        self.with_thread(|thread| {
            if let Where::Symmetric(place) = self.find(object) {
                let word = sync_words::of_word(place);
                return sync_words::acquire(&self.areas, word, &mut thread.clock);
            }
            if let Some(known) = locked(&self.objects).get(&object) {
                thread.clock.join(known);
            }
        });
    }

    /// Who acquires the object knows what the calling thread knows.
    pub fn release_object(&self, object: usize) {
        self.with_thread(|thread| {
            if let Where::Symmetric(place) = self.find(object) {
                let clock = thread.clock.clone();
                return self.release(thread, Some(sync_words::of_word(place)), &clock);
            }
            locked(&self.objects).entry(object).or_default().join(&thread.clock);
            thread.advance();
        });
    }
}

/// A thread after its strands.
fn after(mut outer: Thread, done: &VectorClock) -> Thread {
    outer.clock.join(done);
    outer.advance();
    outer
}

/// Whether an access to one granule is remembered already.
#[inline]
fn is_known(page: Page<'_>, at: usize, nbytes: usize, record: ShadowRecord) -> bool {
    let (in_page, first) = (at % PAGE, at % 8);
    if first + nbytes > 8 {
        return false;
    }
    let mask = ((1u16 << nbytes) - 1) << first;
    page.knows(in_page, &ShadowRecord { mask: mask as u8, ..record })
}

/// The kind of an atomic operation: its type is a part of the name of the routine.
fn atomic(access: &CheckedAccess, call: &str, nbytes: usize) -> ShadowKind {
    let domain = match access.of_shared {
        _ if call.contains("_signal_") => AtomicityDomain::Signal,
        true => AtomicityDomain::Shared,
        false => AtomicityDomain::World,
    };
    let is_float = call.contains("float") || call.contains("double") || call.contains("real");
    ShadowKind::atomic(domain, nbytes, is_float, !access.reads_only)
}
