//! Cross-memory attach (CMA), for PEs of this node whose static data are not in shared memory, for
//! example because threads were running when the library was loaded.
//!
//! The kernel copies long transfers between processes, if it allows that. Words, which must not
//! arrive in parts, and everything that the kernel refuses go through the transport. The heaps of
//! these PEs are mapped, so a program may mix stores and accesses of this file: to keep their
//! order, every access is complete when it returns.
#![allow(unsafe_code)]

use crate::base::call::{Call, fail};
use crate::base::handle::ContextHandle;
use crate::base::thread;
use crate::net::{endpoints, network};
use core::ffi::c_int;
use rushmem_transport::{
    AmoOp, AmoRequest, AmoWidth, Completion, Endpoint, Error, Get, LocalAccess, LocalBuf, OldValue,
    Pe, Put, RemoteAddr, Segment,
};
use std::sync::OnceLock;
use std::sync::atomic::AtomicU8;

/// A transfer of at most this size may be a word that its owner polls.
const WORD: usize = 8;

/// A PE of this node whose static data are not mapped here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodePeer {
    pub(crate) pid: i32,
    /// The start of its static data in its process.
    pub(crate) statics: usize,
    /// Whether the kernel copies between its process and this one.
    pub(crate) by_kernel: bool,
}

/// The node peers whose static data are not mapped.
struct UnmappedPeers {
    by_pe: Vec<Option<NodePeer>>,
    /// Whether some PE of the job has one: the same on all PEs.
    exist: bool,
}

static PEERS: OnceLock<UnmappedPeers> = OnceLock::new();

/// Set by the first init: the node peer that each PE is, if it is one, and whether any PE of the
/// job has one.
pub(crate) fn set(by_pe: Vec<Option<NodePeer>>, exist: bool) {
    // A later init of the process has the same ones.
    let _ = PEERS.set(UnmappedPeers { by_pe, exist });
}

/// Whether any PE of the job has a node peer whose static data are not mapped there: the same on
/// all.
pub(crate) fn exist() -> bool {
    PEERS.get().is_some_and(|peers| peers.exist)
}

/// The node peer that `pe` is, if its static data are not mapped here.
fn find(pe: c_int) -> Option<NodePeer> {
    *PEERS.get()?.by_pe.get(usize::try_from(pe).ok()?)?
}

/// The path to static data of `pe`; `None` where these are mapped, or for the heap.
#[inline(always)]
pub(crate) fn path(call: Call, pe: c_int, at: RemoteAddr) -> Option<CmaPath> {
    if at.segment != Segment::Static {
        return None;
    }
    let peer = find(pe)?;
    Some(CmaPath { call, peer, pe: network::pe(pe), at })
}

/// Whether `pe` is a node peer whose static data are not mapped here.
pub(crate) fn is_one(pe: c_int) -> bool {
    find(pe).is_some()
}

/// An address among a node peer's static data.
#[derive(Clone, Copy)]
pub(crate) struct CmaPath {
    call: Call,
    peer: NodePeer,
    pe: Pe,
    at: RemoteAddr,
}

impl CmaPath {
    /// The address.
    pub(crate) fn at(self) -> RemoteAddr {
        self.at
    }

    /// The address this number of bytes further on.
    pub(crate) fn further(self, nbytes: usize) -> CmaPath {
        CmaPath { at: RemoteAddr { offset: self.at.offset + nbytes as u64, ..self.at }, ..self }
    }

    /// `nbytes` bytes to there.
    ///
    /// # Safety
    /// `source` is valid for reads of `nbytes` bytes.
    pub(crate) unsafe fn put(self, ctx: ContextHandle, source: *const u8, nbytes: usize) {
        if nbytes > WORD && self.peer.by_kernel {
            let there = self.peer.statics + self.at.offset as usize;
            // SAFETY: valid by contract.
            let copied =
                unsafe { copy(Direction::To, self.peer.pid, there, source.cast_mut(), nbytes) };
            let source = LocalBuf::source(source, nbytes);
            return self.expect(copied, LocalAccess::Read, source);
        }
        let source = LocalBuf::source(source, nbytes);
        let put = Put { dest: self.at, source, completion: Completion::Now };
        // SAFETY: valid by contract.
        self.complete(ctx, |endpoint| unsafe { endpoint.put(self.pe, put) });
    }

    /// `nbytes` bytes from there.
    ///
    /// # Safety
    /// `dest` is valid for writes of `nbytes` bytes.
    pub(crate) unsafe fn get(self, ctx: ContextHandle, dest: *mut u8, nbytes: usize) {
        if nbytes > WORD && self.peer.by_kernel {
            let there = self.peer.statics + self.at.offset as usize;
            // SAFETY: valid by contract.
            let copied = unsafe { copy(Direction::From, self.peer.pid, there, dest, nbytes) };
            return self.expect(copied, LocalAccess::Write, LocalBuf { base: dest, nbytes });
        }
        let dest = LocalBuf { base: dest, nbytes };
        let get = Get { dest, source: self.at, completion: Completion::Now };
        // SAFETY: valid by contract.
        self.complete(ctx, |endpoint| unsafe { endpoint.get(self.pe, get) });
    }

    /// An atomic operation without the old value.
    pub(crate) fn update(self, ctx: ContextHandle, width: AmoWidth, op: AmoOp, operand: u64) {
        let (dest, old) = (self.at, OldValue::Ignored);
        let request = AmoRequest { dest, width, op, operand, condition: 0, old };
        // SAFETY: the old value goes nowhere.
        self.complete(ctx, |endpoint| unsafe { endpoint.amo(self.pe, request) }.map(|_| ()));
    }

    fn complete(
        self,
        ctx: ContextHandle,
        verb: impl FnOnce(&mut dyn Endpoint) -> Result<(), Error>,
    ) {
        let verb = |endpoint: &mut dyn Endpoint| {
            verb(endpoint)?;
            endpoint.pe_quiet(self.pe)
        };
        match thread::carries_out() {
            None => network::or_fail(self.call, endpoints::on(self.call, ctx, verb)),
            // The program may use the context meanwhile.
            Some(_) => endpoints::on_library(verb),
        }
    }

    fn expect(self, copied: std::io::Result<()>, access: LocalAccess, memory: LocalBuf) {
        if let Err(error) = copied {
            network::check_memory(self.call, access, memory);
            let pe = self.pe;
            // Cause: a container or a security module forbids `process_vm_readv` after the start.
            // Remedy: allow it, or set SHMEM_ONNODE=off.
            fail!(
                self.call,
                "the kernel refused to copy to or from static data of PE {pe}: {error}"
            );
        }
    }
}

/// The direction of a copy.
#[derive(Clone, Copy)]
enum Direction {
    To,
    From,
}

/// Copy between this process and another one.
///
/// # Safety
/// `here` is valid for `nbytes` bytes: for reads, or for writes if the copy comes here.
unsafe fn copy(
    direction: Direction,
    pid: i32,
    mut there: usize,
    mut here: *mut u8,
    mut nbytes: usize,
) -> std::io::Result<()> {
    while nbytes > 0 {
        let own = libc::iovec { iov_base: here.cast(), iov_len: nbytes };
        let theirs =
            libc::iovec { iov_base: std::ptr::without_provenance_mut(there), iov_len: nbytes };
        let done = match direction {
            // SAFETY: valid for reads by contract; the kernel checks the other process's range.
            Direction::To => unsafe { libc::process_vm_writev(pid, &own, 1, &theirs, 1, 0) },
            // SAFETY: valid for writes by contract; the kernel checks the other process's range.
            Direction::From => unsafe { libc::process_vm_readv(pid, &own, 1, &theirs, 1, 0) },
        };
        match usize::try_from(done) {
            Ok(0) => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            Ok(copied) => {
                there += copied;
                here = here.wrapping_add(copied);
                nbytes -= copied;
            }
            Err(_) => return Err(std::io::Error::last_os_error()),
        }
    }
    Ok(())
}

/// The memory on which others test a copy: a number twice, to be read and to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Probe {
    pub(crate) pid: i32,
    pub(crate) address: usize,
}

impl Probe {
    /// A probe with `number`, for the life of the process, which others get the permission to use.
    pub(crate) fn new(number: [u8; 32]) -> Probe {
        static BOTH: OnceLock<[[AtomicU8; 32]; 2]> = OnceLock::new();
        let both = BOTH.get_or_init(|| [number.map(AtomicU8::new), number.map(AtomicU8::new)]);
        // SAFETY: asks for leave that other processes of this user may have anyway. Where no module
        // of the kernel withholds it, there is nothing to ask for.
        unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY) };
        Probe {
            pid: std::process::id() as i32,
            address: std::ptr::from_ref(both).expose_provenance(),
        }
    }

    /// Whether the kernel copies between this process and that one, which holds `number`.
    pub(crate) fn works(self, number: [u8; 32]) -> bool {
        let mut found = [0u8; 32];
        let nbytes = found.len();
        // SAFETY: a local array.
        let read =
            unsafe { copy(Direction::From, self.pid, self.address, found.as_mut_ptr(), nbytes) };
        let second = self.address + nbytes;
        read.is_ok() && found == number && {
            // SAFETY: a local array.
            unsafe { copy(Direction::To, self.pid, second, found.as_mut_ptr(), nbytes) }.is_ok()
        }
    }
}
