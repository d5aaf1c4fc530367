//! Reads numbers from the front of a byte slice.

use rushmem_transport::Segment;

/// The segment of a number.
pub(super) fn segment_of(number: u8) -> Option<Segment> {
    [Segment::Heap, Segment::Internal, Segment::Static].into_iter().find(|s| *s as u8 == number)
}

/// Takes a number off the front.
pub(super) fn u64_of(bytes: &mut &[u8]) -> Option<u64> {
    let (first, rest) = bytes.split_first_chunk::<8>()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*first))
}

/// Takes a number off the front.
pub(super) fn u32_of(bytes: &mut &[u8]) -> Option<u32> {
    let (first, rest) = bytes.split_first_chunk::<4>()?;
    *bytes = rest;
    Some(u32::from_le_bytes(*first))
}
