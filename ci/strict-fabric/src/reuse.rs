//! Detects an application that changes or frees the resources of an operation before its
//! completion: source buffers, registrations of local buffers, and the context.
#![allow(unsafe_code)]

use crate::domain::Domain;
use crate::local_regions::LocalUse;
use crate::memory;
use libfabric_sys as fi;
use std::collections::HashSet;
use std::ffi::c_void;

/// Maximum number of bytes of each piece of a source that are checked, which limits the time that
/// long transfers take.
const MAX_CHECKED: usize = 4096;

/// Written to the words of a context until completion ("LENTLENT").
const IN_USE: u64 = 0x4C45_4E54_4C45_4E54;

/// The local buffers of an operation.
pub(crate) struct LocalBuffers<'a> {
    pub(crate) pieces: &'a [fi::iovec],
    /// The descriptors of the pieces' registrations; fewer if the profile needs none.
    pub(crate) descs: &'a [*mut c_void],
    /// The access that the registrations must permit.
    pub(crate) access: u64,
}

/// The resources of an operation that are checked when it starts (the source) or completes (all
/// others).
#[derive(Default)]
pub(crate) struct ReuseCheck {
    registrations: Vec<usize>,
    context: Option<usize>,
    /// The checksum of the source.
    sum: Option<u64>,
}

/// The contexts of an endpoint's pending operations.
#[derive(Default)]
pub(crate) struct Contexts(HashSet<usize>);

/// Returns a checksum (FNV-1a).
fn sum(pieces: &[fi::iovec]) -> u64 {
    let mut sum = 0xCBF2_9CE4_8422_2325u64;
    for piece in pieces {
        let nbytes = piece.iov_len.min(MAX_CHECKED);
        let mut bytes = vec![0u8; nbytes];
        // SAFETY: the piece is valid until completion, by the contract of libfabric; both have this
        // length.
        unsafe { memory::copy(bytes.as_mut_ptr(), piece.iov_base.cast(), nbytes) };
        for byte in bytes {
            sum = (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
    }
    sum
}

/// Returns the size in words of the context that a mode requires.
fn words(mode: u64) -> usize {
    match mode {
        fi::FI_CONTEXT2 => 8,
        fi::FI_CONTEXT => 4,
        _ => 0,
    }
}

impl ReuseCheck {
    /// Records the registrations of an operation's buffers.
    pub(crate) fn new(domain: &Domain, endpoint: u32, buffers: LocalBuffers<'_>) -> ReuseCheck {
        let mut check = ReuseCheck::default();
        if !domain.profile.requires(fi::FI_MR_LOCAL) {
            return check;
        }

        for (i, piece) in buffers.pieces.iter().enumerate() {
            // A piece without bytes needs no registration.
            if piece.iov_len == 0 {
                continue;
            }
            let desc = buffers.descs.get(i).map_or(0, |desc| desc.addr());
            let by = LocalUse {
                base: piece.iov_base.expose_provenance() as u64,
                nbytes: piece.iov_len,
                access: buffers.access,
                endpoint,
            };
            if let Err(why) = domain.local_regions.begin_use(desc, &by) {
                domain.violation("FI_MR_LOCAL", why);
            }
            check.registrations.push(desc);
        }
        check
    }

    /// Records the contents of the source.
    pub(crate) fn with_source(mut self, pieces: &[fi::iovec]) -> ReuseCheck {
        self.sum = Some(sum(pieces));
        self
    }

    /// Records the context of an operation that has a completion.
    pub(crate) fn with_context(
        mut self,
        domain: &Domain,
        contexts: &mut Contexts,
        context: usize,
    ) -> ReuseCheck {
        let n = words(domain.profile.mode);
        if n == 0 {
            return self;
        }

        if context == 0 || !contexts.0.insert(context) {
            let rule = if n == 8 { "FI_CONTEXT2" } else { "FI_CONTEXT" };
            domain.violation(
                rule,
                "a context is missing, or belongs to a pending operation",
            );
        }

        for i in 0..n {
            // SAFETY: the context has `n` words, which the mode gives to the provider until
            // completion.
            unsafe { word(context, i).write_unaligned(IN_USE ^ i as u64) };
        }
        self.context = Some(context);
        self
    }

    pub(crate) fn check_source(&mut self, domain: &Domain, pieces: &[fi::iovec]) {
        let Some(before) = self.sum.take() else {
            return;
        };
        if before != sum(pieces) {
            domain.violation(
                "buffer reuse",
                "a source was changed before its operation completed",
            );
        }
    }

    /// Checks and releases the resources at completion.
    pub(crate) fn release(&mut self, domain: &Domain, contexts: &mut Contexts) {
        for desc in self.registrations.drain(..) {
            domain.local_regions.end_use(desc);
        }

        let Some(context) = self.context.take() else {
            return;
        };
        contexts.0.remove(&context);
        for i in 0..words(domain.profile.mode) {
            // SAFETY: the context has this many words, which the mode gives to the provider until
            // completion.
            let found = unsafe { word(context, i).read_unaligned() };
            if found != IN_USE ^ i as u64 {
                domain.violation(
                    "FI_CONTEXT",
                    "a context was changed before its operation completed",
                );
            }
        }
    }
}

/// Returns the address of a word of a context.
fn word(context: usize, i: usize) -> *mut u64 {
    memory::pointer(context as u64)
        .cast::<u64>()
        .wrapping_add(i)
}
