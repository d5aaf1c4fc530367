//! Encodes an operation in a slot of the shared segment, from which the target reads it.
#![allow(unsafe_code)]

use crate::memory::{self, fetch};
use crate::operation::AcceptedOp;
use crate::segment::{INLINE, RequestSlot};
use libfabric_sys as fi;
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes an operation to a slot; with `inlined`, also its data, if they fit.
pub(crate) fn write_request(slot: &RequestSlot, operation: &AcceptedOp, inlined: bool) {
    let order = Ordering::Relaxed;
    slot.kind.store(operation.kind as u32, order);
    slot.address.store(operation.address, order);
    slot.key.store(operation.key, order);
    slot.nbytes.store(operation.nbytes as u64, order);
    if let Some(amo) = &operation.amo {
        slot.op.store(amo.op, order);
        slot.operand.store(amo.operand, order);
        slot.condition.store(amo.condition, order);
    }
    if inlined && operation.nbytes <= INLINE {
        let mut bytes = [0u8; INLINE];
        let nbytes = gather(operation, &mut bytes);
        slot.set_inline(&bytes[..nbytes]);
        slot.n_pieces.store(0, order);
        return;
    }
    for (entry, piece) in slot.pieces.iter().zip(operation.pieces()) {
        entry[0].store(piece.iov_base.expose_provenance() as u64, order);
        entry[1].store(piece.iov_len as u64, order);
    }
    slot.n_pieces.store(operation.n_pieces as u32, order);
}

/// Copies the local pieces of an operation. Returns their length.
pub(crate) fn gather(operation: &AcceptedOp, bytes: &mut [u8]) -> usize {
    let mut at = 0;
    for piece in operation.pieces() {
        let room = &mut bytes[at..at + piece.iov_len];
        // SAFETY: valid until completion, by the contract of libfabric; both have this length.
        unsafe { memory::copy(room.as_mut_ptr(), piece.iov_base.cast(), piece.iov_len) };
        at += piece.iov_len;
    }
    at
}

/// Returns the local pieces of a peer's operation: addresses in the peer, and lengths.
pub(crate) fn remote_pieces(slot: &RequestSlot) -> impl Iterator<Item = (u64, usize)> {
    let n = slot.n_pieces.load(Ordering::Relaxed) as usize;
    let word = |word: &AtomicU64| word.load(Ordering::Relaxed);
    slot.pieces
        .iter()
        .take(n)
        .map(move |[at, nbytes]| (word(at), word(nbytes) as usize))
}

/// Reads the data of a peer's operation. Fails if the peer has ended and the data are not inline.
///
/// # Safety
/// `to` is valid for writes of `nbytes` bytes.
pub(crate) unsafe fn read_data(
    slot: &RequestSlot,
    pid: u32,
    to: *mut u8,
    nbytes: usize,
) -> Result<(), i32> {
    if slot.n_pieces.load(Ordering::Relaxed) == 0 {
        let bytes = slot.inline();
        // SAFETY: valid for writes of `nbytes` bytes, by contract.
        unsafe { memory::copy(to, bytes.as_ptr(), nbytes.min(INLINE)) };
        return Ok(());
    }
    let mut done = 0;
    for (there, length) in remote_pieces(slot) {
        let length = length.min(nbytes - done);
        // SAFETY: valid for writes of `nbytes` bytes, by contract; this range is within them.
        let fetched = unsafe { fetch(pid, there, to.wrapping_add(done), length) };
        fetched.map_err(|_| fi::FI_ECONNRESET)?;
        done += length;
    }
    Ok(())
}
