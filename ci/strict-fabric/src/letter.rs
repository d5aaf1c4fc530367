//! How an operation is written down for its target, and how the target gets at its bytes.
#![allow(unsafe_code)]

use crate::memory::{self, fetch};
use crate::operation::Operation;
use crate::segment::{INLINE, Slot};
use libfabric_sys as fi;
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes an operation down. Its bytes go along where they are `packed`.
pub(crate) fn fill(slot: &Slot, operation: &Operation, packed: bool) {
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
    if packed && operation.nbytes <= INLINE {
        let (bytes, nbytes) = packed_bytes(operation);
        slot.pack(&bytes[..nbytes]);
        slot.n_pieces.store(0, order);
        return;
    }
    for (place, piece) in slot.pieces.iter().zip(operation.pieces()) {
        place[0].store(piece.iov_base.expose_provenance() as u64, order);
        place[1].store(piece.iov_len as u64, order);
    }
    slot.n_pieces.store(operation.n_pieces as u32, order);
}

fn packed_bytes(operation: &Operation) -> ([u8; INLINE], usize) {
    let mut bytes = [0u8; INLINE];
    let mut at = 0;
    for piece in operation.pieces() {
        let room = &mut bytes[at..at + piece.iov_len];
        // SAFETY: lent by the application.
        unsafe { memory::copy(room.as_mut_ptr(), piece.iov_base.cast(), piece.iov_len) };
        at += piece.iov_len;
    }
    (bytes, at)
}

/// The pieces of a peer's memory that a request is about.
pub(crate) fn pieces_of(slot: &Slot) -> impl Iterator<Item = (u64, usize)> {
    let n = slot.n_pieces.load(Ordering::Relaxed) as usize;
    let word = |word: &AtomicU64| word.load(Ordering::Relaxed);
    slot.pieces.iter().take(n).map(move |[at, nbytes]| (word(at), word(nbytes) as usize))
}

/// Gets the bytes of a request.
///
/// # Safety
/// `to` is valid for writes of so many bytes.
///
/// # Errors
/// When the peer is gone.
pub(crate) unsafe fn unpacked(
    slot: &Slot,
    pid: u32,
    to: *mut u8,
    nbytes: usize,
) -> Result<(), i32> {
    if slot.n_pieces.load(Ordering::Relaxed) == 0 {
        let bytes = slot.unpack();
        // SAFETY: by contract, and no more bytes go along.
        unsafe { memory::copy(to, bytes.as_ptr(), nbytes.min(INLINE)) };
        return Ok(());
    }
    let mut done = 0;
    for (there, length) in pieces_of(slot) {
        let length = length.min(nbytes - done);
        // SAFETY: by contract.
        let fetched = unsafe { fetch(pid, there, to.wrapping_add(done), length) };
        fetched.map_err(|_| fi::FI_ECONNRESET)?;
        done += length;
    }
    Ok(())
}
