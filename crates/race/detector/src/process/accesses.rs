//! Records the loads and stores of the program. One within eight bytes needs nothing more if it is
//! in the thread's cache; otherwise it becomes bits of its page, if that is possible. Every other
//! access is recorded in the shadow, if its memory has one.

use super::{AccessSite, ProcessDetector, active};
use crate::access::ShadowKind;
use crate::actors::Thread;
use crate::areas::{Memory, ShadowPlace};
use crate::own_memory::{OwnByte, find, in_heap, is_known, may_be_symmetric};
use crate::shadow::bits::Marked;
use crate::shadow::{PAGE, Page, View, word_mask};
use crate::{known, private, sites};

/// Records a load or store of `N` bytes by the program's instruction at `pc`. The address is a
/// multiple of `N` if `IS_ALIGNED`.
#[inline(always)]
pub fn access<const N: usize, const WRITES: bool, const IS_ALIGNED: bool>(addr: usize, pc: usize) {
    let kind = kind(WRITES);
    let is_within = N <= 8 && (IS_ALIGNED || addr % 8 <= 8 - N);
    if !is_within {
        access_range(addr, N, kind, pc);
    } else if !known::has(addr, N, kind) {
        access_unknown::<N, WRITES>(addr, pc);
    }
}

#[inline(always)]
fn kind(writes: bool) -> ShadowKind {
    if writes {
        ShadowKind::STORE
    } else {
        ShadowKind::LOAD
    }
}

/// Records a load or store of any length, or an atomic operation, by the program's instruction at
/// `pc`.
#[inline(never)]
pub fn access_range(addr: usize, nbytes: usize, kind: ShadowKind, pc: usize) {
    if active().is_some() {
        known::count();
        access_unmarked(in_heap(addr), nbytes, kind, pc);
    }
}

/// Records an access within eight bytes that is not in the thread's cache.
#[inline(never)]
fn access_unknown<const N: usize, const WRITES: bool>(addr: usize, pc: usize) {
    let kind = kind(WRITES);
    if active().is_none() {
        return;
    }

    known::count_first();

    // The thread's cache has the address of the program.
    let known = addr;
    let addr = in_heap(addr);
    let own = find(addr);
    match own.map_or(Marked::No, |own| mark(own, N, kind, pc)) {
        Marked::Yes => {}
        Marked::AfterBegin if begin(addr) => return access_unknown::<N, WRITES>(known, pc),
        _ => access_unmarked(addr, N, kind, pc),
    }

    // An access to another PE's memory is recorded each time, since that PE may have replaced the
    // last record of it.
    if own.is_some() || !may_be_symmetric(addr) {
        known::add(known, N, kind);
    }
}

/// Keeps a load or store of own memory, within eight bytes, as bits of its page if the calling
/// thread is the first one.
#[inline(always)]
fn mark(own: OwnByte, nbytes: usize, kind: ShadowKind, pc: usize) -> Marked {
    let Some(recording) = known::recording(pc).filter(known::Recording::is_first) else {
        return Marked::No;
    };

    let stamp = recording.stamp();
    let mask = word_mask(own.offset, nbytes);
    let second = u64::from(recording.site) << 32 | nbytes as u64;

    match own.of.shadow.mark(own.offset, stamp, mask, kind, second) {
        // The page has bits in few epochs.
        Marked::AfterBegin if own.page().skip_epoch(stamp) => Marked::No,
        marked => marked,
    }
}

/// Records an access that is not kept as bits.
#[inline(never)]
fn access_unmarked(addr: usize, nbytes: usize, kind: ShadowKind, pc: usize) {
    let is_within = addr % 8 + nbytes <= 8;

    if may_be_symmetric(addr) {
        match find(addr) {
            Some(own) if is_within => access_own(own, nbytes, kind, pc),
            _ => access_other(addr, nbytes, kind, pc),
        }
        return;
    }

    if !private::is_watched() {
        return;
    }
    let Some(page) = private::page(addr, false) else {
        return;
    };
    if !is_within || !is_known(page, addr % PAGE, nbytes, kind) {
        access_other(addr, nbytes, kind, pc);
    }
}

/// Records an access to own memory, within eight bytes, unless it is recorded in the shadow for
/// this epoch.
#[inline(always)]
fn access_own(own: OwnByte, nbytes: usize, kind: ShadowKind, pc: usize) {
    let page = own.page();
    let offset = own.offset_in_page();
    let is_recorded =
        is_known(page, offset, nbytes, kind) || try_record(page, offset, nbytes, kind, pc);
    if !is_recorded {
        record_own(own, nbytes, kind, pc);
    }
}

/// Begins the bits of the thread's epoch in the page of an address of own memory, or checks them if
/// they have begun. Returns false if that is not possible, such as in a signal handler that has
/// interrupted the detector.
#[inline(never)]
fn begin(addr: usize) -> bool {
    let Some(process) = active() else {
        return false;
    };
    let Memory::Symmetric(place) = process.find(addr) else {
        return false;
    };
    let place = ShadowPlace {
        offset: place.offset - place.offset % PAGE,
        ..place
    };

    let begun = process.with_accessing(|thread| {
        let epoch = thread.epoch();
        if thread.marked.epoch != epoch {
            thread.marked.epoch = epoch;
            thread.marked.pages.clear();
        }
        // A page that must be checked has bits of this epoch, and is in the list.
        let page = process.areas.page(place);
        if !page.must_be_checked(thread.stamp().bits()) {
            thread.marked.pages.push(place);
        }
        process.begin_page(place, thread);
    });
    begun.is_some()
}

/// Records a load or store of own memory, within eight bytes from an offset of a page, that is not
/// remembered in this epoch, if the data in the thread's cache show that it conflicts with no other
/// access. Otherwise returns false.
#[inline(always)]
fn try_record(page: Page<'_>, offset: usize, nbytes: usize, kind: ShadowKind, pc: usize) -> bool {
    let is_plain = kind == ShadowKind::LOAD || kind == ShadowKind::STORE;
    if !is_plain || active().is_none() {
        return false;
    }
    let Some(recording) = known::recording(pc) else {
        return false;
    };

    let mask = word_mask(offset, nbytes);
    let first = recording.stamp() | mask << 8 | u64::from(kind.0);
    let second = u64::from(recording.site) << 32 | nbytes as u64;
    page.record_if_done(offset, [first, second], |old| recording.done().has(old))
}

/// Records an access to own memory, within eight bytes, with the clock of the thread, and reports a
/// race if there is one.
#[inline(never)]
fn record_own(own: OwnByte, nbytes: usize, kind: ShadowKind, pc: usize) {
    let Some(process) = active() else { return };
    process.with_accessing(|thread| {
        let page = own.page();
        let offset = own.offset_in_page();

        // The next accesses to these bytes then need no clock.
        for other in page.actors(offset) {
            known::add_done(other, thread.clock.of(other));
        }

        let site = sites::of_address(&process.areas, pc);
        let record = AccessSite { kind, site, nbytes }.record(thread.stamp());
        let view = View::of(&thread.clock);
        if let Some(old) = page.record_access(offset..offset + nbytes, record, view) {
            let memory = Memory::Symmetric(ShadowPlace {
                pe: process.me,
                segment: own.of.segment,
                offset: own.offset,
            });
            process.reporter.race(memory, &record, &old);
        }
    });
}

#[cold]
#[inline(never)]
fn access_other(addr: usize, nbytes: usize, kind: ShadowKind, pc: usize) {
    let Some(process) = active() else { return };
    if nbytes > 0 {
        process.access_other(addr, nbytes, kind, pc);
    }
}

impl ProcessDetector {
    fn access_other(&self, addr: usize, nbytes: usize, kind: ShadowKind, pc: usize) {
        let memory = self.find(addr);
        if let Memory::Private(addr) = memory
            && private::page(addr, false).is_none()
        {
            return;
        }

        let kind = self.kind_for(memory, kind);
        let record = |thread: &mut Thread| {
            let site = sites::of_address(&self.areas, pc);
            let record = AccessSite { kind, site, nbytes }.record(thread.stamp());
            self.record_access(memory, nbytes, record, View::of(&thread.clock));
        };

        // A flag of two bytes, for which only deprecated routines wait, is not considered.
        let may_be_flag = kind.is_to_peer() && kind.writes() && matches!(nbytes, 4 | 8);
        if may_be_flag {
            // A wait that sees this store is ordered after the accesses before it, but not after
            // later ones.
            self.with_thread(|thread| {
                record(thread);
                thread.advance();
            });
        } else {
            self.with_accessing(record);
        }
    }
}
