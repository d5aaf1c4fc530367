//! Encodes an operation in a slot of the shared segment, from which the target reads it.
#![allow(unsafe_code)]

use crate::memory::{self, fetch};
use crate::operation::AcceptedOp;
use crate::segment::{INLINE, RequestSlot};
use libfabric_sys as fi;
use std::sync::atomic::Ordering;

/// Writes an operation to a slot; with `inlined`, also its data, if they fit.
pub(crate) fn write_request(slot: &RequestSlot, operation: &AcceptedOp, inlined: bool) {
    // The caller then sets the state of the slot, which publishes these words.
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
    let mut copied = 0;
    for piece in operation.pieces() {
        let room = &mut bytes[copied..copied + piece.iov_len];
        // SAFETY: the piece is valid until completion, by the contract of libfabric; both have this
        // length.
        unsafe { memory::copy(room.as_mut_ptr(), piece.iov_base.cast(), piece.iov_len) };
        copied += piece.iov_len;
    }
    copied
}

/// A local buffer of a peer's operation.
pub(crate) struct RemotePiece {
    /// The address in the peer.
    pub(crate) address: u64,
    pub(crate) nbytes: usize,
}

/// Returns the local pieces of a peer's operation.
pub(crate) fn remote_pieces(slot: &RequestSlot) -> impl Iterator<Item = RemotePiece> {
    let n = slot.n_pieces.load(Ordering::Relaxed) as usize;
    slot.pieces
        .iter()
        .take(n)
        .map(|[address, nbytes]| RemotePiece {
            address: address.load(Ordering::Relaxed),
            nbytes: nbytes.load(Ordering::Relaxed) as usize,
        })
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
        // SAFETY: `to` is valid for writes of `nbytes` bytes, by contract; `bytes` has `INLINE`.
        unsafe { memory::copy(to, bytes.as_ptr(), nbytes.min(INLINE)) };
        return Ok(());
    }

    let mut done = 0;
    for piece in remote_pieces(slot) {
        // The buffer may be shorter than the message.
        let length = piece.nbytes.min(nbytes - done);
        // SAFETY: `to` is valid for writes of `nbytes` bytes, by contract; this range is within
        // them.
        let fetched = unsafe { fetch(pid, piece.address, to.wrapping_add(done), length) };
        fetched.map_err(|_| fi::FI_ECONNRESET)?;
        done += length;
    }
    Ok(())
}
