//! The contexts that exist, and how each of them numbers PEs.
//!
//! The lower half of a handle can say that the context numbers PEs as the world does; then no table
//! is read to translate a PE. The upper half has the index of a slot of `SLOTS` and the slot's
//! generation, so that the handle of a destroyed context is recognized. With `SHMEM_CHECK` every
//! use of a context other than the default one looks its handle up in the registry. `api::ctx`
//! creates and destroys contexts.
#![allow(unsafe_code)]

use core::ffi::{c_int, c_long};
use rushmem_pe::call::thread::{self, Caller};
use rushmem_pe::call::{Call, fail};
use rushmem_pe::constants::SHMEM_CTX_PRIVATE;
use rushmem_pe::job::handle::{ContextHandle, TeamHandle};
use rushmem_pe::job::members::Members;
use rushmem_pe::memory::address::{self, ExistingPe, PeNumber};
use rushmem_system::lock::lock;
use std::collections::HashMap;
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

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
    /// Null until then, since slots that are zero take no room in the library's file.
    list: AtomicPtr<AtomicU32>,
}

/// Maximum number of contexts that exist at once, besides the default one.
pub(crate) const MAX_CONTEXTS: usize = 1 << 16;

/// The slots by the index of their context less 1. Pages of unused slots are never touched.
static SLOTS: [ContextSlot; MAX_CONTEXTS] = [const {
    ContextSlot {
        generation: AtomicU32::new(0),
        n: AtomicU32::new(0),
        start: AtomicU32::new(0),
        stride: AtomicI32::new(0),
        is_of_shared: AtomicBool::new(false),
        list: AtomicPtr::new(null_mut()),
    }
}; MAX_CONTEXTS];

/// Returns the slot that a handle names, if the slot is in use for it.
#[inline]
fn slot_of(handle: ContextHandle) -> Option<&'static ContextSlot> {
    let slot = SLOTS.get(handle.index().wrapping_sub(1))?;
    if handle.is_of_generation(slot.generation.load(Relaxed)) {
        Some(slot)
    } else {
        None
    }
}

impl ContextSlot {
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

    /// Sets the numbering of a new context. The caller has the lock of the registry.
    fn set(&self, members: &Members, n_pes: u32, check: bool) {
        let (start, stride) = members.triplet().unwrap_or((0, 0));
        if stride == 0 {
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

        // Relaxed: the program synchronizes with a thread to which it passes the handle.
        self.start.store(start, Relaxed);
        self.stride.store(stride, Relaxed);
        self.n.store(if check { 0 } else { members.n }, Relaxed);
    }
}

/// Returns the world PE that `pe` means on a context with a slot.
///
/// Cold, so that callers save registers only where they call it.
#[cold]
#[inline(never)]
fn translate(call: Call, handle: ContextHandle, pe: c_int) -> c_int {
    let known = slot_of(handle).and_then(|slot| slot.world_pe(pe));
    known.unwrap_or_else(|| translate_checked(call, handle, pe))
}

/// Returns the world PE that `pe` means on a context with a slot, if the context's team has such a
/// PE.
#[cold]
#[inline(never)]
fn existing_member(call: Call, handle: ContextHandle, pe: usize) -> Option<ExistingPe> {
    let pe = c_int::try_from(pe).ok()?;
    if let Some(known) = slot_of(handle).and_then(|slot| slot.world_pe(pe)) {
        return ExistingPe::new(known as usize);
    }

    let members = require(call, handle);
    if (pe as u32) < members.n {
        ExistingPe::new(members.world_pe(pe as u32).index())
    } else {
        None
    }
}

/// Returns true if there is such a context, otherwise ends the job with an error. The registry is
/// only searched if no slot translates PEs for the handle, as with `SHMEM_CHECK`.
#[inline(never)]
fn is_known(call: Call, handle: ContextHandle) -> bool {
    let has_slot = slot_of(handle).is_some_and(|slot| slot.n.load(Relaxed) > 0);
    has_slot || require(call, handle).n > 0
}

#[cold]
fn translate_checked(call: Call, handle: ContextHandle, pe: c_int) -> c_int {
    let members = require(call, handle);
    if pe as u32 >= members.n {
        let (pe, n) = (call.written(pe), members.n);
        fail!(
            call,
            "argument pe is {pe}, but the context's team has {n} PEs"
        );
    }
    members.world_pe(pe as u32).0 as c_int
}

/// The contexts that exist, and the slots that can be reused.
#[derive(Default)]
struct Registry {
    alive: HashMap<ContextHandle, ContextEntry>,
    /// Slots of destroyed contexts.
    spare: Vec<u32>,
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
    user: Option<Caller>,
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

static REGISTRY: Mutex<Option<Registry>> = Mutex::new(None);

fn with_registry<R>(act: impl FnOnce(&mut Registry) -> R) -> R {
    act(lock(&REGISTRY).get_or_insert_default())
}

/// Returns the members of a context's team; ends the job with an error if there is no such context,
/// and with `SHMEM_CHECK` if it is a private context of another thread.
pub fn require(call: Call, handle: ContextHandle) -> Members {
    if handle == ContextHandle::INVALID {
        fail!(
            call,
            "argument ctx is SHMEM_CTX_INVALID; check the result of shmem_ctx_create"
        );
    }
    let Some(entry) = with_registry(|registry| registry.alive.get(&handle).cloned()) else {
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
pub fn require_for_network(call: Call, handle: ContextHandle) {
    if handle != ContextHandle::DEFAULT {
        require(call, handle);
    }
}

impl Registry {
    /// Gives a new context a slot. Returns the handle, or `None` if all slots are in use.
    fn assign_slot(
        &mut self,
        entry: &ContextEntry,
        n_pes: u32,
        check: bool,
    ) -> Option<ContextHandle> {
        let index = match self.spare.pop() {
            Some(index) => index,
            None if self.used as usize == MAX_CONTEXTS => return None,
            None => {
                self.used += 1;
                self.used - 1
            }
        };

        let slot = &SLOTS[index as usize];
        slot.set(&entry.members, n_pes, check);
        slot.is_of_shared.store(entry.is_of_shared(), Relaxed);

        // The CPU must carry out the atomic operations on a context of `SHMEM_TEAM_SHARED`, also if
        // the network carries out those of the world. Then its handle is not one of the world, even
        // if it has the same members.
        let is_by_cpu = entry.is_of_shared() && address::are_atomics_by_network();
        let is_of_world = !check && !is_by_cpu && entry.members == Members::world(n_pes);
        Some(ContextHandle::new(
            slot.generation.load(Relaxed),
            index + 1,
            is_of_world,
        ))
    }

    /// Removes a context. Returns true if there was one.
    fn remove(&mut self, handle: ContextHandle) -> bool {
        if self.alive.remove(&handle).is_none() {
            return false;
        }

        if let Some(slot) = slot_of(handle) {
            slot.n.store(0, Relaxed);
            // From now on the slot is not that of the handle.
            slot.generation.fetch_add(1, Relaxed);
            self.spare.push(handle.index() as u32 - 1);
        }
        true
    }
}

/// Returns true if this CPU carries out the atomic operations on a context even where the network
/// carries out those of the world.
#[inline(always)]
pub(crate) fn is_by_cpu(ctx: ContextHandle) -> bool {
    !ctx.is_of_world() && is_of_shared(ctx)
}

/// Returns true if the team of a context is, or was split from, `SHMEM_TEAM_SHARED`. The operations
/// on it need not be atomic with respect to those of contexts in other domains ("Atomicity
/// Guarantees").
#[inline(always)]
pub(crate) fn is_of_shared(ctx: ContextHandle) -> bool {
    slot_of(ctx).is_some_and(|slot| slot.is_of_shared.load(Relaxed))
}

/// Adds a context of `team`, which was split from `root` or is `root`. Returns the handle, or
/// `None` if there are too many contexts.
pub fn add(
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

    with_registry(|registry| {
        let handle = registry.assign_slot(&entry, n_pes, check)?;
        registry.alive.insert(handle, entry);
        Some(handle)
    })
}

/// Returns the largest index that any context has had; 0 if there was only the default one.
pub(crate) fn max_index() -> usize {
    with_registry(|registry| registry.used as usize)
}

/// Removes a context: its handle is invalid from now on.
pub fn remove(ctx: ContextHandle) {
    with_registry(|registry| registry.remove(ctx));
}

/// A context of a team.
#[derive(Clone, Copy, Debug)]
pub struct TeamContext {
    /// The handle of the context.
    pub handle: ContextHandle,
    /// True if only the thread that created the context may use it.
    pub is_private: bool,
}

/// Returns the contexts of a team, or of all teams. The default context is not among them.
pub fn of_team(team: Option<TeamHandle>) -> Vec<TeamContext> {
    with_registry(|registry| {
        let mut contexts = Vec::new();
        for (handle, entry) in &registry.alive {
            if team.is_none_or(|team| team == entry.team) {
                contexts.push(TeamContext {
                    handle: *handle,
                    is_private: entry.is_private(),
                });
            }
        }
        contexts
    })
}

/// Returns the team of a context; `None` for the default context, and if there is no such context.
pub fn team_of(ctx: ContextHandle) -> Option<TeamHandle> {
    with_registry(|registry| registry.alive.get(&ctx).map(|entry| entry.team))
}

#[cfg(test)]
pub mod tests;
