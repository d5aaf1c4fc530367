//! The per-thread cache of accesses that are already recorded in the thread's current epoch. Every
//! load and store of the program is looked up here first, and almost all end here.
//!
//! The cache of a thread is a table with a word for each eight bytes of memory: the upper bits of
//! their address, the number of the table's epoch, and the bytes that the thread has not loaded and
//! not stored yet. An access in the table is also in the shadow, or is to memory that is not
//! watched. Everything that may invalidate the table begins a new epoch of it: a call of the
//! library by the thread, or a new epoch of the thread.
#![allow(unsafe_code)]

use crate::access::ShadowKind;
use crate::clock::{Actor, Epoch};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::cell::{Cell, OnceCell};
use std::ptr::null_mut;
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Relaxed, SeqCst},
    compiler_fence,
};

/// Words of a table, which covers 32 MiB. Words that are never used take no memory.
const ENTRIES: usize = 1 << ENTRY_BITS;
const ENTRY_BITS: u32 = 22;
/// The number of other actors whose last complete accesses a thread remembers.
const ACTORS: usize = 8;
/// The number of instructions whose sites a thread remembers.
const SITES: usize = 1 << 10;
/// The bits of an entry: bytes that were not loaded, bytes that were not stored, the number of the
/// epoch, the upper bits of the address.
const STORES: u32 = 8;
const EPOCH: u32 = 16;
const ADDRESS: u32 = 40;
const BYTES: u64 = (1 << EPOCH) - 1;
/// Bits of the epoch of an actor.
const EPOCH_BITS: u32 = Epoch::BITS;

/// The table of a thread. An entry of zeros belongs to no epoch.
#[repr(C)]
struct Known {
    /// The number of the table's epoch, at the bits where an entry has it.
    epoch: Cell<u64>,
    /// Accesses that were not added to the counter of the job yet.
    uncounted: Cell<u64>,
    /// The thread and its epoch, as the first word of a record has them.
    stamp: Cell<u64>,
    /// True for the first thread, the only one that sets bits of pages.
    is_first: Cell<bool>,
    /// True while the thread is in the detector, where it may hold locks.
    is_recording: Cell<bool>,
    /// The last accesses of other actors that this thread knows to be complete: each entry has an
    /// actor and its epoch, at the index that the number of the actor selects.
    done: [Cell<u64>; ACTORS],
    /// Instructions, and the numbers of their places.
    sites: [Cell<(usize, u32)>; SITES],
    entries: [Cell<u64>; ENTRIES],
}

/// The accesses of other actors that a thread knows to be complete.
#[derive(Clone, Copy)]
pub struct Done<'a>(&'a [Cell<u64>; ACTORS]);

impl Done<'_> {
    /// Returns true if the access whose record has this first word is known to be complete.
    #[inline(always)]
    pub fn has(self, first: u64) -> bool {
        let (actor, epoch) = (first >> 48, first >> 16 & u64::from(Epoch::MAX));
        let done = self.0[actor as usize % ACTORS].get();
        done >> EPOCH_BITS == actor && done & u64::from(Epoch::MAX) >= epoch
    }
}

/// Frees the table when its thread ends.
struct Owner;

thread_local! {
    static OWNER: OnceCell<Owner> = const { OnceCell::new() };
}

/// The number of accesses of threads that have ended.
static COUNTED: AtomicU64 = AtomicU64::new(0);

/// The table of the calling thread, in a word that takes two instructions to read: null if there is
/// none.
#[cfg(target_arch = "x86_64")]
mod own {
    use super::Known;
    use core::arch::{asm, global_asm};

    global_asm!(
        ".pushsection .tbss, \"awT\", @nobits",
        ".p2align 3",
        ".globl rushmem_race_known",
        ".hidden rushmem_race_known",
        ".type rushmem_race_known, @tls_object",
        ".size rushmem_race_known, 8",
        "rushmem_race_known:",
        ".zero 8",
        ".popsection"
    );

    #[inline(always)]
    pub(super) fn get() -> *mut Known {
        let own;
        // SAFETY: loads the thread's own word.
        unsafe {
            asm!(
                "mov {0}, qword ptr [rip + rushmem_race_known@GOTTPOFF]",
                "mov {0}, qword ptr fs:[{0}]",
                out(reg) own,
                options(pure, readonly, nostack, preserves_flags)
            );
        }
        own
    }

    pub(super) fn set(own: *mut Known) {
        // SAFETY: stores the thread's own word.
        unsafe {
            asm!(
                "mov {0}, qword ptr [rip + rushmem_race_known@GOTTPOFF]",
                "mov qword ptr fs:[{0}], {1}",
                out(reg) _,
                in(reg) own,
                options(nostack, preserves_flags)
            );
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod own {
    use super::Known;
    use std::cell::Cell;
    use std::ptr::null_mut;

    thread_local! {
        static OWN: Cell<*mut Known> = const { Cell::new(null_mut()) };
    }

    #[inline(always)]
    pub(super) fn get() -> *mut Known {
        OWN.get()
    }

    pub(super) fn set(own: *mut Known) {
        OWN.set(own);
    }
}

/// Returns the table of the calling thread, if there is one.
#[inline(always)]
fn table() -> Option<&'static Known> {
    // SAFETY: null, or a table that lives as long as the thread; no other thread has it.
    unsafe { own::get().as_ref() }
}

/// Returns the index of the eight bytes of an address, and an entry's bits for it.
#[inline(always)]
fn locate(addr: usize) -> (usize, u64) {
    let upper = addr >> (3 + ENTRY_BITS);
    ((addr >> 3 ^ upper) % ENTRIES, (upper as u64) << ADDRESS)
}

/// Returns the bits of `N` bytes at an address in an entry.
#[inline(always)]
fn bits(addr: usize, nbytes: usize, kind: ShadowKind) -> u64 {
    let first = if kind == ShadowKind::STORE { STORES } else { 0 };
    // Eight bytes begin at a multiple of eight.
    let bytes = if nbytes == 8 { 0xff } else { ((1 << nbytes) - 1) << (addr % 8) & 0xff };
    bytes << first
}

/// Returns true if the thread has loaded or stored these bytes, which are within eight, in its
/// epoch. The access is counted.
#[inline(always)]
pub fn has(addr: usize, nbytes: usize, kind: ShadowKind) -> bool {
    let Some(known) = table() else { return false };
    let (index, upper) = locate(addr);
    let differs = known.entries[index].get() ^ upper ^ known.epoch.get();
    known.uncounted.set(known.uncounted.get() + 1);
    differs & (bits(addr, nbytes, kind) | !BYTES) == 0
}

/// Records that the thread has loaded or stored bytes, which are within eight.
#[inline]
pub fn add(addr: usize, nbytes: usize, kind: ShadowKind) {
    let Some(known) = table().or_else(new_table) else { return };
    let (index, upper) = locate(addr);
    let entry = &known.entries[index];
    let own = upper | known.epoch.get();
    let before = if (entry.get() ^ own) & !BYTES == 0 { entry.get() } else { own | BYTES };
    entry.set(before & !bits(addr, nbytes, kind));
}

/// Empties the table, by beginning a new epoch of it.
pub fn forget() {
    let Some(known) = table() else { return };
    let next = known.epoch.get() + (1 << EPOCH);
    if next < 1 << ADDRESS {
        return known.epoch.set(next);
    }
    // A store would take memory for pages that were never used.
    known.entries.iter().filter(|entry| entry.get() != 0).for_each(|entry| entry.set(0));
    known.epoch.set(1 << EPOCH);
}

/// Sets the thread and its epoch, as the first word of a record has them, and whether it is the
/// first thread.
pub fn set_stamp(stamp: u64, is_first: bool) {
    let Some(known) = table() else { return };
    known.is_first.set(is_first);
    if known.stamp.replace(stamp) != stamp {
        known.done.iter().for_each(|done| done.set(0));
        forget();
    }
}

/// Returns the thread and its epoch; 0 if there is no table yet.
#[inline]
pub fn stamp() -> u64 {
    table().map_or(0, |known| known.stamp.get())
}

/// Records that the accesses of another actor up to `epoch` are complete, until the epoch of this
/// thread ends.
pub fn add_done(actor: Actor, epoch: Epoch) {
    if let Some(known) = table() {
        let done = u64::from(actor) << EPOCH_BITS | u64::from(epoch);
        known.done[usize::from(actor) % ACTORS].set(done);
    }
}

/// Returns true if the thread is recording an access, so that a signal handler has called.
#[inline]
pub fn is_recording() -> bool {
    table().is_some_and(|known| known.is_recording.get())
}

/// Begins or ends the recording of an access, or of an event that orders accesses, outside of
/// [`recording`].
pub fn set_recording(is_recording: bool) {
    compiler_fence(SeqCst);
    if let Some(known) = table() {
        known.is_recording.set(is_recording);
    }
    compiler_fence(SeqCst);
}

/// A recording of an access that needs only the data in the table of its thread.
pub struct Recording {
    known: &'static Known,
    /// The number of the access's place.
    pub site: u32,
}

/// Begins to record an access of the thread at an instruction. Returns `None` if its place is not
/// remembered, or if the thread was recording, and is interrupted by a signal.
#[inline(always)]
pub fn recording(pc: usize) -> Option<Recording> {
    let known = table()?;
    let (address, site) = known.sites[site_slot(pc)].get();
    if address != pc || known.stamp.get() == 0 || known.is_recording.get() {
        return None;
    }
    known.is_recording.set(true);
    // A handler of a signal must find it set before the thread takes a lock.
    compiler_fence(SeqCst);
    Some(Recording { known, site })
}

impl Recording {
    /// Returns the first word of the access's record without bytes and kind.
    #[inline(always)]
    pub fn stamp(&self) -> u64 {
        self.known.stamp.get()
    }

    /// Returns true if the thread is the first one.
    #[inline(always)]
    pub fn is_first(&self) -> bool {
        self.known.is_first.get()
    }

    /// Returns the accesses of other actors that are complete.
    #[inline(always)]
    pub fn done(&self) -> Done<'_> {
        Done(&self.known.done)
    }
}

impl Drop for Recording {
    #[inline(always)]
    fn drop(&mut self) {
        compiler_fence(SeqCst);
        self.known.is_recording.set(false);
    }
}

/// Counts an access for which [`has`] was not called.
pub fn count() {
    if let Some(known) = table().or_else(new_table) {
        known.uncounted.set(known.uncounted.get() + 1);
    }
}

/// Counts the first access of a thread, which [`has`] could not count because there was no table.
#[inline]
pub fn count_first() {
    if table().is_none() {
        count();
    }
}

/// Returns the entry for an instruction: the instruction that it has now, and the number of its
/// place.
pub fn recent_site(address: usize) -> Option<&'static Cell<(usize, u32)>> {
    Some(&table()?.sites[site_slot(address)])
}

#[inline(always)]
fn site_slot(address: usize) -> usize {
    address.wrapping_mul(0x9E37_79B9) >> 8 & (SITES - 1)
}

/// Returns the uncounted accesses of the calling thread, and of those that have ended.
pub fn take_uncounted() -> u64 {
    COUNTED.swap(0, Relaxed) + table().map_or(0, |known| known.uncounted.replace(0))
}

/// Makes the table of the calling thread; `None` if there is no memory, or the thread ends.
#[cold]
#[inline(never)]
fn new_table() -> Option<&'static Known> {
    OWNER.try_with(|owner| owner.set(Owner)).ok()?.ok()?;
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let made = unsafe { mmap_anonymous(null_mut(), size_of::<Known>(), protection, flags) }.ok()?;
    own::set(made.cast());
    forget();
    table()
}

impl Drop for Owner {
    fn drop(&mut self) {
        let own = own::get();
        if let Some(known) = table() {
            COUNTED.fetch_add(known.uncounted.get(), Relaxed);
            own::set(null_mut());
            // SAFETY: the mapping of `new_table`, which nobody uses any more.
            let _ = unsafe { munmap(own.cast(), size_of::<Known>()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_known_until_the_epoch_ends() {
        const AT: usize = 0x7f12_3456_7890;
        let (load, store) = (ShadowKind::LOAD, ShadowKind::STORE);
        assert!(!has(AT, 8, load));
        add(AT + 4, 4, load);
        assert!(has(AT + 4, 4, load) && has(AT + 6, 1, load));
        assert!(!has(AT, 4, load) && !has(AT, 8, load) && !has(AT + 4, 4, store));
        add(AT, 8, store);
        assert!(has(AT, 8, store) && has(AT + 4, 4, load));
        let far = AT + (8 << ENTRY_BITS);
        assert!(!has(far, 8, store) && !has(AT + 8, 8, store));
        // It has the same entry.
        let other = AT ^ (1 << (3 + ENTRY_BITS)) ^ (1 << 3);
        assert_eq!(locate(other).0, locate(AT).0);
        add(other, 8, store);
        assert!(has(other, 8, store) && !has(AT, 8, store));
        add(AT, 8, store);
        forget();
        assert!(!has(AT, 8, store) && !has(AT + 4, 4, load));
        // The numbers of epochs begin anew, with the one in which this becomes known.
        table().expect("it was made").epoch.set(1 << EPOCH);
        add(AT, 8, store);
        table().expect("it was made").epoch.set((1 << ADDRESS) - (1 << EPOCH));
        forget();
        assert!(table().is_some_and(|t| t.epoch.get() == 1 << EPOCH) && !has(AT, 8, store));
        assert!(take_uncounted() > 0);
        assert_eq!(take_uncounted(), 0);
    }

    #[test]
    fn a_thread_has_its_own_and_leaves_its_count() {
        add(64, 8, ShadowKind::LOAD);
        let other = || {
            add(128, 8, ShadowKind::LOAD);
            has(64, 8, ShadowKind::LOAD)
        };
        assert!(!std::thread::spawn(other).join().expect("it runs"));
        assert!(has(64, 8, ShadowKind::LOAD));
    }
}
