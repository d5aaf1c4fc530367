//! What an application lends to an endpoint until an operation is over: memory, its registrations, and a context. Who uses
//! it earlier is found out.
#![allow(unsafe_code)]

use crate::domain::Domain;
use crate::memory;
use libfabric_sys as fi;
use std::collections::HashSet;
use std::ffi::c_void;

/// Bytes of a source that are looked at again.
const LOOKED_AT: usize = 4096;

/// What the words of a context are while it is lent.
const LENT: u64 = 0x4C45_4E54_4C45_4E54;

/// What one operation was lent.
#[derive(Default)]
pub(crate) struct Lent {
    registrations: Vec<usize>,
    context: Option<usize>,
    /// Of a source, as it was.
    sum: Option<u64>,
}

/// The contexts of an endpoint that are lent.
#[derive(Default)]
pub(crate) struct Contexts(HashSet<usize>);

/// Adds bytes up so that a change of any shows (FNV-1a).
fn sum(pieces: &[fi::iovec]) -> u64 {
    let mut sum = 0xCBF2_9CE4_8422_2325u64;
    for piece in pieces {
        let nbytes = piece.iov_len.min(LOOKED_AT);
        let mut bytes = vec![0u8; nbytes];
        // SAFETY: lent until the operation is over.
        unsafe { memory::copy(bytes.as_mut_ptr(), piece.iov_base.cast(), nbytes) };
        for byte in bytes {
            sum = (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
    }
    sum
}

/// How many words a context has that a profile asks for.
fn words(mode: u64) -> usize {
    match mode {
        fi::FI_CONTEXT2 => 8,
        fi::FI_CONTEXT => 4,
        _ => 0,
    }
}

impl Lent {
    /// Takes what an operation brings; `endpoint` is who has it.
    pub(crate) fn new(
        domain: &Domain,
        endpoint: u32,
        pieces: &[fi::iovec],
        (descs, access): (&[*mut c_void], u64),
    ) -> Lent {
        let mut lent = Lent::default();
        if !domain.profile.asks(fi::FI_MR_LOCAL) {
            return lent;
        }
        for (i, piece) in pieces.iter().enumerate().filter(|(_, piece)| piece.iov_len > 0) {
            let desc = descs.get(i).map_or(0, |desc| desc.addr());
            let base = piece.iov_base.expose_provenance() as u64;
            let range = (base, piece.iov_len);
            let used = domain.known.begin_use(desc, range, access, endpoint);
            if let Err(why) = used {
                domain.broken("FI_MR_LOCAL", why);
            }
            lent.registrations.push(desc);
        }
        lent
    }

    /// Remembers what a source is.
    pub(crate) fn of_source(mut self, pieces: &[fi::iovec]) -> Lent {
        self.sum = Some(sum(pieces));
        self
    }

    /// Takes the context of an operation that has an entry.
    pub(crate) fn with(mut self, domain: &Domain, contexts: &mut Contexts, context: usize) -> Lent {
        let n = words(domain.profile.mode);
        if n == 0 {
            return self;
        }
        let rule = if n == 8 { "FI_CONTEXT2" } else { "FI_CONTEXT" };
        if context == 0 || !contexts.0.insert(context) {
            domain
                .broken(rule, "a context is missing, or belongs to an operation that is not over");
        }
        for i in 0..n {
            // SAFETY: the provider's own until the operation is over, by the mode.
            unsafe { word(context, i).write_unaligned(LENT ^ i as u64) };
        }
        self.context = Some(context);
        self
    }

    /// A source is about to be read.
    pub(crate) fn is_read(&mut self, domain: &Domain, pieces: &[fi::iovec]) {
        if self.sum.take().is_some_and(|before| before != sum(pieces)) {
            domain.broken("buffer reuse", "a source was changed before its operation was over");
        }
    }

    /// The operation is over, or at least its entry is there.
    pub(crate) fn give_back(&mut self, domain: &Domain, contexts: &mut Contexts) {
        for desc in self.registrations.drain(..) {
            domain.known.end_use(desc);
        }
        let Some(context) = self.context.take() else { return };
        contexts.0.remove(&context);
        // SAFETY: the provider's own until now, by the mode.
        let is_lent = |i| unsafe { word(context, i).read_unaligned() } == LENT ^ i as u64;
        if !(0..words(domain.profile.mode)).all(is_lent) {
            domain.broken("FI_CONTEXT", "a context was changed before its operation was over");
        }
    }
}

/// A word of a context's.
fn word(context: usize, i: usize) -> *mut u64 {
    memory::pointer(context as u64).cast::<u64>().wrapping_add(i)
}
