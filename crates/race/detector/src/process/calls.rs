//! Translates calls of the library into the accesses that they make and the order that they
//! establish.

use super::{AccessSite, AccessedMemory, ProcessDetector, locked};
use crate::access::{AtomicityDomain, ShadowKind, ShadowRecord};
use crate::actors::{ActorInfo, ActorRole, ContextFlights, Thread};
use crate::areas::{ShadowPlace, by_page};
use crate::shadow::{PAGE, View};
use crate::{collectives, sites, sync_words};
use rushmem_race_interface::{
    AccessOperation, ByteBlocks, CheckedAccess, CollectiveEvent, FollowedMembers, Order, WordKind,
};
use std::sync::atomic::Ordering::Relaxed;

impl ProcessDetector {
    /// Records an access by the library when its call begins. Accesses to locks are not checked.
    pub fn begin(&self, access: &CheckedAccess) {
        if access.word == WordKind::Lock {
            return;
        }
        self.operations.fetch_add(1, Relaxed);
        self.with_issuing(|thread| {
            let site = sites::of_call(&self.areas, access.call.get());
            let mut contexts = locked(&self.contexts);
            let context = contexts
                .entry(access.ctx)
                .or_insert_with(|| ContextFlights::new(access.ctx));
            let nbytes = access.remote.total();
            let site_of = |kind| AccessSite { kind, site, nbytes };
            let is_put = matches!(
                access.operation,
                AccessOperation::Put | AccessOperation::PutNbi
            );
            let words = || {
                let addrs =
                    (0..access.remote.n).map(|i| access.remote.addr + i * access.remote.stride);
                let places = addrs.filter_map(|addr| self.place_on(addr, access.pe));
                // One key is enough for an atomic operation: a thread that reads the word acquires
                // the key of its first bytes.
                let nbytes = if is_put { access.remote.nbytes } else { 1 };
                places.flat_map(move |place| sync_words::of_bytes(place, nbytes))
            };
            let own = thread.epoch();
            match access.operation {
                AccessOperation::Put | AccessOperation::PutNbi | AccessOperation::Update => {
                    let CheckedAccess { pe, signal, .. } = *access;
                    let Some(flight) = context.puts(&self.areas, self.me, pe, signal) else {
                        return;
                    };
                    let (actor, epoch) = (flight.actor, flight.issue());
                    let fenced = context.fenced(pe, &thread.clock);
                    let view = View {
                        clock: &thread.clock,
                        fenced: &fenced,
                    };
                    let kind = match access.operation {
                        AccessOperation::Update => atomic(access, nbytes),
                        _ => ShadowKind::WRITE,
                    };
                    self.record_blocks(
                        access.remote,
                        Some(pe),
                        site_of(kind).record(actor, epoch),
                        view,
                    );
                    let reads = match access.operation {
                        AccessOperation::PutNbi => site_of(ShadowKind::READ).record(actor, epoch),
                        _ => site_of(ShadowKind::READ).record(thread.actor, own),
                    };
                    self.record_blocks(access.local, None, reads, view);
                    let mut released = view.released();
                    if signal != 0 {
                        let kind = ShadowKind::atomic(AtomicityDomain::Signal, 8, false, true);
                        let record = AccessSite {
                            kind,
                            site,
                            nbytes: 8,
                        }
                        .record(actor, epoch);
                        self.record_blocks(ByteBlocks::one(signal, 8), Some(pe), record, view);
                        released.raise(actor, epoch);
                        let word = self.place_on(signal, pe).map(sync_words::of_word);
                        self.release(thread, word, &released);
                    } else if nbytes <= 8 {
                        self.release(thread, words(), &released);
                    }
                }
                AccessOperation::Get | AccessOperation::GetNbi => {
                    let (actor, epoch) = match access.operation {
                        AccessOperation::Get => (thread.actor, own),
                        _ => match context.gets(&self.areas, self.me, access.pe) {
                            Some(flight) => (flight.actor, flight.issue()),
                            None => return,
                        },
                    };
                    let view = View {
                        clock: &thread.clock,
                        fenced: &[],
                    };
                    let reads = site_of(ShadowKind::READ).record(actor, epoch);
                    self.record_blocks(access.remote, Some(access.pe), reads, view);
                    let writes = site_of(ShadowKind::WRITE).record(actor, epoch);
                    self.record_blocks(access.local, None, writes, view);
                }
                AccessOperation::Fetch => {
                    let fenced = context.fenced(access.pe, &thread.clock);
                    let view = View {
                        clock: &thread.clock,
                        fenced: &fenced,
                    };
                    let record = site_of(atomic(access, nbytes)).record(thread.actor, own);
                    self.record_blocks(access.remote, Some(access.pe), record, view);
                    if !access.reads_only {
                        self.release(thread, words(), &view.released());
                    }
                }
                AccessOperation::FetchNbi => {
                    // The operation is an actor that a fence orders, the store of the fetched value
                    // another one that only a quiet completes.
                    let Some(flight) = context.gets(&self.areas, self.me, access.pe) else {
                        return;
                    };
                    let writes = site_of(ShadowKind::WRITE).record(flight.actor, flight.issue());
                    let view = View {
                        clock: &thread.clock,
                        fenced: &[],
                    };
                    self.record_blocks(access.local, None, writes, view);
                    let flight = context.puts(&self.areas, self.me, access.pe, 0);
                    let Some(flight) = flight else { return };
                    let record =
                        site_of(atomic(access, nbytes)).record(flight.actor, flight.issue());
                    let fenced = context.fenced(access.pe, &thread.clock);
                    let view = View {
                        clock: &thread.clock,
                        fenced: &fenced,
                    };
                    self.record_blocks(access.remote, Some(access.pe), record, view);
                    if !access.reads_only {
                        self.release(thread, words(), &view.released());
                    }
                    let word = self
                        .place_on(access.remote.addr, access.pe)
                        .map(sync_words::of_word);
                    context.fetched.extend(word.map(|word| (access.pe, word)));
                }
            }
        });
    }

    /// Records the end of a blocking fetch; does nothing for other accesses. The thread acquires
    /// the clocks of the actors that have changed the word. A fetch that does not change the word
    /// also shows the results of the atomic operations in flight that this PE has issued on it;
    /// these become accesses of the thread.
    pub fn end(&self, access: &CheckedAccess) {
        if access.operation != AccessOperation::Fetch || access.word == WordKind::Lock {
            return;
        }
        self.with_caller(|thread| {
            // Operations that a fence has ordered before this one are complete, since its result
            // has arrived.
            let contexts = locked(&self.contexts);
            let context = contexts.get(&access.ctx);
            let fenced = context.map(|context| context.fenced(access.pe, &thread.clock));
            for (actor, epoch) in fenced.into_iter().flatten() {
                thread.clock.raise(actor, epoch);
            }
            drop(contexts);
            if let Some(place) = self.place_on(access.remote.addr, access.pe) {
                let word = sync_words::of_word(place);
                sync_words::acquire(&self.areas, word, &mut thread.clock);
                if access.reads_only {
                    self.complete_atomics(place, access.remote.nbytes, thread);
                }
            }
        });
    }

    /// Turns the atomic operations that this PE has in flight on a word into accesses of `thread`,
    /// which has seen their results. They get the epoch in which the thread ordered them by a
    /// fence, or else its current epoch.
    fn complete_atomics(&self, place: ShadowPlace, nbytes: usize, thread: &Thread) {
        let at = place.offset % PAGE;
        let mask = (((1u16 << nbytes) - 1) << (place.offset % 8)) as u8;
        let contexts = locked(&self.contexts);
        self.areas.page(place).revise(at, at + nbytes, |old| {
            let is_seen = old.kind.is_atomic() && old.kind.writes() && old.mask == mask;
            let info = ActorInfo::find(&self.areas, old.actor);
            let is_own = info.pe == self.me && matches!(info.role, ActorRole::InFlight(_));
            Some(match is_seen && is_own {
                true => {
                    let flight = (old.actor, old.epoch);
                    let of = |context: &ContextFlights| context.fenced_in(flight, thread.actor);
                    let epoch = contexts.values().find_map(of).unwrap_or(thread.epoch());
                    ShadowRecord {
                        actor: thread.actor,
                        epoch,
                        ..old
                    }
                }
                false => old,
            })
        });
    }

    /// Records a fence, or the begin or end of a quiet.
    pub fn order(&self, order: Order, ctx: u64, pe: u32) {
        self.with_caller(|thread| {
            if let Some(context) = locked(&self.contexts).get_mut(&ctx) {
                self.order_context(context, order, pe, thread);
            }
            if order == Order::Begin {
                return;
            }
            if super::IS_INSTRUMENTED.load(Relaxed) {
                sync_words::add_fence(&self.areas, thread.actor, thread.fences, &thread.clock);
                thread.fences = thread.fences.wrapping_add(1);
            }
            // Both also order the stores of the thread before a flag that it stores later, which
            // may be a relaxed atomic operation.
            thread.mark_fence();
        });
    }

    fn order_context(
        &self,
        context: &mut ContextFlights,
        order: Order,
        pe: u32,
        thread: &mut Thread,
    ) {
        match order {
            Order::Fence => context.fence(thread),
            Order::Begin => context.begin_quiet(thread.actor),
            Order::Quiet | Order::PeQuiet => {
                let of = (order == Order::PeQuiet).then_some(pe);
                context.quiet(of, thread);
                context.fetched.retain(|(from, word)| {
                    let is_done = of.is_none_or(|pe| pe == *from);
                    if is_done {
                        sync_words::acquire(&self.areas, *word, &mut thread.clock);
                    }
                    !is_done
                });
            }
        }
    }

    /// Records that a wait or a test has seen a word of this PE. The writes to the word, and those
    /// ordered before them, are complete.
    pub fn seen(&self, addr: usize) {
        self.with_caller(|thread| {
            let Some(place) = self.place_on(addr, self.me) else {
                return;
            };
            sync_words::acquire(&self.areas, sync_words::of_word(place), &mut thread.clock);
            let (at, first) = (place.offset % PAGE, place.offset % 8);
            let mut stored = Vec::new();
            self.areas.page(place).forget(at, at + 1, |old| {
                let is_word = old.nbytes <= 8 && old.kind.writes() && old.mask & 1 << first != 0;
                if is_word && old.kind.is_to_peer() {
                    stored.push((old.actor, old.epoch));
                }
                is_word && old.kind.is_of_library()
            });
            // A store of another PE to this word through a pointer: the accesses of its thread
            // before the store are complete, and so is what the thread knew at its last fence.
            for (actor, epoch) in stored {
                thread.clock.raise(actor, epoch);
                sync_words::acquire_fence(&self.areas, actor, epoch, &mut thread.clock);
            }
        });
    }

    /// Records that this PE enters a collective.
    pub fn enter(&self, collective: &CollectiveEvent) {
        self.with_caller(|thread| {
            collectives::enter(&self.areas, collective, &thread.clock);
            thread.advance();
        });
    }

    /// Records that this PE leaves a collective, which has read `source` and written `dest`.
    pub fn leave(&self, collective: &CollectiveEvent) {
        self.operations.fetch_add(1, Relaxed);
        self.with_caller(|thread| {
            let CollectiveEvent { source, dest, .. } = *collective;
            let site = match source.addr | dest.addr {
                0 => 0,
                _ => sites::of_call(&self.areas, collective.call.get()),
            };
            let site_of = |kind, blocks: ByteBlocks| AccessSite {
                kind,
                site,
                nbytes: blocks.total(),
            };
            let reads = site_of(ShadowKind::READ, source).record(thread.actor, thread.epoch());
            let view = View {
                clock: &thread.clock,
                fenced: &[],
            };
            self.record_blocks(source, None, reads, view);
            let members = match collective.follows {
                FollowedMembers::All => 0..collective.n,
                FollowedMembers::Member => collective.member..collective.member + 1,
                FollowedMembers::Below => 0..collective.member,
            };
            collectives::leave(&self.areas, collective, members, &mut thread.clock);
            let writes = site_of(ShadowKind::WRITE, dest).record(thread.actor, thread.epoch());
            let view = View {
                clock: &thread.clock,
                fenced: &[],
            };
            self.record_blocks(dest, None, writes, view);
        });
    }

    /// Records that this PE has taken a lock, or releases it.
    pub fn lock(&self, addr: usize, is_taken: bool) {
        self.with_caller(|thread| {
            let Some(key) = self.place_on(addr, self.me).map(sync_words::of_lock) else {
                return;
            };
            if is_taken {
                sync_words::acquire(&self.areas, key, &mut thread.clock);
            } else {
                let clock = thread.clock.clone();
                self.release(thread, Some(key), &clock);
            }
        });
    }

    /// Records that a block of the heap is allocated, which forgets all accesses to it, or freed,
    /// which counts as a write to all of it.
    pub fn block(&self, call: &'static str, addr: usize, nbytes: usize, is_allocated: bool) {
        self.with_caller(|thread| {
            let Some(place) = self.place_on(addr, self.me) else {
                return;
            };
            let site = sites::of_call(&self.areas, call);
            if is_allocated {
                self.reporter.allocated(place.offset, nbytes, site);
                for (start, bytes) in by_page(place.offset, nbytes) {
                    let page = self.areas.page(ShadowPlace {
                        offset: start,
                        ..place
                    });
                    page.forget(bytes.start, bytes.end, |_| true);
                }
                return;
            }
            let record = AccessSite {
                kind: ShadowKind::WRITE,
                site,
                nbytes,
            }
            .record(thread.actor, thread.epoch());
            let view = View {
                clock: &thread.clock,
                fenced: &[],
            };
            self.record_access(AccessedMemory::Symmetric(place), nbytes, record, view);
        });
    }
}

fn atomic(access: &CheckedAccess, nbytes: usize) -> ShadowKind {
    let domain = match (access.word, access.of_shared) {
        (WordKind::Signal, _) => AtomicityDomain::Signal,
        (_, true) => AtomicityDomain::Shared,
        (_, false) => AtomicityDomain::World,
    };
    let is_float = access.word == WordKind::Float;
    ShadowKind::atomic(domain, nbytes, is_float, !access.reads_only)
}
