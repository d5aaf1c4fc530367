//! Accesses off the fast path: the network reaches the bytes, or this CPU does while accesses are
//! observed or counted. [`put`] and [`get`] show the decisions of each in order: the access is
//! described ([`Access`]), resolved to the path that reaches its bytes (`RemoteBytes`), shown to
//! observers ([`ObservedAccess`]), and issued, by this CPU or on the endpoint of its context.
//!
//! [`contexts`](mod@contexts) numbers the PEs of a context, [`endpoints`](mod@endpoints) has its
//! endpoint, [`order`] completes and orders what was issued on it.
//!
//! This code is cold beside the accesses to mapped memory, but it must be short: a NIC accepts a
//! request within a few hundred instructions.
#![allow(unsafe_code)]

pub mod atomic;
pub mod contexts;
pub mod endpoints;
pub mod order;
mod strided;

use crate::net::network;
use crate::net::polls;
use crate::observers::{
    AccessEvent, AccessKind, Action, Argument, ByteBlocks, Effect, Event, ObservedAccess, WordKind,
};
use crate::status::polled_calls;
use contexts::{Context, contexts};
use core::ffi::c_int;
use endpoints::{UsedEndpoint, endpoints};
use rushmem_explain::status::PolledObject;
use rushmem_pe::call::Call;
use rushmem_pe::job::handle::ContextHandle;
use rushmem_pe::memory::accessible::LocalAccess;
use rushmem_pe::memory::{address, checks, constants};
pub use rushmem_transport::Completion;
use rushmem_transport::{DestBuf, Get, LocalBuf, Put, RemoteAddr, SourceBuf, mem};
use std::ptr::with_exposed_provenance;

/// One access: the call, the context, the PE, and the symmetric argument.
#[derive(Clone, Copy)]
pub struct Access {
    pub(super) call: Call,
    pub(super) ctx: ContextHandle,
    pub(super) pe: c_int,
    argument: Argument,
    word: WordKind,
    /// True for an atomic operation.
    is_atomic: bool,
}

/// The path to a remote range: the network, or this CPU if the range is mapped here.
#[derive(Clone, Copy)]
pub(super) enum RemoteBytes {
    Network(RemoteAddr),
    Cpu(*mut u8),
}

/// The form of a routine that puts or gets contiguous bytes.
pub trait Form {
    /// The put of this form, for observers.
    const PUT: AccessKind;
    /// The get of this form, for observers.
    const GET: AccessKind;
    /// What completes the transfer.
    const COMPLETION: Completion;
    /// The local bytes are in memory of the program, which observers are shown.
    const HAS_BUFFER: bool;
}

/// `shmem_put` and `shmem_get`.
pub struct Blocking;

impl Form for Blocking {
    const PUT: AccessKind = AccessKind::Put;
    const GET: AccessKind = AccessKind::Get;
    const COMPLETION: Completion = Completion::Now;
    const HAS_BUFFER: bool = true;
}

/// `shmem_put_nbi` and `shmem_get_nbi`.
pub struct Nonblocking;

impl Form for Nonblocking {
    const PUT: AccessKind = AccessKind::PutNbi;
    const GET: AccessKind = AccessKind::GetNbi;
    const COMPLETION: Completion = Completion::AtQuiet;
    const HAS_BUFFER: bool = true;
}

/// `shmem_p` and `shmem_g`, which pass one element by value.
pub struct ByValue;

impl Form for ByValue {
    const PUT: AccessKind = AccessKind::P;
    const GET: AccessKind = AccessKind::G;
    const COMPLETION: Completion = Completion::Now;
    const HAS_BUFFER: bool = false;
}

/// Puts `nbytes` bytes to `dest`. The arguments are those of the routines that put, in their order,
/// so that they stay in their registers.
///
/// # Safety
/// `source` is valid for reads of `nbytes` bytes, until the next quiet if that completes it.
#[cold]
#[inline(never)]
pub unsafe fn put<C: Context, F: Form>(
    ctx: C,
    dest: usize,
    source: *const u8,
    nbytes: usize,
    pe: c_int,
    call: Call,
) {
    match last_registered(dest, nbytes, pe, address::mapped) {
        // SAFETY: `to` is mapped, and the caller promises that `source` is valid for reads of
        // `nbytes` bytes.
        Some(to) => unsafe { mem::copy_bytes::<mem::VolatileLoads>(to, source, nbytes) },
        // SAFETY: the caller promises that `source` is valid for reads of `nbytes` bytes, until the
        // next quiet if that completes the put.
        None => unsafe { put_elsewhere::<C, F>(ctx, dest, source, nbytes, pe, call) },
    }
}

/// Puts bytes that are not in the buffer that was found last.
///
/// # Safety
/// As for [`put`].
#[inline(never)]
unsafe fn put_elsewhere<C: Context, F: Form>(
    ctx: C,
    dest: usize,
    source: *const u8,
    nbytes: usize,
    pe: c_int,
    call: Call,
) {
    let dest = match in_heap(dest, nbytes, pe, address::mapped) {
        Bytes::Mapped(to) => {
            // SAFETY: `to` is mapped, and the caller promises that `source` is valid for reads of
            // `nbytes` bytes.
            return unsafe { mem::copy_bytes::<mem::VolatileLoads>(to, source, nbytes) };
        }
        Bytes::At(dest) => dest,
    };
    let access = Access::of_bytes(call, ctx, Argument::Dest, pe);

    // Who reaches the bytes: the network, or this CPU while accesses are observed. If nobody does,
    // the job ends here.
    let to = access.resolve(dest, nbytes);

    // Who sees the access. Checks end the job if something is wrong with it.
    let describe = move || {
        let event = access.event(F::PUT, Effect::Writes, dest, nbytes);
        if F::HAS_BUFFER {
            event.with_buffer(source, nbytes)
        } else {
            event
        }
    };
    let mut observed = ObservedAccess::none();
    observed.begin(describe, to.is_mapped());

    // SAFETY: the caller promises that `source` is valid for reads of `nbytes` bytes, until the
    // next quiet if that completes the put.
    unsafe { access.issue_put(to, source, nbytes, F::COMPLETION) }
}

/// Gets `nbytes` bytes from `source`.
///
/// # Safety
/// `dest` is valid for writes of `nbytes` bytes, until the next quiet if that completes it.
#[cold]
#[inline(never)]
pub unsafe fn get<C: Context, F: Form>(
    ctx: C,
    dest: *mut u8,
    source: usize,
    nbytes: usize,
    pe: c_int,
    call: Call,
) {
    match last_registered(source, nbytes, pe, address::mapped_polled) {
        // SAFETY: `from` is mapped, and the caller promises that `dest` is valid for writes of
        // `nbytes` bytes.
        Some(from) => unsafe { mem::copy_bytes::<mem::AtomicLoads>(dest, from, nbytes) },
        // SAFETY: the caller promises that `dest` is valid for writes of `nbytes` bytes, until the
        // next quiet if that completes the get.
        None => unsafe { get_elsewhere::<C, F>(ctx, dest, source, nbytes, pe, call) },
    }
}

/// Gets bytes that are not in the buffer that was found last.
///
/// # Safety
/// As for [`get`].
#[inline(never)]
unsafe fn get_elsewhere<C: Context, F: Form>(
    ctx: C,
    dest: *mut u8,
    source: usize,
    nbytes: usize,
    pe: c_int,
    call: Call,
) {
    let source = match in_heap(source, nbytes, pe, address::mapped_polled) {
        Bytes::Mapped(from) => {
            // SAFETY: `from` is mapped, and the caller promises that `dest` is valid for writes of
            // `nbytes` bytes.
            return unsafe { mem::copy_bytes::<mem::AtomicLoads>(dest, from, nbytes) };
        }
        Bytes::At(source) => source,
    };
    let access = Access::of_bytes(call, ctx, Argument::Source, pe);

    let from = access.resolve(source, nbytes);

    let describe = move || {
        let event = access.event(F::GET, Effect::Reads, source, nbytes);
        if F::HAS_BUFFER {
            event.with_buffer(dest, nbytes)
        } else {
            event
        }
    };
    let mut observed = ObservedAccess::none();
    observed.begin(describe, from.is_mapped());
    polled_calls::count(call, source, PolledObject::MemoryOf(pe as u32));

    // SAFETY: the caller promises that `dest` is valid for writes of `nbytes` bytes, until the next
    // quiet if that completes the get.
    unsafe { access.issue_get(dest, from, nbytes, F::COMPLETION) }
}

/// Symmetric bytes that may be in a registered buffer of the program.
enum Bytes {
    /// They are in one, and this CPU reaches the copy on the PE here. Nobody observes the access.
    Mapped(*mut u8),
    /// This symmetric address names them.
    At(usize),
}

/// Returns the copy on `pe` of bytes of the registered buffer that was found last, if it is mapped
/// here and nobody observes the access. It calls nothing, so that such an access by the program's
/// address of a buffer saves no registers and takes little longer than one to the heap.
#[inline(always)]
fn last_registered(
    addr: usize,
    nbytes: usize,
    pe: c_int,
    mapped: impl Fn(*const u8, usize, c_int) -> Option<*mut u8>,
) -> Option<*mut u8> {
    let in_heap = address::last_registered_on(addr, nbytes, pe)?;
    mapped(with_exposed_provenance(in_heap), nbytes, pe)
}

/// Finds bytes in the heap if `addr` is in a registered buffer. `mapped` looks them up there, as
/// the fast path of the access does.
fn in_heap(
    addr: usize,
    nbytes: usize,
    pe: c_int,
    mapped: impl Fn(*const u8, usize, c_int) -> Option<*mut u8>,
) -> Bytes {
    let Some(in_heap) = address::registered_on(addr, nbytes, pe) else {
        return Bytes::At(addr);
    };
    match mapped(with_exposed_provenance(in_heap), nbytes, pe) {
        Some(mapped) => Bytes::Mapped(mapped),
        None => Bytes::At(in_heap),
    }
}

impl Access {
    /// Describes an access of `call` to symmetric bytes of `pe`. Messages name them by `argument`.
    #[inline(always)]
    pub fn of_bytes<C: Context>(call: Call, ctx: C, argument: Argument, pe: c_int) -> Access {
        Access {
            call,
            ctx: ctx.handle(),
            pe,
            argument,
            word: WordKind::Integer,
            is_atomic: false,
        }
    }

    /// Returns the event of this access, for observers.
    #[inline(always)]
    pub(super) fn event(
        self,
        kind: AccessKind,
        effect: Effect,
        addr: usize,
        nbytes: usize,
    ) -> Event {
        let access = AccessEvent {
            kind,
            effect,
            argument: self.argument,
            word: self.word,
            signal: 0,
            counts: false,
            of_shared: contexts().is_of_shared(self.ctx),
        };
        Event {
            call: self.call,
            action: Action::Access(access),
            ctx: self.ctx,
            pe: self.pe,
            remote: ByteBlocks::one(addr, nbytes),
            local: ByteBlocks::NONE,
        }
    }

    /// Returns true if this CPU makes the access wherever the memory is mapped here. If the network
    /// carries out the atomic operations of the job, it also does so on mapped words, except on
    /// contexts of `SHMEM_TEAM_SHARED` and of teams split from it.
    ///
    /// The operation asks only when it has left the fast path, which would save registers for this.
    fn is_by_cpu(self) -> bool {
        !self.is_atomic || contexts().is_by_cpu(self.ctx) || !address::are_atomics_by_network()
    }

    /// Returns the path to the `nbytes` symmetric bytes at `addr`. Ends the job with an error if
    /// they are not symmetric, or nothing reaches them.
    #[inline(always)]
    pub(super) fn resolve(self, addr: usize, nbytes: usize) -> RemoteBytes {
        let Access {
            call, pe, argument, ..
        } = self;
        let reach = Reach {
            is_network_open: network::is_open(),
            is_by_cpu: self.is_by_cpu(),
        };

        match address::remote_in_heap(addr, nbytes, pe) {
            Some(remote)
                if reach.is_network_open && !(reach.is_by_cpu && address::is_heap_mapped(pe)) =>
            {
                RemoteBytes::Network(remote)
            }
            _ => resolve_others(call, argument, addr, nbytes, pe, reach),
        }
    }

    /// Returns the symmetric address in the heap of bytes that are in a registered buffer;
    /// otherwise their address.
    #[inline(always)]
    pub(super) fn in_heap(self, addr: usize, nbytes: usize) -> usize {
        address::registered_on(addr, nbytes, self.pe).unwrap_or(addr)
    }

    #[inline(always)]
    pub(super) fn endpoint(self) -> UsedEndpoint<'static> {
        endpoints().of_context(self.call, self.ctx)
    }

    /// Copies `nbytes` bytes from `source` to `dest`, or has the endpoint of the context put them.
    ///
    /// # Safety
    /// `source` is valid for reads of `nbytes` bytes, until the next quiet if that completes it.
    #[inline(always)]
    pub(super) unsafe fn issue_put(
        self,
        dest: RemoteBytes,
        source: *const u8,
        nbytes: usize,
        completion: Completion,
    ) {
        match dest {
            RemoteBytes::Network(dest) => {
                let put = Put {
                    remote: dest,
                    // SAFETY: the caller promises that `source` is valid for reads of `nbytes`
                    // bytes until the put is complete.
                    local: unsafe { SourceBuf::new(source, nbytes) },
                    completion,
                };

                let done = self.endpoint().put(network::pe(self.pe), put);
                if let Err(error) = done {
                    let source = LocalBuf::source(source, nbytes);
                    network::fail_on_memory(self.call, &error, LocalAccess::Read, source)
                }
            }
            // SAFETY: `to` is mapped, as `resolve` found; the caller promises that `source` is
            // valid for reads of `nbytes` bytes.
            RemoteBytes::Cpu(to) => unsafe {
                mem::copy_bytes::<mem::VolatileLoads>(to, source, nbytes)
            },
        }
    }

    /// Copies `nbytes` bytes from `source` to `dest`, or has the endpoint of the context get them.
    ///
    /// # Safety
    /// `dest` is valid for writes of `nbytes` bytes, until the next quiet if that completes it.
    #[inline(always)]
    pub(super) unsafe fn issue_get(
        self,
        dest: *mut u8,
        source: RemoteBytes,
        nbytes: usize,
        completion: Completion,
    ) {
        match source {
            RemoteBytes::Network(source) => {
                let get = Get {
                    remote: source,
                    // SAFETY: the caller promises that `dest` is valid for writes of `nbytes` bytes
                    // until the get is complete.
                    local: unsafe { DestBuf::new(dest, nbytes) },
                    completion,
                };

                let done = self.endpoint().get(network::pe(self.pe), get);
                if let Err(error) = done {
                    let dest = LocalBuf { base: dest, nbytes };
                    network::fail_on_memory(self.call, &error, LocalAccess::Write, dest)
                }
            }
            RemoteBytes::Cpu(from) => {
                // SAFETY: `from` is mapped, as `resolve` found; the caller promises that `dest` is
                // valid for writes of `nbytes` bytes.
                unsafe { mem::copy_bytes::<mem::AtomicLoads>(dest, from, nbytes) };
                polls::count_read();
            }
        }
    }
}

impl RemoteBytes {
    #[inline(always)]
    fn is_mapped(self) -> bool {
        matches!(self, RemoteBytes::Cpu(_))
    }
}

/// What may carry out an access.
#[derive(Clone, Copy)]
struct Reach {
    is_network_open: bool,
    /// As [`Access::is_by_cpu`] says.
    is_by_cpu: bool,
}

/// The cases of [`Access::resolve`] other than an access to a heap over the network. It takes the
/// fields of the access: a reference would force the access into memory on the path to a network.
#[cold]
#[inline(never)]
fn resolve_others(
    call: Call,
    argument: Argument,
    addr: usize,
    nbytes: usize,
    pe: c_int,
    reach: Reach,
) -> RemoteBytes {
    let argument = argument.name();

    if reach.is_by_cpu
        && let Some(here) = address::reachable(addr, nbytes, pe)
    {
        return RemoteBytes::Cpu(here);
    }

    // A constant has the same value on every PE, so this PE reads its own copy.
    if constants::can_read(call, argument, addr, nbytes, pe) {
        return RemoteBytes::Cpu(std::ptr::with_exposed_provenance_mut(addr));
    }

    let is_open = reach.is_network_open;
    let remote = checks::require_remote(call, argument, addr, nbytes, pe, is_open);
    RemoteBytes::Network(remote)
}
