//! Small puts that travel in one message: for each its place and its bytes.

use rushmem_transport::{RemoteAddr, Segment};

/// Most bytes of one put, so that two bytes hold the number.
pub(crate) const MAX_NBYTES: usize = 256;
/// Bytes ahead of those of a put.
const HEAD: usize = 12;

/// Appends a put of `nbytes` bytes, which are zero so far, and returns their place.
pub(crate) fn append(batch: &mut Vec<u8>, at: RemoteAddr, nbytes: usize) -> &mut [u8] {
    batch.extend_from_slice(&at.offset.to_le_bytes());
    let [low, high, ..] = nbytes.to_le_bytes();
    batch.extend_from_slice(&[low, high, at.segment as u8, 0]);
    let start = batch.len();
    batch.resize(start + nbytes, 0);
    &mut batch[start..]
}

/// The next put, which leaves the batch.
pub(crate) fn next<'a>(batch: &mut &'a [u8]) -> Option<(RemoteAddr, &'a [u8])> {
    let (&[offset @ .., low, high, segment, _], rest) = batch.split_first_chunk::<HEAD>()?;
    let (segment, offset) = (Segment::from_number(segment)?, u64::from_le_bytes(offset));
    let (data, rest) = rest.split_at_checked(u16::from_le_bytes([low, high]).into())?;
    *batch = rest;
    Some((RemoteAddr { segment, offset }, data))
}

#[cfg(test)]
mod tests;
