//! A measurement of how much of a heap a network registers in blocks within a given time: for the
//! doctor, since a job learns the limits of a network only when an allocation reaches them.
#![allow(unsafe_code)]

use super::heap_blocks::{FIRST, TABLE, next_end, of_table};
use crate::{Error, Segment, Transport};
use std::fmt;
use std::time::{Duration, Instant};

/// The blocks that a network has registered. Their text is one line for users.
pub struct RegisteredBlocks {
    nbytes: usize,
    /// The number of registrations that were made.
    blocks: usize,
    /// The time for which it took.
    time: Duration,
    /// The longest registration that the network accepts, if it refused a longer one.
    largest: Option<u64>,
    refusal: Option<Error>,
}

/// Registers as much of a heap of `most` bytes as a transport does within `limit`; `None` if it
/// does not register heaps in blocks.
///
/// # Errors
/// When it refuses the first block.
pub fn probe(
    transport: Box<dyn Transport>,
    most: usize,
    limit: Duration,
) -> Result<Option<RegisteredBlocks>, Error> {
    let (mut heap, mut table) = (Vec::<u8>::new(), vec![0u8; TABLE]);
    if !transport.caps().heap_in_blocks || heap.try_reserve_exact(most).is_err() {
        return Ok(None);
    }
    // Dropped before the vectors, whatever happens.
    let mut transport = transport;
    let start = Instant::now();
    let segments = [(Segment::Heap, &mut heap, most), (Segment::Internal, &mut table, TABLE)];
    for (segment, memory, nbytes) in segments {
        // SAFETY: the vectors have that many bytes, and live longer than the transport.
        unsafe { transport.register(segment, memory.as_mut_ptr(), nbytes) }?;
    }
    let (mut nbytes, mut refusal) = (most.min(FIRST), None);
    while nbytes < most && refusal.is_none() && start.elapsed() < limit {
        let end = next_end(nbytes).min(most);
        match transport.extend_heap(end, &mut |_| Ok(())) {
            Ok(()) => nbytes = end,
            Err(why) => refusal = Some(why),
        }
    }
    let time = start.elapsed();
    drop(transport);
    let (further, largest) = of_table(&table);
    let blocks = 1 + further;
    Ok(Some(RegisteredBlocks { nbytes, blocks, time, largest, refusal }))
}

impl fmt::Display for RegisteredBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &RegisteredBlocks { nbytes, blocks, time, .. } = self;
        write!(
            f,
            "{} MiB of a heap in {blocks} registrations, which took {} ms",
            nbytes >> 20,
            time.as_millis()
        )?;
        if let Some(largest) = self.largest {
            write!(f, "; it refuses more than {} MiB at once", largest >> 20)?;
        }
        self.refusal.as_ref().map_or(Ok(()), |why| write!(f, "; the next one fails: {why}"))
    }
}
