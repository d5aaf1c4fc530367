//! Loads and stores of the library's own words in the internal areas of all PEs. This CPU accesses
//! the areas that are mapped here, and the network accesses the others.
//!
//! A writer stores a flag with release order, then rings the doorbell of the reader's PE if threads
//! may sleep there; a reader loads the flag with acquire order. `memory::areas` has the offset of
//! each word in an area.
#![allow(unsafe_code)]

use crate::access::endpoints::Endpoints;
use crate::net::copy::{CopyBetweenPes, Fetch, fetch};
use crate::net::doorbell::Doorbell;
use crate::net::network::{self, LIBRARY_CALL};
use crate::observers;
use rushmem_explain::writes::RING_BYTES;
use rushmem_heap::NodeMemory;
use rushmem_pe::digest::digest_of_text;
use rushmem_pe::memory::areas::{Areas, CounterPair};
use rushmem_pe::memory::images::{Deltas, Images};
use rushmem_pe::memory::range::SymmetricRange;
use rushmem_transport::{
    AmoOp, AmoRequest, Completion, Pe, Put, RemoteAddr, Segment, SignalOrder, SourceBuf,
};
use rustix::thread::futex;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// The delta of this PE's own area.
const OWN: isize = 0;

/// The internal areas of this PE and of its mapped peers.
pub struct FlagArea {
    areas: Areas,
    base: *mut u8,
    nbytes: usize,
    deltas: Deltas,
    /// The images of ranges of this area, with the same deltas.
    images: &'static Images,
    /// The endpoints by which it reaches the areas that are not mapped here.
    endpoints: &'static Endpoints,
}

// SAFETY: `base` points to a range that stays mapped for the life of the process, as `new`
// requires, and all accesses to it are atomic operations and raw copies. Nothing of it belongs to
// one thread.
unsafe impl Send for FlagArea {}
// SAFETY: as for `Send`, whichever thread makes the accesses.
unsafe impl Sync for FlagArea {}

impl FlagArea {
    /// Returns the areas in `memory`, which stays mapped for the life of the process. `images` are
    /// those of the internal area, which is behind the heap of a PE and has the same deltas.
    pub fn new(
        memory: &'static NodeMemory,
        areas: Areas,
        images: &'static Images,
        endpoints: &'static Endpoints,
    ) -> Self {
        let nbytes = memory.layout().internal_bytes();
        assert!(areas.nbytes() <= nbytes, "the internal area is too small");
        FlagArea {
            areas,
            base: memory.internal(),
            nbytes,
            deltas: images.deltas(),
            images,
            endpoints,
        }
    }

    /// Claims a warning for this PE. Returns false if a PE of this node has claimed the same text.
    /// The node remembers the digests of its first two warnings; PEs may repeat any other.
    pub fn claim_warning(&self, text: &str) -> bool {
        let digest = digest_of_text(text);
        let first = self.first_of_node();

        for offset in self.areas.warnings() {
            let word = self.word(self.mapped(first), offset);
            // Relaxed: the word publishes only itself.
            match word.compare_exchange(0, digest, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(other) if other == digest => return false,
                Err(_) => {}
            }
        }

        true
    }

    /// Wakes threads of this PE that sleep on its doorbell, after a transport has changed its
    /// memory.
    pub(crate) fn ring_own(&self) {
        self.doorbell(OWN).ring(wake);
    }

    /// Returns the endpoints by which it reaches the areas that are not mapped here.
    pub(crate) fn endpoints(&self) -> &'static Endpoints {
        self.endpoints
    }

    /// Returns the offsets of the parts of an internal area.
    #[inline]
    pub fn areas(&self) -> &Areas {
        &self.areas
    }

    /// Stores `value` in the flag at `offset` of `pe` and wakes the threads of `pe` that sleep. The
    /// store follows all earlier stores of this CPU, or over a network all earlier puts and signals
    /// of the library to `pe`.
    #[inline]
    pub fn raise(&self, pe: Pe, offset: usize, value: u64) {
        if self.raise_unrung(pe, offset, value, || AFTER_ALL) {
            self.ring(pe);
        }
    }

    /// Stores `value` in the flag at `offset` of `pe`, after all that [`raise`](FlagArea::raise)
    /// follows, and wakes no thread. Returns true if the caller must [ring](FlagArea::ring) before
    /// it waits for long; a network wakes the PE itself. `order` tells a network whether this is
    /// the flag's next value.
    #[inline]
    pub(crate) fn raise_unrung(
        &self,
        pe: Pe,
        offset: usize,
        value: u64,
        order: impl FnOnce() -> SignalOrder,
    ) -> bool {
        match self.delta(pe) {
            Some(delta) => {
                self.word(delta, offset).store(value, Ordering::Release);
                true
            }
            None => {
                signal_remote(self.endpoints, pe, flag_signal(offset, value), order());
                false
            }
        }
    }

    /// Adds 1 to a counter of `pe`, in the order of [`raise`](FlagArea::raise), and wakes the
    /// threads of `pe` that sleep.
    pub fn count(&self, pe: Pe, counters: CounterPair) {
        match self.delta(pe) {
            Some(delta) => {
                // Release: a PE that reads a count sees what all the PEs that it counts have
                // written before. Each addition keeps what the earlier ones published.
                self.word(delta, counters.by_cpu)
                    .fetch_add(1, Ordering::Release);
                self.doorbell(delta).ring(wake);
            }
            None => signal_remote(self.endpoints, pe, count_signal(counters), AFTER_ALL),
        }
    }

    /// Copies `source` to `dest` on `pe`, then [counts](FlagArea::count) there.
    pub(crate) fn put_and_count(
        &self,
        pe: Pe,
        source: SymmetricRange,
        dest: SymmetricRange,
        counters: CounterPair,
    ) {
        if self.delta(pe).is_some() || source.nbytes() == 0 {
            source.copy_to(self.endpoints, pe, dest);
            self.count(pe, counters);
        } else {
            put_signal_remote(self.endpoints, pe, source, dest, count_signal(counters));
        }
    }

    /// Copies `source` to `dest` on `pe`, then [raises](FlagArea::raise) a flag there.
    #[inline]
    pub(crate) fn put_and_raise(
        &self,
        pe: Pe,
        source: SymmetricRange,
        dest: SymmetricRange,
        offset: usize,
        value: u64,
    ) {
        if self.delta(pe).is_some() || source.nbytes() == 0 {
            source.copy_to(self.endpoints, pe, dest);
            self.raise(pe, offset, value);
        } else {
            put_signal_remote(self.endpoints, pe, source, dest, flag_signal(offset, value));
        }
    }

    /// Adds 1 to the counter of the mapped `pe`. Returns true if this PE is the last of `n` to do
    /// so, and then resets the counter to 0.
    pub(crate) fn count_in(&self, pe: Pe, offset: usize, n: u32) -> bool {
        let counter = self.word(self.mapped(pe), offset);
        // Release and acquire: the last PE sees all that the others wrote before they counted.
        let is_last = counter.fetch_add(1, Ordering::AcqRel) + 1 == u64::from(n);
        if is_last {
            // Relaxed: no PE counts again before the last one has released it.
            counter.store(0, Ordering::Relaxed);
        }
        is_last
    }

    /// Returns the first PE of this node, in whose area the words are that the node's PEs share.
    pub fn first_of_node(&self) -> Pe {
        let n_pes = self.areas.n_pes() as u32;
        (0..n_pes)
            .map(Pe)
            .find(|pe| self.is_mapped(*pe))
            .expect("a PE has its own area")
    }

    /// Claims a word of the mapped `pe` by adding 1 to it. Returns true if no PE had claimed it.
    pub fn claim(&self, pe: Pe, offset: usize) -> bool {
        // Relaxed: a claim decides which PE prints a message, and publishes nothing.
        let n_before = self
            .word(self.mapped(pe), offset)
            .fetch_add(1, Ordering::Relaxed);
        n_before == 0
    }

    /// Stores a flag of the mapped `pe` with release order; wakes no thread.
    #[inline]
    pub fn release(&self, pe: Pe, offset: usize, value: u64) {
        self.word(self.mapped(pe), offset)
            .store(value, Ordering::Release);
    }

    /// Loads a flag of the mapped `pe` with acquire order.
    #[inline]
    pub fn flag_of(&self, pe: Pe, offset: usize) -> u64 {
        self.word(self.mapped(pe), offset).load(Ordering::Acquire)
    }

    fn mapped(&self, pe: Pe) -> isize {
        self.delta(pe).expect("PEs that share memory use this word")
    }

    /// Wakes the threads of `pe` that sleep on its doorbell, after a word of `pe` was changed. If
    /// `pe` is not mapped, its transport wakes them.
    #[inline]
    pub fn ring(&self, pe: Pe) {
        if let Some(delta) = self.delta(pe) {
            self.doorbell(delta).ring(wake);
        }
    }

    /// Loads a flag of this PE with acquire order.
    #[inline]
    pub fn flag(&self, offset: usize) -> u64 {
        self.own_word(offset).load(Ordering::Acquire)
    }

    /// Returns the word of a flag of this PE, for a thread that waits for it.
    #[inline]
    pub fn awaited(&'static self, offset: usize) -> &'static AtomicU64 {
        self.own_word(offset)
    }

    /// Stores words in `pe`'s area from `offset` on. They are visible to `pe` once it has seen a
    /// flag that this PE raises later.
    pub fn write(&self, pe: Pe, offset: usize, words: &[u64]) {
        if let Some(delta) = self.delta(pe) {
            // Relaxed: the flag that announces the words orders them.
            for (i, &word) in words.iter().enumerate() {
                self.word(delta, offset + i * 8)
                    .store(word, Ordering::Relaxed);
            }
            return;
        }

        let nbytes = size_of_val(words);
        let put = Put {
            remote: remote(offset),
            // SAFETY: `words` has `nbytes` bytes, and is borrowed during this call. The put has
            // read them when it returns, since its completion is `Now`.
            local: unsafe { SourceBuf::new(words.as_ptr().cast(), nbytes) },
            completion: Completion::Now,
        };
        let done = self.endpoints.of_library().put(pe, put);
        network::or_fail(LIBRARY_CALL, done);
    }

    /// Loads words of this PE's area from `offset` on. The caller has seen the flag that
    /// announces them.
    pub fn read(&self, offset: usize, words: &mut [u64]) {
        for (i, word) in words.iter_mut().enumerate() {
            *word = self.own_word(offset + i * 8).load(Ordering::Relaxed);
        }
    }

    /// Returns the word at `offset` of each of `pes`. Words that are not mapped here are read
    /// over the network.
    pub fn words_of(&self, pes: impl Iterator<Item = Pe>, offset: usize) -> Vec<u64> {
        let pes: Vec<Pe> = pes.collect();
        let n_apart = pes.iter().filter(|pe| self.delta(**pe).is_none()).count();

        // One fetch for all, so that the reads over the network are in flight together.
        let mut fetched = vec![MaybeUninit::uninit(); n_apart * 8];
        let apart = pes.iter().filter(|pe| self.delta(**pe).is_none());
        let copies = apart
            .zip(fetched.chunks_exact_mut(8))
            .map(|(&pe, into)| Fetch {
                pe,
                source: self.range(offset, 8),
                dest: SymmetricRange::of_private(into),
            });
        fetch(self.endpoints, copies);
        let mut fetched = fetched.chunks_exact(8).map(|bytes| {
            // SAFETY: `fetch` has written all bytes.
            u64::from_ne_bytes(std::array::from_fn(|i| unsafe { bytes[i].assume_init() }))
        });

        let mut words = Vec::with_capacity(pes.len());
        for pe in pes {
            let word = match self.delta(pe) {
                // Relaxed, as the order of a fetch: a caller that needs more adds a fence.
                Some(delta) => self.word(delta, offset).load(Ordering::Relaxed),
                None => fetched.next().expect("one for each PE that is apart"),
            };
            words.push(word);
        }
        words
    }

    /// Returns true if the area of `pe` is mapped here.
    #[inline]
    pub fn is_mapped(&self, pe: Pe) -> bool {
        self.delta(pe).is_some()
    }

    /// Returns a copy of `nbytes` bytes of `pe`'s area, which `pe` may be writing.
    pub fn bytes_of(&self, pe: Pe, offset: usize, nbytes: usize) -> Vec<u8> {
        self.range(offset, nbytes).read(self.endpoints, pe)
    }

    /// Sleeps once on the doorbell of this PE, unless `ready`, which loads flags of this PE,
    /// returns true. `sleep` is given the word of the doorbell and its value; it returns when the
    /// value has changed, or earlier.
    pub(crate) fn sleep_unless(
        &self,
        ready: impl FnOnce() -> bool,
        sleep: impl FnOnce(&AtomicU32, u32),
    ) {
        self.doorbell(OWN).sleep_unless(ready, sleep);
    }

    /// Stores the status of this PE: `words` from the second word of the slot on. While it stores
    /// them, the first word is odd, so that a reader discards what it has read
    /// (`rushmem_explain::status_slot`).
    pub fn write_status(&self, words: &[u64]) {
        let offset = self.areas.status();
        let sequence = self.own_word(offset);
        // Relaxed: the caller has the lock of the status, so no other thread changes the number.
        let before = sequence.load(Ordering::Relaxed);

        // The fence keeps the words behind the odd number: a release store orders only what is
        // before it.
        sequence.store(before + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        self.write_own(offset + 8, words);
        // Release: a reader that sees the even number sees all the words.
        sequence.store(before + 2, Ordering::Release);
    }

    /// Returns the ring of the last writes of this PE (`rushmem_explain::writes`).
    pub fn writes(&self) -> &'static [AtomicU64] {
        let start = self.own(self.areas.writes(), RING_BYTES).cast();
        // SAFETY: the range is in the area, as `own` asserts, aligned to a cache line, mapped for
        // the life of the process, and only accessed by atomic operations.
        unsafe { std::slice::from_raw_parts(start, RING_BYTES / size_of::<u64>()) }
    }

    /// Returns the range of `nbytes` bytes at `offset` of this PE's area, for data.
    #[inline]
    pub fn range(&self, offset: usize, nbytes: usize) -> SymmetricRange {
        // SAFETY: the bytes are in the internal area, as `own` asserts.
        unsafe {
            let start = self.own(offset, nbytes);
            SymmetricRange::new(self.images, offset, start, nbytes)
        }
    }

    /// Stores words of this PE's area, with relaxed order.
    pub fn write_own(&self, offset: usize, words: &[u64]) {
        // Relaxed: the caller orders them by a flag, or by the number of the status.
        for (i, &word) in words.iter().enumerate() {
            self.own_word(offset + i * 8).store(word, Ordering::Relaxed);
        }
    }

    /// Returns a pointer to `offset` of this PE's area, in which `nbytes` bytes follow.
    fn own(&self, offset: usize, nbytes: usize) -> *mut u8 {
        assert!(offset + nbytes <= self.nbytes, "beyond the internal area");
        self.base.wrapping_add(offset)
    }

    #[inline]
    fn delta(&self, pe: Pe) -> Option<isize> {
        self.deltas.of(pe)
    }

    fn own_word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: `word_address` asserts that the word is in the area and aligned. The area stays
        // mapped, as `new` requires, and every access to its words is atomic.
        unsafe { AtomicU64::from_ptr(self.word_address(offset, OWN).cast()) }
    }

    fn word(&self, delta: isize, offset: usize) -> &AtomicU64 {
        // SAFETY: `word_address` asserts that the word is in an area and aligned; a delta is that
        // of a PE whose area is mapped for the life of the process. Every access to its words is
        // atomic.
        unsafe { AtomicU64::from_ptr(self.word_address(offset, delta).cast()) }
    }

    fn doorbell(&self, delta: isize) -> Doorbell<'_> {
        let words: *mut u32 = self.word_address(0, delta).cast();
        // SAFETY: the first 8 bytes of an area are its doorbell: two aligned words of 4 bytes that
        // stay mapped, and to which every access is atomic.
        let rings = unsafe { AtomicU32::from_ptr(words) };
        // SAFETY: as above, for the second word.
        let sleepers = unsafe { AtomicU32::from_ptr(words.wrapping_add(1)) };
        Doorbell { rings, sleepers }
    }

    fn word_address(&self, offset: usize, delta: isize) -> *mut u8 {
        assert!(offset.is_multiple_of(8), "a word is aligned");
        self.own(offset, 8).wrapping_offset(delta)
    }
}

/// Wakes all threads that sleep on a word, in any process.
pub fn wake(word: &AtomicU32) {
    // All of them: the kernel reads the number as signed.
    const ALL: u32 = i32::MAX as u32;
    // The only error is an address that is not mapped, and the reference proves that `word` is.
    let _ = futex::wake(word, futex::Flags::empty(), ALL);
}

#[cold]
fn put_signal_remote(
    endpoints: &Endpoints,
    pe: Pe,
    source: SymmetricRange,
    dest: SymmetricRange,
    signal: AmoRequest,
) {
    let nbytes = source.nbytes();
    assert!(
        nbytes <= dest.nbytes(),
        "{nbytes} bytes into {}",
        dest.nbytes()
    );
    observers::report_copy_to(pe.index(), nbytes);

    let put = Put {
        remote: dest.remote(pe),
        // SAFETY: the source is memory of this process with that many bytes, and the put has read
        // it on return.
        local: unsafe { SourceBuf::new(source.start(), nbytes) },
        completion: Completion::Now,
    };
    let done = endpoints
        .of_library()
        .put_signal(pe, put, signal, AFTER_ALL);
    network::or_fail(LIBRARY_CALL, done);
}

#[cold]
fn signal_remote(endpoints: &Endpoints, pe: Pe, signal: AmoRequest, order: SignalOrder) {
    let put = Put {
        remote: signal.dest,
        local: SourceBuf::EMPTY,
        completion: Completion::Now,
    };
    let done = endpoints.of_library().put_signal(pe, put, signal, order);
    network::or_fail(LIBRARY_CALL, done);
}

/// Signals follow all earlier ones, since flags only grow: a smaller value must not arrive after a
/// larger one.
const AFTER_ALL: SignalOrder = SignalOrder::AfterAll;

/// Returns the signal by which a network stores a flag.
fn flag_signal(offset: usize, value: u64) -> AmoRequest {
    AmoRequest::of_word(remote(offset), AmoOp::Set, value)
}

/// Returns the signal by which a network adds 1 to a counter.
fn count_signal(counters: CounterPair) -> AmoRequest {
    AmoRequest::of_word(remote(counters.by_network), AmoOp::Add, 1)
}

fn remote(offset: usize) -> RemoteAddr {
    RemoteAddr {
        segment: Segment::Internal,
        offset: offset as u64,
    }
}
