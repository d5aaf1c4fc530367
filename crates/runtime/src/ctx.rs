//! Contexts (OpenSHMEM 1.6, communication management).
//!
//! On-node every access completes by itself, so a context holds nothing but its team's numbering. A
//! handle says by its lowest bit whether PEs are numbered as in the world: then no table is read. The
//! handle of any other context is the address of its numbering, in memory that is reused for
//! contexts alone and never freed.

use crate::call::{Call, fail};
use crate::constants::{SHMEM_CTX_NOSTORE, SHMEM_CTX_PRIVATE, SHMEM_CTX_SERIALIZED};
use crate::team::Members;
use crate::{job, network, order, team};
use core::ffi::{c_int, c_long};
use std::collections::HashMap;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};

/// `shmem_ctx_t` as it crosses the C boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Handle(pub usize);

impl Handle {
    /// `SHMEM_CTX_INVALID`
    pub const INVALID: Handle = Handle(0);
    /// `SHMEM_CTX_DEFAULT`
    pub const DEFAULT: Handle = Handle(1);
}

/// What an operation is issued on: the default context, known at compile time, or a handle.
pub trait Context: Copy {
    /// The world PE that `pe` means on this context.
    fn world_pe(self, call: Call, pe: c_int) -> c_int;
    /// Its handle.
    fn handle(self) -> Handle;
    /// Whether this is `SHMEM_CTX_INVALID`, on which ordering routines do nothing.
    fn is_invalid(self) -> bool;
}

/// The default context: `pe` is a world PE.
#[derive(Clone, Copy, Debug)]
pub struct World;

impl Context for World {
    #[inline(always)]
    fn world_pe(self, _: Call, pe: c_int) -> c_int {
        pe
    }

    fn handle(self) -> Handle {
        Handle::DEFAULT
    }

    fn is_invalid(self) -> bool {
        false
    }
}

impl Context for Handle {
    #[inline(always)]
    fn world_pe(self, call: Call, pe: c_int) -> c_int {
        if self.0 & 1 == 1 { pe } else { numbering(call, self).world_pe(call, pe) }
    }

    fn handle(self) -> Handle {
        self
    }

    fn is_invalid(self) -> bool {
        self == Handle::INVALID
    }
}

/// How a context of a team numbers PEs. Alive while `n` is not 0.
#[derive(Default)]
struct Numbering {
    start: AtomicU32,
    /// 0 where the members are no triplet, but listed.
    stride: AtomicI32,
    n: AtomicU32,
    /// As long as the job has PEs, and made when first needed: it serves any later team as well.
    list: OnceLock<Box<[AtomicU32]>>,
}

impl Numbering {
    fn world_pe(&self, call: Call, pe: c_int) -> c_int {
        let n = self.n.load(Relaxed);
        if pe as u32 >= n {
            match n {
                0 => fail!(call, "argument ctx is a context that was destroyed"),
                _ => fail!(call, "argument pe is {pe}, but the context's team has {n} PEs"),
            }
        }
        match (self.stride.load(Relaxed), self.list.get()) {
            (0, Some(list)) => list[pe as usize].load(Relaxed) as c_int,
            (stride, _) => self.start.load(Relaxed) as c_int + stride * pe,
        }
    }

    fn set(&self, members: &Members, n_pes: u32) {
        let (start, stride) = members.triplet().unwrap_or((0, 0));
        if stride == 0 {
            let list = self.list.get_or_init(|| (0..n_pes).map(AtomicU32::new).collect());
            for (member, entry) in (0..members.n).zip(list) {
                entry.store(members.world_pe(member).0, Relaxed);
            }
        }
        self.start.store(start, Relaxed);
        self.stride.store(stride, Relaxed);
        self.n.store(members.n, Relaxed);
    }
}

fn numbering(call: Call, handle: Handle) -> &'static Numbering {
    if handle == Handle::INVALID || !handle.0.is_multiple_of(align_of::<Numbering>()) {
        fail!(call, "argument ctx is not a context");
    }
    // SAFETY: a handle with its lowest bit clear is the address of a `Numbering` that is never freed.
    unsafe { &*std::ptr::with_exposed_provenance::<Numbering>(handle.0) }
}

/// Every created context, and the numberings that wait for reuse.
#[derive(Default)]
struct Registry {
    alive: HashMap<Handle, Entry>,
    spare: Vec<&'static Numbering>,
}

struct Entry {
    team: team::Handle,
    options: c_long,
}

static REGISTRY: Mutex<Option<Registry>> = Mutex::new(None);
static NEXT: AtomicUsize = AtomicUsize::new(1);

fn with_registry<R>(f: impl FnOnce(&mut Registry) -> R) -> R {
    let mut registry = REGISTRY.lock().unwrap_or_else(|e| e.into_inner());
    f(registry.get_or_insert_default())
}

/// `shmem_ctx_create` (§9.5.1) on the world team, `shmem_team_create_ctx` (§9.5.2) on any: not
/// collective. `None` for the invalid team and for unknown options.
pub fn create(call: Call, team: team::Handle, options: c_long) -> Option<Handle> {
    job::require(call);
    let known = SHMEM_CTX_SERIALIZED | SHMEM_CTX_PRIVATE | SHMEM_CTX_NOSTORE;
    let possible = team != team::Handle::INVALID && options & !known == 0;
    possible.then(|| make(call, team, options))
}

fn make(call: Call, team: team::Handle, options: c_long) -> Handle {
    let found = team::find(call, "team", team);
    let n_pes = job::require(call).n_pes;
    with_registry(|registry| {
        let handle = if *found.members() == Members::world(n_pes) {
            Handle(NEXT.fetch_add(1, Relaxed) << 1 | 1)
        } else {
            let numbering = registry.spare.pop().unwrap_or_else(|| Box::leak(Box::default()));
            numbering.set(found.members(), n_pes);
            Handle(std::ptr::from_ref(numbering).expose_provenance())
        };
        registry.alive.insert(handle, Entry { team, options });
        handle
    })
}

/// `shmem_ctx_destroy` (§9.5.3): completes what was issued on it first; the invalid
/// context is left alone.
pub fn destroy(call: Call, ctx: Handle) {
    if ctx == Handle::INVALID {
        return;
    }
    order::quiet(call, ctx);
    if !with_registry(|registry| remove(registry, ctx)) {
        fail!(
            call,
            "argument ctx is not a context that shmem_ctx_create made and that still exists"
        );
    }
}

fn remove(registry: &mut Registry, ctx: Handle) -> bool {
    let known = registry.alive.remove(&ctx).is_some();
    network::forget(ctx);
    if known && ctx.0 & 1 == 0 {
        // SAFETY: a handle with its lowest bit clear is the address of a `Numbering`, never freed.
        let numbering = unsafe { &*std::ptr::with_exposed_provenance::<Numbering>(ctx.0) };
        numbering.n.store(0, Relaxed);
        registry.spare.push(numbering);
    }
    known
}

/// Destroy the shareable contexts of a team that is being destroyed (§9.4.8), or of
/// all teams.
pub(crate) fn destroy_shareable(team: Option<team::Handle>) {
    with_registry(|registry| {
        let doomed: Vec<Handle> = registry
            .alive
            .iter()
            .filter(|(_, e)| team.is_none_or(|t| t == e.team))
            .filter(|(_, e)| e.options & SHMEM_CTX_PRIVATE == 0)
            .map(|(&handle, _)| handle)
            .collect();
        for ctx in doomed {
            remove(registry, ctx);
        }
    });
}

/// `shmem_ctx_get_team` (§9.5.4): `None` for the invalid context.
pub fn team_of(call: Call, ctx: Handle) -> Option<team::Handle> {
    match ctx {
        Handle::INVALID => None,
        Handle::DEFAULT => Some(team::Handle::WORLD),
        _ => match with_registry(|registry| registry.alive.get(&ctx).map(|e| e.team)) {
            Some(team) => Some(team),
            None => fail!(call, "argument ctx is not a context"),
        },
    }
}

/// `shmem_ctx_session_start` (§9.9.2). A session is a hint: it changes neither order nor completion,
/// and on-node there is nothing to prepare.
pub fn session_start(call: Call, _ctx: Handle) {
    job::require(call);
}

/// `shmem_ctx_session_stop` (§9.9.3). Harmless when no session was started.
pub fn session_stop(call: Call, _ctx: Handle) {
    job::require(call);
}
