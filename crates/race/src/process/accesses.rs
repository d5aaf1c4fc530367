//! Loads and stores of the program: the path that every one of them takes.

use super::{AccessSite, AccessedMemory, ProcessDetector, active};
use crate::access::{ShadowKind, ShadowRecord};
use crate::own_memory::{find, is_known, is_known_on, may_be_symmetric};
use crate::report::Memory;
use crate::shadow::{PAGE, Shadow, View};
use crate::{known, private, sites};

/// Records a load or store of `N` bytes of the program, at a multiple of `N` if `IS_ALIGNED`.
#[inline(always)]
pub fn access<const N: usize, const IS_ALIGNED: bool>(addr: usize, kind: ShadowKind, pc: usize) {
    let is_within = N <= 8 && (IS_ALIGNED || addr % 8 <= 8 - N);
    if !is_within {
        access_range(addr, N, kind, pc);
    } else if !known::has(addr, N, kind) {
        access_unknown(addr, N, kind, pc);
    }
}

/// Records a load or store of any bytes, or an atomic operation, of the program.
#[inline(never)]
pub fn access_range(addr: usize, nbytes: usize, kind: ShadowKind, pc: usize) {
    known::count();
    access_unknown(addr, nbytes, kind, pc);
}

/// Records an access that the thread does not know of.
#[inline(never)]
fn access_unknown(addr: usize, nbytes: usize, kind: ShadowKind, pc: usize) {
    let is_within = addr % 8 + nbytes <= 8;
    if may_be_symmetric(addr) {
        match find(addr, nbytes) {
            Some(found)
                if is_known(found, nbytes, kind) || is_recorded(found, nbytes, kind, pc) => {}
            Some(found) => access_own(addr, found, nbytes, kind, pc),
            // Memory of other PEs is not remembered.
            None => return access_other(addr, nbytes, kind, pc),
        }
    } else if private::is_watched()
        && let Some(page) = private::page(addr, false)
        && !(is_within && is_known_on(page, addr, nbytes, kind))
    {
        access_other(addr, nbytes, kind, pc);
    }
    if is_within && (kind == ShadowKind::LOAD || kind == ShadowKind::STORE) && active().is_some() {
        known::add(addr, nbytes, kind);
    }
}

/// Records a load or store of own memory, within eight bytes, that is not remembered in this epoch,
/// if what the thread has at hand shows that it conflicts with none. Otherwise returns false.
#[inline(always)]
fn is_recorded(
    (shadow, offset): (Shadow<'static>, usize),
    nbytes: usize,
    kind: ShadowKind,
    pc: usize,
) -> bool {
    let is_plain = kind == ShadowKind::LOAD || kind == ShadowKind::STORE;
    is_plain
        && active().is_some()
        && known::is_recorded(pc, |stamp, site, done| {
            let mask = ((1u64 << nbytes) - 1) << (offset % 8);
            let first = stamp | mask << 8 | u64::from(kind.0);
            let second = u64::from(site) << 32 | nbytes as u64;
            shadow
                .page(offset / PAGE)
                .record_if_done(offset % PAGE, [first, second], |old| done.has(old))
        })
}

/// Checks an access to own memory, within eight bytes, that is not remembered in this epoch.
#[inline(never)]
fn access_own(
    addr: usize,
    (shadow, offset): (Shadow<'static>, usize),
    nbytes: usize,
    kind: ShadowKind,
    pc: usize,
) {
    let Some(process) = active() else { return };
    let (page, at) = (shadow.page(offset / PAGE), offset % PAGE);
    let conflict = process.with_thread(|thread| {
        let site = sites::of_address(&process.areas, pc);
        let record = AccessSite { kind, site, nbytes }.record(thread.actor, thread.epoch());
        for other in page.actors(at) {
            known::add_done(other, thread.clock.of(other));
        }
        let view = View { clock: &thread.clock, fenced: &[] };
        page.record_access(at, at + nbytes, record, view).map(|old| (record, old))
    });
    if let Some(Some((record, old))) = conflict
        && let AccessedMemory::Symmetric(place) = process.find(addr)
    {
        process.reporter.race(Memory::Symmetric(place), &record, &old);
    }
}

#[cold]
#[inline(never)]
fn access_other(addr: usize, nbytes: usize, kind: ShadowKind, pc: usize) {
    if let Some(process) = active().filter(|_| nbytes > 0) {
        process.access_other(addr, nbytes, kind, pc);
    }
}

impl ProcessDetector {
    fn access_other(&self, addr: usize, nbytes: usize, kind: ShadowKind, pc: usize) {
        let at = self.find(addr);
        if let AccessedMemory::Private(addr) = at
            && private::page(addr, false).is_none()
        {
            return;
        }
        self.with_thread(|thread| {
            let kind = self.of_program(at, kind);
            let record = AccessSite { kind, site: 0, nbytes }.record(thread.actor, thread.epoch());
            let record = ShadowRecord { site: sites::of_address(&self.areas, pc), ..record };
            let view = View { clock: &thread.clock, fenced: &[] };
            self.record_access(at, nbytes, record, view);
        });
    }
}
