//! Loads and stores of the program: the path that every one of them takes.

use super::{AccessSite, AccessedMemory, ProcessDetector, active};
use crate::access::{ShadowKind, ShadowRecord};
use crate::own_memory::{find, is_known, is_known_on, may_be_symmetric};
use crate::report::Memory;
use crate::shadow::{PAGE, Shadow, View};
use crate::{private, sites};
use std::sync::atomic::Ordering::Relaxed;

/// Records a load or store of the program.
#[inline(always)]
pub fn access(addr: usize, nbytes: usize, kind: ShadowKind, pc: usize) {
    if may_be_symmetric(addr) {
        access_symmetric(addr, nbytes, kind, pc);
    } else if private::is_watched() {
        access_private(addr, nbytes, kind, pc);
    }
}

#[inline(never)]
fn access_symmetric(addr: usize, nbytes: usize, kind: ShadowKind, pc: usize) {
    let Some(found) = find(addr, nbytes) else { return access_other(addr, nbytes, kind, pc) };
    if !is_known(found, nbytes, kind) {
        access_own(addr, found, nbytes, kind, pc);
    }
}

/// Records an access to private memory: few private pages have a shadow, unless the program has
/// threads.
#[inline(never)]
fn access_private(addr: usize, nbytes: usize, kind: ShadowKind, pc: usize) {
    let Some(page) = private::page(addr, false) else { return };
    let is_within = addr % 8 + nbytes <= 8;
    if !(is_within && is_known_on(page, addr, nbytes, kind)) {
        access_other(addr, nbytes, kind, pc);
    }
}

/// Own memory, within eight bytes, which is not remembered in this epoch.
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
        let view = View { clock: &thread.clock, fenced: &[] };
        page.record_access(at, at + nbytes, record, view).map(|old| (record, old))
    });
    if let (Some(Some((record, old))), AccessedMemory::Symmetric(place)) =
        (conflict, process.find(addr))
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
            self.accesses.fetch_add(1, Relaxed);
            let kind = self.of_program(at, kind);
            let record = AccessSite { kind, site: 0, nbytes }.record(thread.actor, thread.epoch());
            let record = ShadowRecord { site: sites::of_address(&self.areas, pc), ..record };
            let view = View { clock: &thread.clock, fenced: &[] };
            self.record_access(at, nbytes, record, view);
        });
    }
}
