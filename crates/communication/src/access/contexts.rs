//! The contexts that exist, and how each of them numbers PEs.
//!
//! The lower half of a handle can say that the context numbers PEs as the world does; then no table
//! is read to translate a PE. The upper half has the index of a slot and the slot's generation, so
//! that the handle of a destroyed context is recognized. With `SHMEM_CHECK` every use of a context
//! other than the default one looks its handle up in the registry. `api::ctx` creates and destroys
//! contexts.
#![allow(unsafe_code)]

use core::ffi::{c_int, c_long};
use rushmem_pe::call::thread::{self, CallingThread};
use rushmem_pe::call::{Call, fail};
use rushmem_pe::constants::SHMEM_CTX_PRIVATE;
use rushmem_pe::job::handle::{ContextHandle, TeamHandle};
use rushmem_pe::job::members::Members;
use rushmem_pe::memory::address::{self, ExistingPe, PeNumber};
use rushmem_system::lock::lock;
use std::collections::{BTreeMap, BTreeSet};
use std::ptr::null_mut;
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};
use std::sync::{Mutex, MutexGuard};

/// The context of an operation: the default context, known at compile time, or a handle.
pub trait Context: Copy {
    /// True if the operations on it are those of a lock on the lock's own words.
    const IS_OF_LOCK: bool = false;
    /// Returns the world PE that `pe` means on this context: `pe` itself, unchecked, if the context
    /// is known to number PEs as the world does. Otherwise ends the job with an error if there is
    /// no such context, or if its team has no such PE.
    fn world_pe(self, call: Call, pe: c_int) -> c_int;
    /// Returns the world PE that `pe` means on this context, if the context's team has such a PE.
    #[inline(always)]
    fn existing_pe(self, _: Call, pe: usize) -> Option<ExistingPe> {
        ExistingPe::new(pe)
    }
    /// Returns the handle of the context.
    fn handle(self) -> ContextHandle;
    /// Returns false for `SHMEM_CTX_INVALID`, on which ordering routines have no effect. Ends the
    /// job with an error if there is no such context; a destroyed context that numbered PEs as the
    /// world does is not recognized.
    fn is_valid(self, call: Call) -> bool;
}

/// A PE as the argument of an operation: a number on the operation's context, from C, or a PE of
/// the world that exists, from Rust, so that the operation does not check it again.
pub trait PeArgument: PeNumber {
    /// Returns the PE of the world.
    fn of_world<C: Context>(self, call: Call, ctx: C) -> Self;
}

impl PeArgument for c_int {
    #[inline(always)]
    fn of_world<C: Context>(self, call: Call, ctx: C) -> c_int {
        ctx.world_pe(call, self)
    }
}

impl PeArgument for ExistingPe {
    #[inline(always)]
    fn of_world<C: Context>(self, _: Call, _: C) -> ExistingPe {
        self
    }
}

/// The default context: `pe` is a world PE.
#[derive(Clone, Copy, Debug)]
pub struct DefaultContext;

impl Context for DefaultContext {
    #[inline(always)]
    fn world_pe(self, _: Call, pe: c_int) -> c_int {
        pe
    }

    #[inline(always)]
    fn handle(self) -> ContextHandle {
        ContextHandle::DEFAULT
    }

    #[inline(always)]
    fn is_valid(self, _: Call) -> bool {
        true
    }
}

impl Context for ContextHandle {
    #[inline(always)]
    fn world_pe(self, call: Call, pe: c_int) -> c_int {
        if self.is_of_world() {
            pe
        } else {
            translate(call, self, pe)
        }
    }

    #[inline(always)]
    fn existing_pe(self, call: Call, pe: usize) -> Option<ExistingPe> {
        if self.is_of_world() {
            ExistingPe::new(pe)
        } else {
            existing_member(call, self, pe)
        }
    }

    #[inline(always)]
    fn handle(self) -> ContextHandle {
        self
    }

    #[inline(always)]
    fn is_valid(self, call: Call) -> bool {
        self.is_of_world() || (self != ContextHandle::INVALID && is_known(call, self))
    }
}

/// Returns the world PE that `pe` means on a context with a slot.
///
/// Cold, so that callers save registers only where they call it.
#[cold]
#[inline(never)]
fn translate(call: Call, handle: ContextHandle, pe: c_int) -> c_int {
    CONTEXTS.world_pe(call, handle, pe)
}

/// Returns the world PE that `pe` means on a context with a slot, if the context's team has such a
/// PE.
#[cold]
#[inline(never)]
fn existing_member(call: Call, handle: ContextHandle, pe: usize) -> Option<ExistingPe> {
    CONTEXTS.existing_pe(call, handle, pe)
}

/// Returns true if there is such a context, otherwise ends the job with an error.
#[inline(never)]
fn is_known(call: Call, handle: ContextHandle) -> bool {
    CONTEXTS.is_known(call, handle)
}

/// The contexts of this PE.
static CONTEXTS: Contexts = Contexts::new();

/// Returns the contexts of this PE.
#[inline(always)]
pub fn contexts() -> &'static Contexts {
    &CONTEXTS
}

/// The contexts of a PE besides the default one. Before the first one, all bytes are zero, so that
/// the slots take no room in the library's file.
pub struct Contexts {
    /// The slots by the index of their context less 1. Pages of unused slots are never touched.
    slots: [ContextSlot; MAX_CONTEXTS],
    registry: Mutex<Registry>,
}

/// Maximum number of contexts that exist at once, besides the default one. A handle has 17 bits for
/// the numbers of all of them.
pub(crate) const MAX_CONTEXTS: usize = 1 << 16;

/// How a context numbers PEs, for the path of an access. All fields are zero before the first
/// context uses the slot.
struct ContextSlot {
    /// The number of destroyed contexts that had this slot.
    generation: AtomicU32,
    /// The number of PEs that this slot can translate: all members of the context's team, or 0
    /// with `SHMEM_CHECK` and while no context has the slot.
    n: AtomicU32,
    start: AtomicU32,
    /// 0 if the members are listed instead of a triplet.
    stride: AtomicI32,
    /// True if the team of the context is, or was split from, `SHMEM_TEAM_SHARED`.
    is_of_shared: AtomicBool,
    /// The world PE of each member, if they are listed. The list has an entry for each PE of the
    /// job, so that a later team can use it, too: it is allocated at the first use and never freed.
    /// Null until then.
    list: AtomicPtr<AtomicU32>,
}

/// The contexts that exist, and the slots that can be reused. An empty B-tree has only zero bytes,
/// unlike a hash map or a vector.
struct Registry {
    alive: BTreeMap<ContextHandle, ContextEntry>,
    /// The indices of the slots of destroyed contexts.
    spare: BTreeSet<u32>,
    /// The number of slots that were ever used.
    used: u32,
}

#[derive(Clone)]
struct ContextEntry {
    team: TeamHandle,
    /// The predefined team from which `team` was split, directly or in several steps; `team`
    /// itself if it is predefined.
    root: TeamHandle,
    members: Members,
    options: c_long,
    /// The thread that created the context, if the context is private and `SHMEM_CHECK` is set.
    user: Option<CallingThread>,
}

/// What the destruction of a team must know of one of its contexts.
#[derive(Clone, Copy, Debug)]
pub struct TeamContext {
    /// The handle of the context.
    pub handle: ContextHandle,
    /// True if only the thread that created the context may use it.
    pub is_private: bool,
}

impl Contexts {
    /// Returns the contexts of a PE that has created none.
    pub(crate) const fn new() -> Contexts {
        Contexts {
            slots: [const { ContextSlot::new() }; MAX_CONTEXTS],
            registry: Mutex::new(Registry {
                alive: BTreeMap::new(),
                spare: BTreeSet::new(),
                used: 0,
            }),
        }
    }

    /// Adds a context of `team`, which was split from `root` or is `root`. Returns the handle, or
    /// `None` if there are too many contexts.
    pub fn add(
        &self,
        team: TeamHandle,
        root: TeamHandle,
        members: Members,
        options: c_long,
        n_pes: u32,
        check: bool,
    ) -> Option<ContextHandle> {
        let is_private = options & SHMEM_CTX_PRIVATE != 0;
        let user = if check && is_private {
            Some(thread::current())
        } else {
            None
        };
        let entry = ContextEntry {
            team,
            root,
            members,
            options,
            user,
        };

        let mut registry = self.registry();
        let index = registry.take_slot()?;
        let slot = &self.slots[index as usize];
        slot.set(&entry, n_pes, check);

        // The CPU must carry out the atomic operations on a context of `SHMEM_TEAM_SHARED`, also if
        // the network carries out those of the world. Then its handle is not one of the world, even
        // if it has the same members.
        let is_by_cpu = entry.is_of_shared() && address::are_atomics_by_network();
        let is_of_world = !check && !is_by_cpu && entry.members == Members::world(n_pes);
        // Relaxed: it changes under the lock of the registry, which this thread has.
        let generation = slot.generation.load(Relaxed);
        let handle = ContextHandle::new(generation, index + 1, is_of_world);

        registry.alive.insert(handle, entry);
        Some(handle)
    }

    /// Removes a context, if it exists: its handle is invalid from now on.
    pub fn remove(&self, handle: ContextHandle) {
        let mut registry = self.registry();
        if registry.alive.remove(&handle).is_none() {
            return;
        }

        if let Some(slot) = self.slot_of(handle) {
            slot.n.store(0, Relaxed);
            // From now on the slot is not that of the handle.
            slot.generation.fetch_add(1, Relaxed);
            registry.spare.insert(handle.index() as u32 - 1);
        }
    }

    /// Returns the contexts of a team, or of all teams. The default context is not among them.
    pub fn of_team(&self, team: Option<TeamHandle>) -> Vec<TeamContext> {
        let mut contexts = Vec::new();
        for (handle, entry) in &self.registry().alive {
            if team.is_none_or(|team| team == entry.team) {
                contexts.push(TeamContext {
                    handle: *handle,
                    is_private: entry.is_private(),
                });
            }
        }
        contexts
    }

    /// Returns the team of a context; `None` for the default context, and if there is no such
    /// context.
    pub fn team_of(&self, ctx: ContextHandle) -> Option<TeamHandle> {
        self.registry().alive.get(&ctx).map(|entry| entry.team)
    }

    /// Returns the members of a context's team; ends the job with an error if there is no such
    /// context, and with `SHMEM_CHECK` if it is a private context of another thread.
    pub fn require(&self, call: Call, handle: ContextHandle) -> Members {
        if handle == ContextHandle::INVALID {
            fail!(
                call,
                "argument ctx is SHMEM_CTX_INVALID; check the result of shmem_ctx_create"
            );
        }

        let found = self.registry().alive.get(&handle).cloned();
        let Some(entry) = found else {
            fail!(
                call,
                "argument ctx is not a context: was it destroyed, or never created?"
            );
        };

        if entry.user.is_some_and(|user| user != thread::current()) {
            fail!(
                call,
                "argument ctx is a private context of another thread: SHMEM_CTX_PRIVATE allows the thread \
                 that created it to use and to destroy it, and no other"
            );
        }

        entry.members
    }

    /// Ends the job with an error unless there is a context with this handle. Called before the
    /// endpoint of a context is created.
    pub fn require_for_network(&self, call: Call, handle: ContextHandle) {
        if handle != ContextHandle::DEFAULT {
            self.require(call, handle);
        }
    }

    /// Returns true if this CPU carries out the atomic operations on a context even where the
    /// network carries out those of the world.
    #[inline(always)]
    pub(crate) fn is_by_cpu(&self, ctx: ContextHandle) -> bool {
        !ctx.is_of_world() && self.is_of_shared(ctx)
    }

    /// Returns true if the team of a context is, or was split from, `SHMEM_TEAM_SHARED`. The
    /// operations on it need not be atomic with respect to those of contexts in other domains
    /// ("Atomicity Guarantees").
    #[inline(always)]
    pub(crate) fn is_of_shared(&self, ctx: ContextHandle) -> bool {
        self.slot_of(ctx)
            .is_some_and(|slot| slot.is_of_shared.load(Relaxed))
    }

    /// Returns the world PE that `pe` means on a context with a slot. Ends the job with an error if
    /// there is no such context, or if its team has no such PE.
    #[inline(always)]
    fn world_pe(&self, call: Call, handle: ContextHandle, pe: c_int) -> c_int {
        let known = self.slot_of(handle).and_then(|slot| slot.world_pe(pe));
        known.unwrap_or_else(|| self.world_pe_in_registry(call, handle, pe))
    }

    #[cold]
    fn world_pe_in_registry(&self, call: Call, handle: ContextHandle, pe: c_int) -> c_int {
        let members = self.require(call, handle);
        if pe as u32 >= members.n {
            let pe = call.written(pe);
            let n = members.n;
            fail!(
                call,
                "argument pe is {pe}, but the context's team has {n} PEs"
            );
        }
        members.world_pe(pe as u32).0 as c_int
    }

    /// Returns the world PE that `pe` means on a context with a slot, if the context's team has
    /// such a PE.
    #[inline(always)]
    fn existing_pe(&self, call: Call, handle: ContextHandle, pe: usize) -> Option<ExistingPe> {
        let pe = c_int::try_from(pe).ok()?;
        if let Some(known) = self.slot_of(handle).and_then(|slot| slot.world_pe(pe)) {
            return ExistingPe::new(known as usize);
        }

        let members = self.require(call, handle);
        if (pe as u32) < members.n {
            ExistingPe::new(members.world_pe(pe as u32).index())
        } else {
            None
        }
    }

    /// Returns true if there is such a context, otherwise ends the job with an error. The registry
    /// is only searched if no slot translates PEs for the handle, as with `SHMEM_CHECK`.
    #[inline(always)]
    fn is_known(&self, call: Call, handle: ContextHandle) -> bool {
        let slot = self.slot_of(handle);
        let has_slot = slot.is_some_and(|slot| slot.n.load(Relaxed) > 0);
        has_slot || self.require(call, handle).n > 0
    }

    /// Returns the slot that a handle names, if the slot is in use for it.
    #[inline]
    fn slot_of(&self, handle: ContextHandle) -> Option<&ContextSlot> {
        let slot = self.slots.get(handle.index().wrapping_sub(1))?;
        if handle.is_of_generation(slot.generation.load(Relaxed)) {
            Some(slot)
        } else {
            None
        }
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        lock(&self.registry)
    }
}

impl ContextSlot {
    const fn new() -> ContextSlot {
        ContextSlot {
            generation: AtomicU32::new(0),
            n: AtomicU32::new(0),
            start: AtomicU32::new(0),
            stride: AtomicI32::new(0),
            is_of_shared: AtomicBool::new(false),
            list: AtomicPtr::new(null_mut()),
        }
    }

    /// Returns the world PE that `pe` means, if the slot knows it.
    fn world_pe(&self, pe: c_int) -> Option<c_int> {
        if pe as u32 >= self.n.load(Relaxed) {
            return None;
        }

        let stride = self.stride.load(Relaxed);
        // Acquire: the entries were stored before the list.
        let list = self.list.load(Acquire);
        if stride != 0 || list.is_null() {
            return Some(self.start.load(Relaxed) as c_int + stride * pe);
        }

        // SAFETY: the list has an entry for each PE of the job, and `pe` is below the number of
        // members, which is not larger.
        let entry = unsafe { &*list.wrapping_add(pe as usize) };
        Some(entry.load(Relaxed) as c_int)
    }

    /// Sets what a new context needs. The caller has the lock of the registry.
    fn set(&self, context: &ContextEntry, n_pes: u32, check: bool) {
        let members = &context.members;
        let (start, stride) = members.triplet().unwrap_or((0, 0));
        if stride == 0 {
            // The members are not a triplet, so they are listed.
            if self.list.load(Relaxed).is_null() {
                let list = Box::leak((0..n_pes).map(AtomicU32::new).collect::<Box<[_]>>());
                self.list.store(list.as_mut_ptr(), Release);
            }
            let list = self.list.load(Relaxed);
            for member in 0..members.n {
                // SAFETY: the list has an entry for each PE of the job; no team has more members.
                let entry = unsafe { &*list.wrapping_add(member as usize) };
                entry.store(members.world_pe(member).0, Relaxed);
            }
        }

        // Relaxed: the program synchronizes with a thread to which it passes the handle. A thread
        // that uses a context while another one destroys it, which is a mistake of the program, may
        // reach PEs of a new context.
        self.start.store(start, Relaxed);
        self.stride.store(stride, Relaxed);
        self.is_of_shared.store(context.is_of_shared(), Relaxed);
        self.n.store(if check { 0 } else { members.n }, Relaxed);
    }
}

impl Registry {
    /// Returns the index of a slot that no context has; `None` if all are in use.
    fn take_slot(&mut self) -> Option<u32> {
        if let Some(index) = self.spare.pop_first() {
            return Some(index);
        }
        if self.used as usize == MAX_CONTEXTS {
            return None;
        }
        self.used += 1;
        Some(self.used - 1)
    }
}

impl ContextEntry {
    fn is_private(&self) -> bool {
        self.options & SHMEM_CTX_PRIVATE != 0
    }

    /// Returns true if the atomic operations on it belong to the domain of `SHMEM_TEAM_SHARED`
    /// (OpenSHMEM 1.6, "Atomicity Guarantees").
    fn is_of_shared(&self) -> bool {
        self.root == TeamHandle::SHARED
    }
}

#[cfg(test)]
mod tests;
