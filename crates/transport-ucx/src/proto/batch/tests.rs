//! Unit tests of `batch`.

use super::*;
use rushmem_transport::Segment;

#[test]
fn puts_come_as_they_were_sent() {
    let puts =
        [(Segment::Heap, 40, 8), (Segment::Static, u64::MAX, 0), (Segment::Heap, 0, MAX_NBYTES)];
    let mut batch = Vec::new();
    for (number, (segment, offset, nbytes)) in puts.into_iter().enumerate() {
        append(&mut batch, RemoteAddr { segment, offset }, nbytes).fill(number as u8 + 1);
    }
    let mut left = &batch[..];
    for (number, (segment, offset, nbytes)) in puts.into_iter().enumerate() {
        let (at, data) = next(&mut left).expect("one more");
        assert_eq!(at, RemoteAddr { segment, offset });
        assert_eq!(data, vec![number as u8 + 1; nbytes]);
    }
    assert!(left.is_empty() && next(&mut left).is_none());
}

#[test]
fn a_part_of_a_batch_is_not_read_beyond_its_end() {
    let mut batch = Vec::new();
    append(&mut batch, RemoteAddr { segment: Segment::Heap, offset: 7 }, 9);
    for end in 0..batch.len() {
        assert!(next(&mut &batch[..end]).is_none());
    }
    batch[10] = 99;
    assert!(next(&mut &batch[..]).is_none());
}
