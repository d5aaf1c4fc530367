//! Translates calls of the library into the accesses that they make and the order that they
//! establish.

use super::{AccessSite, ProcessDetector, locked};
use crate::access::{AtomicityDomain, ShadowKind, ShadowRecord};
use crate::actors::{ActorInfo, ActorRole, ContextFlights, Thread};
use crate::areas::{Memory, ShadowPlace, by_page};
use crate::clock::{Stamp, VectorClock};
use crate::shadow::{PAGE, View, word_mask};
use crate::{collectives, sites, sync_words};
use rushmem_race_interface::{
    ALL_CONTEXTS, AccessOperation, ByteBlocks, CheckedAccess, CollectiveEvent, FollowedMembers,
    Order, WordKind,
};
use std::sync::atomic::Ordering::Relaxed;

/// A call that a thread issues on a context.
struct IssuedCall<'a> {
    access: &'a CheckedAccess,
    /// The number of the site of the call.
    site: u32,
    context: &'a mut ContextFlights,
    thread: &'a mut Thread,
}

impl IssuedCall<'_> {
    /// Returns an access of this kind that the call makes to all of its bytes.
    fn of_kind(&self, kind: ShadowKind) -> AccessSite {
        AccessSite {
            kind,
            site: self.site,
            nbytes: self.access.remote.total(),
        }
    }
}

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
            let call = IssuedCall {
                access,
                site,
                context,
                thread,
            };

            match access.operation {
                AccessOperation::Put | AccessOperation::PutNbi | AccessOperation::Update => {
                    self.begin_put(call);
                }
                AccessOperation::Get | AccessOperation::GetNbi => self.begin_get(call),
                AccessOperation::Fetch => {
                    let thread = call.thread.stamp();
                    self.begin_fetch(call, thread);
                }
                AccessOperation::FetchNbi => self.begin_fetch_nbi(call),
            }
        });
    }

    /// Begins a put, or an atomic operation without a result.
    fn begin_put(&self, call: IssuedCall<'_>) {
        let access = call.access;
        let pe = access.pe;
        let Some(flight) = call.context.puts(&self.areas, self.me, pe, access.signal) else {
            return;
        };
        let put = flight.issue();
        let mut fenced = call.context.fenced(pe, &call.thread.clock);

        // The source of a blocking put may be used again when the call returns. It is read before
        // anything is written, which matters if the two overlap.
        let mut reader = call.thread.stamp();
        if access.operation == AccessOperation::PutNbi {
            let sources = call
                .context
                .sources(&self.areas, self.me, pe, access.signal);
            let Some(sources) = sources else { return };
            reader = sources.issue();
            fenced.push(reader);
        }
        let view = View {
            clock: &call.thread.clock,
            fenced: &fenced,
        };

        let kind = match access.operation {
            AccessOperation::Update => atomic(access),
            _ => ShadowKind::WRITE,
        };
        let reads = call.of_kind(ShadowKind::READ).record(reader);
        self.record_blocks(access.local, None, reads, view);

        let writes = call.of_kind(kind).record(put);
        self.record_blocks(access.remote, Some(pe), writes, view);

        let mut released = view.released();
        if access.signal != 0 {
            let sets = AccessSite {
                kind: ShadowKind::signal(access.counts),
                site: call.site,
                nbytes: 8,
            };
            let word = ByteBlocks::one(access.signal, 8);
            self.record_blocks(word, Some(pe), sets.record(put), view);

            // Who sees the signal sees the data of this put.
            released.raise(put.actor, put.epoch);
            let word = self.place_on(access.signal, pe).map(sync_words::of_word);
            self.release(call.thread, word, &released);
        } else if access.remote.total() <= 8 {
            // It may be a flag for which the target waits.
            self.release(call.thread, self.remote_words(access), &released);
        }
    }

    fn begin_get(&self, call: IssuedCall<'_>) {
        let access = call.access;
        let get = match access.operation {
            AccessOperation::Get => call.thread.stamp(),
            _ => match call.context.gets(&self.areas, self.me, access.pe) {
                Some(flight) => flight.issue(),
                None => return,
            },
        };

        let view = View::of(&call.thread.clock);
        let reads = call.of_kind(ShadowKind::READ).record(get);
        self.record_blocks(access.remote, Some(access.pe), reads, view);
        let writes = call.of_kind(ShadowKind::WRITE).record(get);
        self.record_blocks(access.local, None, writes, view);
    }

    /// Begins an atomic operation whose result is stored later. The operation is an actor that a
    /// fence orders, the store of the fetched value another one that only a quiet completes.
    fn begin_fetch_nbi(&self, call: IssuedCall<'_>) {
        let access = call.access;
        let Some(store) = call.context.gets(&self.areas, self.me, access.pe) else {
            return;
        };
        let store = store.issue();
        let writes = call.of_kind(ShadowKind::WRITE).record(store);
        self.record_blocks(access.local, None, writes, View::of(&call.thread.clock));

        let Some(fetch) = call.context.puts(&self.areas, self.me, access.pe, 0) else {
            return;
        };
        let fetch = fetch.issue();
        let context = self.begin_fetch(call, fetch);

        // The quiet that completes the store acquires the word.
        if let Some(place) = self.place_on(access.remote.addr, access.pe) {
            let word = sync_words::of_word(place);
            context.fetched.insert((access.pe, word));
        }
    }

    /// Records the atomic operation of a fetch as one of `by`. Returns the context of the call.
    fn begin_fetch<'a>(&self, call: IssuedCall<'a>, by: Stamp) -> &'a mut ContextFlights {
        let access = call.access;
        let fenced = call.context.fenced(access.pe, &call.thread.clock);
        let view = View {
            clock: &call.thread.clock,
            fenced: &fenced,
        };
        let record = call.of_kind(atomic(access)).record(by);
        self.record_blocks(access.remote, Some(access.pe), record, view);

        if !access.reads_only {
            let released = view.released();
            self.release(call.thread, self.remote_words(access), &released);
        }
        call.context
    }

    /// Returns the keys of the words that an operation changes.
    fn remote_words(&self, access: &CheckedAccess) -> impl Iterator<Item = sync_words::Key> {
        let ByteBlocks {
            addr, stride, n, ..
        } = access.remote;
        let nbytes = match access.operation {
            AccessOperation::Put | AccessOperation::PutNbi => access.remote.nbytes,
            // One key is enough for an atomic operation: a thread that reads the word acquires the
            // key of its first bytes.
            _ => 1,
        };
        let pe = access.pe;
        (0..n)
            .filter_map(move |i| self.place_on(addr + i * stride, pe))
            .flat_map(move |place| sync_words::of_bytes(place, nbytes))
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
            if let Some(context) = contexts.get(&access.ctx) {
                for fenced in context.fenced(access.pe, &thread.clock) {
                    thread.clock.raise(fenced.actor, fenced.epoch);
                }
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
        let start = place.offset % PAGE;
        let mask = word_mask(place.offset, nbytes) as u8;
        let contexts = locked(&self.contexts);
        self.areas.page(place).revise(start..start + nbytes, |old| {
            let is_seen = old.kind.is_atomic() && old.kind.writes() && old.mask == mask;
            let info = ActorInfo::find(&self.areas, old.actor);
            let is_own = info.pe == self.me && matches!(info.role, ActorRole::InFlight(_));
            if !is_seen || !is_own {
                return Some(old);
            }

            let fenced_in = contexts
                .values()
                .find_map(|context| context.fenced_in(old.stamp(), thread.actor));
            Some(ShadowRecord {
                actor: thread.actor,
                epoch: fenced_in.unwrap_or(thread.epoch()),
                ..old
            })
        });
    }

    /// Records a fence, or the begin or end of a quiet or a flush.
    pub fn order(&self, order: Order, ctx: u64, pe: u32) {
        self.with_caller(|thread| {
            let mut contexts = locked(&self.contexts);
            if ctx == ALL_CONTEXTS {
                for context in contexts.values_mut() {
                    self.order_context(context, order, pe, thread);
                }
            } else if let Some(context) = contexts.get_mut(&ctx) {
                self.order_context(context, order, pe, thread);
            }
            drop(contexts);

            if matches!(order, Order::Begin | Order::Flush | Order::PeFlush) {
                return;
            }

            // A fence and the end of a quiet also order what the thread knows before a flag that it
            // stores later: through a pointer of `shmem_ptr`, which only an instrumented program
            // reports, or by a relaxed atomic operation of the language.
            if super::IS_INSTRUMENTED.load(Relaxed) {
                sync_words::add_fence(&self.areas, thread.actor, thread.fences, &thread.clock);
                thread.fences = thread.fences.wrapping_add(1);
            }
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
            Order::Quiet => self.complete(context, None, thread),
            Order::PeQuiet => self.complete(context, Some(pe), thread),
            Order::Flush => context.flush(None, thread),
            Order::PeFlush => context.flush(Some(pe), thread),
        }
    }

    /// Records the end of a quiet to one PE or to all.
    fn complete(&self, context: &mut ContextFlights, pe: Option<u32>, thread: &mut Thread) {
        context.quiet(pe, thread);

        // The values that atomic operations have fetched are complete, too.
        context.fetched.retain(|(from, word)| {
            if pe.is_some_and(|pe| pe != *from) {
                return true;
            }
            sync_words::acquire(&self.areas, *word, &mut thread.clock);
            false
        });
    }

    /// Records that a wait or a test has seen a word of this PE. The writes to the word, and those
    /// ordered before them, are complete. If the word counts signals, and it would also have
    /// satisfied the comparison with one less, each last signal may be the one that was not needed:
    /// it then tells nothing of its put.
    pub fn seen(&self, addr: usize, has_surplus: bool) {
        self.with_caller(|thread| {
            let Some(place) = self.place_on(addr, self.me) else {
                return;
            };
            let mut released = VectorClock::default();
            sync_words::acquire(&self.areas, sync_words::of_word(place), &mut released);

            let start = place.offset % PAGE;
            let first_byte = word_mask(place.offset, 1) as u8;
            let mut stores = Vec::new();
            self.areas.page(place).forget(start..start + 1, |old| {
                let is_word = old.nbytes <= 8 && old.kind.writes() && old.mask & first_byte != 0;
                if is_word && old.kind.is_to_peer() {
                    stores.push(old.stamp());
                }
                if is_word && has_surplus && old.kind.counts() {
                    released.forget_from(old.stamp());
                    return false;
                }
                is_word && old.kind.is_of_library()
            });
            thread.clock.join(&released);

            // Stores of other PEs to this word through a pointer: the accesses of their threads
            // before the store are complete, and so is what the thread knew at its last fence.
            for store in stores {
                thread.clock.raise(store.actor, store.epoch);
                sync_words::acquire_fence(&self.areas, store, &mut thread.clock);
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

    /// Records that this PE, which has entered the collective `call`, may write the result of `pe`
    /// from then on. `pe` leaves the collective after that, so only what it does before it calls
    /// may be a race: for example, it may still be in an earlier collective.
    pub fn write_result(&self, call: &'static str, dest: ByteBlocks, pe: u32) {
        self.with_issuing(|thread| {
            let writes = AccessSite {
                kind: ShadowKind::WRITE,
                site: sites::of_call(&self.areas, call),
                nbytes: dest.total(),
            };
            // Of the epoch that ended when it entered.
            let record = writes.record(Stamp {
                actor: thread.actor,
                epoch: thread.epoch() - 1,
            });
            let view = View::of(&thread.clock);
            self.record_blocks(dest, Some(pe), record, view);
        });
    }

    /// Records that this PE leaves a collective, which has read `source` and written `dest`.
    pub fn leave(&self, collective: &CollectiveEvent, source: &[ByteBlocks], dest: &[ByteBlocks]) {
        self.operations.fetch_add(1, Relaxed);
        self.with_caller(|thread| {
            // A barrier accesses no memory, so nothing needs its site.
            let has_memory = source.iter().chain(dest).any(|blocks| blocks.addr != 0);
            let site = if has_memory {
                sites::of_call(&self.areas, collective.call.get())
            } else {
                0
            };

            // The source is read before the thread is ordered after other members, which may change
            // their copies at once.
            self.record_all(source, ShadowKind::READ, site, thread);

            let members = match collective.follows {
                FollowedMembers::All => 0..collective.n,
                FollowedMembers::Member => collective.member..collective.member + 1,
                FollowedMembers::Below => 0..collective.member,
            };
            collectives::leave(&self.areas, collective, members, &mut thread.clock);

            self.record_all(dest, ShadowKind::WRITE, site, thread);
        });
    }

    /// Records that the thread accesses blocks of this PE in a collective.
    fn record_all(&self, all: &[ByteBlocks], kind: ShadowKind, site: u32, thread: &Thread) {
        for blocks in all {
            let accesses = AccessSite {
                kind,
                site,
                nbytes: blocks.total(),
            };
            let record = accesses.record(thread.stamp());
            self.record_blocks(*blocks, None, record, View::of(&thread.clock));
        }
    }

    /// Records that this PE has acquired a lock.
    pub fn acquire_lock(&self, addr: usize) {
        self.with_caller(|thread| {
            if let Some(place) = self.place_on(addr, self.me) {
                let key = sync_words::of_lock(place);
                sync_words::acquire(&self.areas, key, &mut thread.clock);
            }
        });
    }

    /// Records that this PE releases a lock.
    pub fn release_lock(&self, addr: usize) {
        self.with_caller(|thread| {
            if let Some(place) = self.place_on(addr, self.me) {
                let clock = thread.clock.clone();
                self.release(thread, Some(sync_words::of_lock(place)), &clock);
            }
        });
    }

    /// Records that `call` has allocated a block of the heap, and forgets all accesses to it.
    pub fn allocate_block(&self, call: &'static str, addr: usize, nbytes: usize) {
        self.with_caller(|_| {
            let Some(place) = self.place_on(addr, self.me) else {
                return;
            };

            let site = sites::of_call(&self.areas, call);
            self.reporter.allocated(place.offset, nbytes, site);
            for part in by_page(place.offset, nbytes) {
                let page = self.areas.page(ShadowPlace {
                    offset: part.page,
                    ..place
                });
                page.forget(part.bytes, |_| true);
            }
        });
    }

    /// Records that `call` frees a block of the heap, which counts as a write to all of it.
    pub fn free_block(&self, call: &'static str, addr: usize, nbytes: usize) {
        self.with_caller(|thread| {
            let Some(place) = self.place_on(addr, self.me) else {
                return;
            };

            let frees = AccessSite {
                kind: ShadowKind::WRITE,
                site: sites::of_call(&self.areas, call),
                nbytes,
            };
            let record = frees.record(thread.stamp());
            let view = View::of(&thread.clock);
            self.record_access(Memory::Symmetric(place), nbytes, record, view);
        });
    }
}

/// Returns the kind of an atomic operation.
fn atomic(access: &CheckedAccess) -> ShadowKind {
    let domain = match (access.word, access.of_shared) {
        (WordKind::Signal, _) => AtomicityDomain::Signal,
        (_, true) => AtomicityDomain::Shared,
        (_, false) => AtomicityDomain::World,
    };
    let is_float = access.word == WordKind::Float;
    ShadowKind::atomic(domain, access.remote.total(), is_float, !access.reads_only)
}
