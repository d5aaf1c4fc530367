//! An access that is not on the fast path, and where its bytes are: a network reaches them, the
//! kernel or, with `SHMEM_CHECK`, this CPU after the checks.

use crate::base::call::Call;
use crate::base::handle::ContextHandle;
use crate::memory::address;
use crate::net::cma::{self, CmaPath};
use crate::net::{contexts, network};
use core::ffi::c_int;
use rushmem_transport::{LocalAccess, LocalBuf, RemoteAddr};

/// One access: the call, the context, and the name of the symmetric address.
#[derive(Clone, Copy)]
pub(crate) struct Access {
    pub(crate) call: Call,
    pub(crate) ctx: ContextHandle,
    pub(crate) argument: &'static str,
    pub(crate) pe: c_int,
}

/// Symmetric bytes of a PE.
#[derive(Clone, Copy)]
pub(super) struct RemoteBytes {
    pub(super) at: RemoteAddr,
    pub(super) by: By,
}

/// Who accesses them.
#[derive(Clone, Copy)]
pub(super) enum By {
    Network,
    /// The kernel: they are static data of a node peer that are not mapped here.
    Kernel(CmaPath),
    /// This CPU: they are mapped here.
    Cpu(*mut u8),
}

/// What an access copies to or from on this PE: an address and a number of bytes. It need not be
/// symmetric.
pub(super) type Local = (*const u8, usize);

impl Access {
    /// The `nbytes` symmetric bytes at `addr`; ends the job with an error where there are none, or
    /// they cannot be reached.
    #[inline(always)]
    pub(super) fn remote(self, addr: usize, nbytes: usize, local: Local) -> RemoteBytes {
        let is_open = network::is_open();
        match address::remote_in_heap(addr, nbytes, self.pe) {
            Some(at) if is_open => RemoteBytes { at, by: By::Network },
            _ => self.other_remote(addr, nbytes, local, is_open),
        }
    }

    #[cold]
    #[inline(never)]
    fn other_remote(self, addr: usize, nbytes: usize, local: Local, is_open: bool) -> RemoteBytes {
        let is_read = self.argument == "dest";
        let access = if is_read { LocalAccess::Read } else { LocalAccess::Write };
        address::check_local(self.call, access, LocalBuf::source(local.0, local.1));
        let at = address::remote(self.call, self.argument, addr, nbytes, (self.pe, is_open));
        let by_kernel = || cma::path(self.call, self.pe, at).map_or(By::Network, By::Kernel);
        let mapped = address::mapped_if_checked(addr, at.segment, self.pe);
        RemoteBytes { at, by: mapped.map_or_else(by_kernel, By::Cpu) }
    }

    /// As [`remote`](Access::remote), of a word of an atomic operation. Where the network carries
    /// these out, it does so on every PE, but for contexts of `SHMEM_TEAM_SHARED`.
    #[inline(always)]
    pub(super) fn remote_word(self, addr: usize, nbytes: usize) -> RemoteBytes {
        address::require_aligned(self.call, self.argument, addr, nbytes);
        match self.remote(addr, nbytes, (std::ptr::null(), 0)) {
            RemoteBytes { at, by: By::Cpu(_) }
                if address::are_atomics_by_network() && !contexts::is_of_shared(self.ctx) =>
            {
                RemoteBytes { at, by: By::Network }
            }
            other => other,
        }
    }

    /// A word on which this CPU carries out atomic operations although the network does so on the
    /// world: one of this node, on a context of `SHMEM_TEAM_SHARED`.
    #[inline(always)]
    pub(super) fn word_of_cpu(self, addr: usize, nbytes: usize) -> Option<*mut u8> {
        if contexts::is_of_shared(self.ctx) { self.word_of_domain(addr, nbytes) } else { None }
    }

    #[inline(never)]
    fn word_of_domain(self, addr: usize, nbytes: usize) -> Option<*mut u8> {
        if !address::are_atomics_by_network() {
            return None;
        }
        address::require_aligned(self.call, self.argument, addr, nbytes);
        self.mapped(addr, nbytes)
    }

    pub(super) fn mapped(self, addr: usize, nbytes: usize) -> Option<*mut u8> {
        address::mapped(std::ptr::with_exposed_provenance(addr), nbytes, self.pe)
    }
}
