//! Measures how much of a heap a network registers in blocks within a given time. The doctor
//! reports this; a job meets the limits of a network only when an allocation reaches them.
#![allow(unsafe_code)]

use super::heap_blocks::{FIRST, TABLE, TableSummary, next_end};
use crate::{Error, Segment, Transport};
use std::fmt;
use std::time::{Duration, Instant};

/// The blocks that a network has registered. Formats as one line for users.
pub struct RegisteredBlocks {
    nbytes: usize,
    /// The number of registrations that were made.
    blocks: usize,
    /// The time that the registrations took.
    time: Duration,
    /// The bytes of the largest further block that the network accepts, if it refused a larger one.
    largest: Option<u64>,
    refusal: Option<Error>,
}

/// Registers a heap of up to `most` bytes in blocks, until all is registered, the transport refuses
/// a block, or `limit` has passed. Returns `None` if the transport does not register heaps in
/// blocks, or this process cannot allocate such a heap.
///
/// # Errors
/// When the transport refuses the first block.
pub fn probe(
    transport: Box<dyn Transport>,
    most: usize,
    limit: Duration,
) -> Result<Option<RegisteredBlocks>, Error> {
    if !transport.caps().heap_in_blocks {
        return Ok(None);
    }

    let mut heap = Vec::<u8>::new();
    if heap.try_reserve_exact(most).is_err() {
        return Ok(None);
    }
    let mut table = vec![0u8; TABLE];

    // Moved here so that it is dropped before the vectors, also when a call fails below.
    let mut transport = transport;
    let start = Instant::now();
    // SAFETY: `heap` has allocated `most` bytes, and lives longer than the transport.
    unsafe { transport.register(Segment::Heap, heap.as_mut_ptr(), most) }?;
    // SAFETY: `table` has `TABLE` bytes, and lives longer than the transport.
    unsafe { transport.register(Segment::Internal, table.as_mut_ptr(), TABLE) }?;

    let mut nbytes = most.min(FIRST);
    let mut refusal = None;
    while nbytes < most && refusal.is_none() && start.elapsed() < limit {
        let end = next_end(nbytes).min(most);
        match transport.extend_heap(end, &mut |_| Ok(())) {
            Ok(()) => nbytes = end,
            Err(why) => refusal = Some(why),
        }
    }

    let time = start.elapsed();
    // Nothing else accesses the table from now on.
    drop(transport);
    let TableSummary {
        n_keys,
        largest_block,
    } = TableSummary::of(&table);

    Ok(Some(RegisteredBlocks {
        nbytes,
        blocks: 1 + n_keys,
        time,
        largest: largest_block,
        refusal,
    }))
}

impl fmt::Display for RegisteredBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let &RegisteredBlocks {
            nbytes,
            blocks,
            time,
            ..
        } = self;
        write!(
            f,
            "{} MiB of a heap in {blocks} registrations, which took {} ms",
            nbytes >> 20,
            time.as_millis()
        )?;

        if let Some(largest) = self.largest {
            write!(
                f,
                "; it refuses further blocks of more than {} MiB",
                largest >> 20
            )?;
        }
        if let Some(why) = &self.refusal {
            write!(f, "; the next one fails: {why}")?;
        }
        Ok(())
    }
}
