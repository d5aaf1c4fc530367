//! The per-thread cache of accesses that are already recorded in the thread's current epoch. Every
//! load and store within eight bytes is looked up here first, and almost all end here.
//!
//! The cache of a thread is a table with a word for each eight bytes of memory: the upper bits of
//! their address, the number of the table's epoch, and the bytes that the thread has not loaded and
//! not stored yet. An access in the table is also in the shadow, or is to memory that is not
//! watched. A new epoch of the table begins, in which it is empty, when its entries may not hold
//! any more: at a call of the library by the thread, at a new epoch of the thread, and when the
//! thread frees memory.
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

/// Words of a table. They stand for 32 MiB of memory: accesses to more than that replace each other
/// in the table, and are looked up in the shadow. Words that are never used take no memory.
const ENTRIES: usize = 1 << ENTRY_BITS;
const ENTRY_BITS: u32 = 22;
/// The number of other actors whose last complete accesses a thread remembers. Beyond this number,
/// actors replace each other, and an access after one of another actor needs the thread's clock.
const ACTORS: usize = 8;
/// The number of instructions whose sites a thread remembers. Beyond this number, instructions
/// replace each other, and a site is looked up in a map.
const SITES: usize = 1 << 10;
/// Where the parts of an entry begin. They are, from bit 0: the bytes that were not loaded, the
/// bytes that were not stored, the number of the table's epoch, the upper bits of the address.
const STORES: u32 = 8;
const EPOCH: u32 = 16;
const ADDRESS: u32 = 40;
const BYTES: u64 = (1 << EPOCH) - 1;
/// Bits of an actor's epoch in an entry of `done`.
const EPOCH_BITS: u32 = Epoch::BITS;

/// The table of a thread. An entry of zeros belongs to no epoch.
#[repr(C)]
struct Known {
    /// The number of the table's epoch, at the bits where an entry has it.
    epoch: Cell<u64>,
    /// Accesses that were not added to the counter of the job yet.
    uncounted: Cell<u64>,
    /// The actor of the thread and its epoch, at the bits where the first word of a record has
    /// them.
    stamp: Cell<u64>,
    /// True for the first thread of the PE, the only one that sets bits of pages.
    is_first: Cell<bool>,
    /// True while the thread is in the detector, where it may hold locks.
    is_recording: Cell<bool>,
    /// Other actors, each with the epoch up to which this thread knows the actor's accesses to be
    /// complete. The number of the actor selects the entry.
    done: [Cell<u64>; ACTORS],
    /// Sites of instructions. The address of the instruction selects the entry.
    sites: [Cell<RecentSite>; SITES],
    entries: [Cell<u64>; ENTRIES],
}

/// The site of an instruction.
#[derive(Clone, Copy)]
pub struct RecentSite {
    /// The address of the instruction.
    pub address: usize,
    /// The number of the site.
    pub site: u32,
}

/// The accesses of other actors that a thread knows to be complete.
#[derive(Clone, Copy)]
pub struct Done<'a>(&'a [Cell<u64>; ACTORS]);

impl Done<'_> {
    /// Returns true if the access whose record has this first word is known to be complete.
    #[inline(always)]
    pub fn has(self, first: u64) -> bool {
        let actor = first >> 48;
        let epoch = first >> 16 & u64::from(Epoch::MAX);
        let done = self.0[actor as usize % ACTORS].get();
        done >> EPOCH_BITS == actor && done & u64::from(Epoch::MAX) >= epoch
    }
}

/// Frees the table of its thread when the thread ends.
struct Owner;

thread_local! {
    static OWNER: OnceCell<Owner> = const { OnceCell::new() };
}

/// The number of uncounted accesses of threads that have ended.
static UNCOUNTED: AtomicU64 = AtomicU64::new(0);

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
        // SAFETY: the offset of the symbol from the thread pointer is that of the calling thread's
        // own word, which is loaded.
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
        // SAFETY: the offset of the symbol from the thread pointer is that of the calling thread's
        // own word, which is stored. Nothing else than `get` reads it.
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
    // SAFETY: the word is null, or points to a table that is unmapped only when the thread ends,
    // after the word was set to null; no other thread has it.
    unsafe { own::get().as_ref() }
}

/// Returns the index of the entry for the eight bytes of an address, and the upper bits of the
/// address as an entry has them.
#[inline(always)]
fn locate(addr: usize) -> (usize, u64) {
    let upper = addr >> (3 + ENTRY_BITS);
    // Addresses below 1 << 47 that differ in their upper bits alone have different entries.
    let index = (addr >> 3 ^ upper) % ENTRIES;
    (index, (upper as u64) << ADDRESS)
}

/// Returns the bits of an entry that stand for a load or store of `nbytes` bytes at an address.
#[inline(always)]
fn bits(addr: usize, nbytes: usize, kind: ShadowKind) -> u64 {
    let first = if kind == ShadowKind::STORE { STORES } else { 0 };
    // An access of eight bytes begins at a multiple of eight, since it is within eight bytes.
    let bytes = if nbytes == 8 {
        0xff
    } else {
        ((1 << nbytes) - 1) << (addr % 8) & 0xff
    };
    bytes << first
}

/// Returns true if the thread has already made such a load or store of these bytes, which are
/// within eight, in the table's epoch. Counts the access if the thread has a table.
#[inline(always)]
pub fn has(addr: usize, nbytes: usize, kind: ShadowKind) -> bool {
    let Some(known) = table() else { return false };
    let (index, upper) = locate(addr);
    let differs = known.entries[index].get() ^ upper ^ known.epoch.get();
    known.uncounted.set(known.uncounted.get() + 1);
    differs & (bits(addr, nbytes, kind) | !BYTES) == 0
}

/// Adds a load or store of bytes, which are within eight, to the table.
#[inline]
pub fn add(addr: usize, nbytes: usize, kind: ShadowKind) {
    let Some(known) = table().or_else(new_table) else {
        return;
    };

    let (index, upper) = locate(addr);
    let entry = &known.entries[index];
    let empty = upper | known.epoch.get() | BYTES;
    let is_same = (entry.get() ^ empty) & !BYTES == 0;
    let before = if is_same { entry.get() } else { empty };
    entry.set(before & !bits(addr, nbytes, kind));
}

/// Empties the table, by beginning a new epoch of it.
pub fn forget() {
    let Some(known) = table() else { return };
    let next = known.epoch.get() + (1 << EPOCH);
    if next < 1 << ADDRESS {
        return known.epoch.set(next);
    }

    // The numbers begin again with 1, so no entry of an earlier epoch may stay.
    for entry in &known.entries {
        // A store of a zero to an entry of zeros would allocate a page that was never used.
        if entry.get() != 0 {
            entry.set(0);
        }
    }
    known.epoch.set(1 << EPOCH);
}

/// Sets the thread's actor and epoch, at the bits where the first word of a record has them, and
/// whether it is the first thread. If the actor or epoch is new, empties the table.
pub fn set_stamp(stamp: u64, is_first: bool) {
    let Some(known) = table() else { return };
    known.is_first.set(is_first);
    if known.stamp.replace(stamp) != stamp {
        known.done.iter().for_each(|done| done.set(0));
        forget();
    }
}

/// Returns the thread's actor and epoch, at the bits where the first word of a record has them; 0
/// if there is no table yet.
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

/// Returns true if the thread is already in the detector: the caller is then a signal handler, or a
/// function of the C library that the detector itself has called.
#[inline]
pub fn is_recording() -> bool {
    table().is_some_and(|known| known.is_recording.get())
}

/// Calls a function that records an access, or an event that orders accesses, outside of
/// [`recording`].
pub fn while_recording<R>(record: impl FnOnce() -> R) -> R {
    let Some(known) = table() else {
        return record();
    };
    known.is_recording.set(true);
    // The flag is read by signal handlers of this thread alone, so fences of the compiler suffice:
    // they let no access of the call move to where the flag is not set.
    compiler_fence(SeqCst);
    let result = record();
    compiler_fence(SeqCst);
    known.is_recording.set(false);
    result
}

/// A recording of an access that needs only the data in the table of its thread.
pub struct Recording {
    known: &'static Known,
    /// The number of the access's site.
    pub site: u32,
}

/// Begins to record an access of the thread by the instruction at `pc`. Returns `None` if the site
/// of the instruction is not remembered, if the thread has no actor yet, or if the thread is in the
/// detector already, interrupted by a signal.
#[inline(always)]
pub fn recording(pc: usize) -> Option<Recording> {
    let known = table()?;
    let recent = known.sites[site_slot(pc)].get();
    if recent.address != pc || known.stamp.get() == 0 || known.is_recording.get() {
        return None;
    }
    known.is_recording.set(true);
    // A signal handler must find the flag set before the thread takes a lock.
    compiler_fence(SeqCst);
    Some(Recording {
        known,
        site: recent.site,
    })
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

    /// Returns the accesses of other actors that the thread knows to be complete.
    #[inline(always)]
    pub fn done(&self) -> Done<'_> {
        Done(&self.known.done)
    }
}

impl Drop for Recording {
    #[inline(always)]
    fn drop(&mut self) {
        // The partner of the fence in `recording`: the recording ends before the flag falls.
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

/// Returns the entry in which the site of an instruction is remembered. It may hold another
/// instruction's site now.
pub fn recent_site(address: usize) -> Option<&'static Cell<RecentSite>> {
    Some(&table()?.sites[site_slot(address)])
}

/// Returns the index of the entry for an instruction.
#[inline(always)]
fn site_slot(address: usize) -> usize {
    // The lowest bits of the product depend on the lowest bits of the address alone.
    address.wrapping_mul(0x9E37_79B9) >> 8 & (SITES - 1)
}

/// Returns the number of uncounted accesses of the calling thread and of the threads that have
/// ended, and sets it to 0.
pub fn take_uncounted() -> u64 {
    UNCOUNTED.swap(0, Relaxed) + table().map_or(0, |known| known.uncounted.replace(0))
}

/// Makes the table of the calling thread. Returns `None` if there is no memory, or if the thread is
/// ending.
#[cold]
#[inline(never)]
fn new_table() -> Option<&'static Known> {
    // Fails if the thread is ending, or if there was no memory for its table before.
    OWNER.try_with(|owner| owner.set(Owner)).ok()?.ok()?;

    let protection = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: the call makes a new mapping at an address of the kernel's choice.
    let made = unsafe { mmap_anonymous(null_mut(), size_of::<Known>(), protection, flags) }.ok()?;
    own::set(made.cast());
    // The first epoch: the entries are zeros, which belong to no epoch.
    forget();
    table()
}

impl Drop for Owner {
    fn drop(&mut self) {
        let own = own::get();

        if let Some(known) = table() {
            UNCOUNTED.fetch_add(known.uncounted.get(), Relaxed);
            own::set(null_mut());
            // An error would leave the table mapped, which is harmless.
            // SAFETY: `own` is the whole mapping of `new_table`. The thread's word, which alone
            // named it, is null now, and `known` is not used any more.
            let _ = unsafe { munmap(own.cast(), size_of::<Known>()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_known_until_the_epoch_ends() {
        const ADDR: usize = 0x7f12_3456_7890;
        let load = ShadowKind::LOAD;
        let store = ShadowKind::STORE;
        assert!(!has(ADDR, 8, load));
        add(ADDR + 4, 4, load);
        assert!(has(ADDR + 4, 4, load) && has(ADDR + 6, 1, load));
        assert!(!has(ADDR, 4, load) && !has(ADDR, 8, load) && !has(ADDR + 4, 4, store));

        add(ADDR, 8, store);
        assert!(has(ADDR, 8, store) && has(ADDR + 4, 4, load));

        let far = ADDR + (8 << ENTRY_BITS);
        assert!(!has(far, 8, store) && !has(ADDR + 8, 8, store));

        // Another address that selects the same entry replaces it.
        let other = ADDR ^ (1 << (3 + ENTRY_BITS)) ^ (1 << 3);
        assert_eq!(locate(other).0, locate(ADDR).0);
        add(other, 8, store);
        assert!(has(other, 8, store) && !has(ADDR, 8, store));

        add(ADDR, 8, store);
        forget();
        assert!(!has(ADDR, 8, store) && !has(ADDR + 4, 4, load));

        // When the numbers of epochs begin again with 1, an entry of the former epoch 1 must not
        // count as known.
        table().expect("it was made").epoch.set(1 << EPOCH);
        add(ADDR, 8, store);
        table()
            .expect("it was made")
            .epoch
            .set((1 << ADDRESS) - (1 << EPOCH));
        forget();
        assert!(table().is_some_and(|t| t.epoch.get() == 1 << EPOCH) && !has(ADDR, 8, store));

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
