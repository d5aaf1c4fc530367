//! Remote memory access: puts and gets, whole, in parts or of strided blocks. The key of a block of
//! a peer's heap is read at the first access to the block.
#![allow(unsafe_code)]

use super::batching::{SmallOperation, is_small};
use super::origin::Origin;
use super::wire::{PostOutcome, StreamOrder, Wire, WireNetwork, WriteEnd};
use crate::peers::damaged;
use crate::segments::heap_blocks::{self, Covered, ENTRY, HeapBlock};
use crate::{Completion, Error, Get, LocalBuf, Pe, Put, RemoteAddr, Segment, StridedBlocks};

impl<W: Wire> Origin<W> {
    /// Returns true if a put to a segment, or each block of a strided one, is batched unless it is
    /// lone.
    #[inline]
    fn may_batch_put(&self, pe: Pe, segment: Segment, nbytes: usize) -> bool {
        // A batch is a message. It may have to wait for the writes before the last fence, and the
        // writes after the next fence may have to wait for it. A put that is a write, such as a
        // flag that announces data, avoids both.
        let only_writes = StreamOrder::WritesByFence..StreamOrder::Everything;
        let is_write =
            || self.routes[pe].has_writes_before && only_writes.contains(&self.caps.order);
        is_small(segment, nbytes) && self.batches && !is_write()
    }

    /// Copies local memory to a PE.
    ///
    /// # Safety
    /// The source is valid for reads until the call returns or, if that does not wait, until the
    /// put is complete.
    #[inline(always)]
    pub(super) unsafe fn put(&mut self, pe: Pe, put: &Put) -> Result<(), Error> {
        if self.batches {
            // SAFETY: the source is valid as `put` requires, by the same contract.
            return unsafe { self.put_or_batch(pe, put) };
        }
        // SAFETY: the source is valid as `put` requires, by the same contract.
        unsafe { self.put_by_wire(pe, put) }
    }

    /// Batches a put if it may be batched and is not lone; otherwise sends the batch for the PE,
    /// and works as [`put_by_wire`](Self::put_by_wire).
    ///
    /// # Safety
    /// As [`put`](Self::put).
    #[inline(never)]
    unsafe fn put_or_batch(&mut self, pe: Pe, put: &Put) -> Result<(), Error> {
        let &Put { dest, source, .. } = put;
        self.network.check(pe, dest, source.nbytes)?;
        if source.nbytes == 0 {
            return Ok(());
        }
        let may_batch = self.may_batch_put(pe, dest.segment, source.nbytes);
        let is_lone = may_batch && self.batcher.begin_lone(pe);
        if may_batch && !is_lone {
            let operation = SmallOperation::Put(dest, source);
            // SAFETY: the source is valid for reads now, and `batch` copies it.
            return unsafe { self.batch(pe, &[dest.segment], &[operation], true) };
        }
        self.send_open_batch(pe)?;
        // SAFETY: the source is valid as `put` requires, by the same contract.
        unsafe { self.put_by_wire(pe, put) }?;
        // Called after the send, which may take longer than what a loop does between two
        // operations.
        if is_lone {
            self.batcher.mark_busy();
        }
        Ok(())
    }

    /// Works as [`put`](Self::put), without batching.
    ///
    /// # Safety
    /// The same.
    #[inline(always)]
    unsafe fn put_by_wire(&mut self, pe: Pe, put: &Put) -> Result<(), Error> {
        let end = WriteEnd::of(put);
        // SAFETY: the source is valid as `put` requires, by the same contract.
        let posted = unsafe { self.begin_put(pe, put, end) }?;
        if end.awaited {
            self.end(pe, posted)
        } else {
            Ok(())
        }
    }

    /// Starts the writes of a put, without batching. Returns the outcome of a single write; several
    /// are over on return if the call waits.
    ///
    /// # Safety
    /// As [`put`](Self::put).
    #[inline(always)]
    pub(super) unsafe fn begin_put(
        &mut self,
        pe: Pe,
        put: &Put,
        end: WriteEnd,
    ) -> Result<PostOutcome<W::Token>, Error> {
        let &Put { dest, source, .. } = put;
        if source.nbytes == 0 {
            return Ok(PostOutcome::Done);
        }
        self.order_write(pe)?;
        let mut posted = PostOutcome::Uncovered;
        if source.nbytes <= self.caps.longest_write {
            // SAFETY: the write is over once the put is complete, until which the source is valid.
            posted = unsafe { self.wire.write(&self.network, pe, (dest, source), end) }?;
        }
        self.mark_dirty(pe);
        if matches!(posted, PostOutcome::Done | PostOutcome::Pending(_)) {
            return Ok(posted);
        }
        // SAFETY: the source is valid as `put` requires, by the same contract.
        unsafe { self.put_later(pe, put, end, posted) }
    }

    /// Starts the writes of a put that found no room at first, exceeds the longest write, or needs
    /// several keys.
    ///
    /// # Safety
    /// As [`put`](Self::put).
    #[cold]
    #[inline(never)]
    unsafe fn put_later(
        &mut self,
        pe: Pe,
        put: &Put,
        end: WriteEnd,
        first: PostOutcome<W::Token>,
    ) -> Result<PostOutcome<W::Token>, Error> {
        let &Put { dest, source, .. } = put;
        // SAFETY: the write is over once the put is complete, until which the source is valid.
        let mut write = |wire: &mut W, network: &W::Network| unsafe {
            wire.write(network, pe, (dest, source), end)
        };
        match self.post_again(pe, first, &mut write)? {
            PostOutcome::Uncovered => {}
            posted => return Ok(posted),
        }
        // SAFETY: a part of the source, which is valid by contract.
        let start = |wire: &mut W, network: &W::Network, part| unsafe {
            wire.write(network, pe, part, end)
        };
        let longest = self.caps.longest_write;
        self.in_parts(pe, (dest, source), end.awaited, longest, start)?;
        Ok(PostOutcome::Done)
    }

    /// Waits until a write to a PE, or an atomic operation of the network, may be started after the
    /// operations before it.
    #[inline(always)]
    pub(super) fn order_write(&mut self, pe: Pe) -> Result<(), Error> {
        self.network.local().loss.check()?;
        let fences = self.issued.fences();
        match self
            .routes
            .get(pe)
            .is_some_and(|route| route.ordered_at == fences)
        {
            true => Ok(()),
            false => self.order_first_write(pe),
        }
    }

    /// Works as [`order_write`](Self::order_write), for the first write after a fence.
    #[inline(never)]
    fn order_first_write(&mut self, pe: Pe) -> Result<(), Error> {
        self.reach(pe)?;
        self.order_after_requests(pe)?;
        self.order_after_writes(pe, StreamOrder::WritesByFence)?;
        self.routes[pe].ordered_at = self.issued.fences();
        Ok(())
    }

    /// Records that a write, or an atomic operation of the network, was issued to a PE. A put calls
    /// this after it has passed the write to the wire, so that the NIC starts earlier.
    #[inline(always)]
    pub(super) fn mark_dirty(&mut self, pe: Pe) {
        if !std::mem::replace(&mut self.routes[pe].is_dirty, true) {
            self.activate(pe);
        }
    }

    /// Starts a transfer in parts that are no longer than `longest` and that one key covers. A part
    /// ends at the end of an 8-byte word of the target, so that no word is torn. If the call waits
    /// or fails, the parts that were started are over on return.
    fn in_parts(
        &mut self,
        pe: Pe,
        (mut at, mut memory): (RemoteAddr, LocalBuf),
        awaited: bool,
        longest: usize,
        mut start: impl FnMut(
            &mut W,
            &W::Network,
            (RemoteAddr, LocalBuf),
        ) -> Result<PostOutcome<W::Token>, Error>,
    ) -> Result<(), Error> {
        self.find_keys(pe, at, memory.nbytes)?;
        let (mut started, mut done) = (Vec::new(), Ok(()));
        while done.is_ok() && memory.nbytes > 0 {
            let nbytes = memory.nbytes.min(longest - (at.offset % 8) as usize);
            let posted = self.covered(pe, at, nbytes).and_then(|nbytes| {
                let part = (at, memory.first(nbytes));
                at.offset += nbytes as u64;
                memory = memory.skip(nbytes);
                self.post_covered(pe, |wire, network| start(wire, network, part))
            });
            done = posted.map(|part| started.push(part));
        }
        if !awaited && done.is_ok() {
            return Ok(());
        }
        // After a loss each wait fails at once and releases the token.
        started.into_iter().fold(done, |done, part| {
            let ended = self.end(pe, part);
            done.and(ended)
        })
    }

    /// Copies a PE's memory to local memory.
    ///
    /// # Safety
    /// The destination is valid for writes until the call returns or, if that does not wait, until
    /// the get is complete.
    #[inline(always)]
    pub(super) unsafe fn get(&mut self, pe: Pe, get: &Get) -> Result<(), Error> {
        if self.batches {
            // SAFETY: the destination is valid as `get` requires, by the same contract.
            return unsafe { self.get_or_batch(pe, get) };
        }
        // SAFETY: the destination is valid as `get` requires, by the same contract.
        unsafe { self.get_by_wire(pe, get) }
    }

    /// Batches a get if it is small, not lone, and no call waits for it; otherwise sends the
    /// batches before it, and works as [`get_by_wire`](Self::get_by_wire).
    ///
    /// # Safety
    /// As [`get`](Self::get).
    #[inline(never)]
    unsafe fn get_or_batch(&mut self, pe: Pe, get: &Get) -> Result<(), Error> {
        let &Get {
            dest,
            source,
            completion,
        } = get;
        self.network.check(pe, source, dest.nbytes)?;
        if dest.nbytes == 0 {
            return Ok(());
        }
        let may_batch = completion != Completion::Now && is_small(source.segment, dest.nbytes);
        let is_lone = may_batch && self.batcher.begin_lone(pe);
        if may_batch && !is_lone {
            let operation = SmallOperation::Get(source, dest);
            // SAFETY: the destination is valid until the get is complete, by contract.
            return unsafe { self.batch(pe, &[source.segment], &[operation], false) };
        }
        match completion {
            Completion::Now => self.send_open_batches()?,
            _ => self.send_open_batch(pe)?,
        }
        // SAFETY: the destination is valid as `get` requires, by the same contract.
        unsafe { self.get_by_wire(pe, get) }?;
        if is_lone {
            self.batcher.mark_busy();
        }
        Ok(())
    }

    /// Works as [`get`](Self::get), without batching.
    ///
    /// # Safety
    /// The same.
    #[inline(always)]
    pub(super) unsafe fn get_by_wire(&mut self, pe: Pe, get: &Get) -> Result<(), Error> {
        let &Get {
            dest,
            source,
            completion,
        } = get;
        let awaited = completion == Completion::Now;
        self.reach(pe)?;
        if dest.nbytes == 0 {
            return Ok(());
        }
        let mut posted = PostOutcome::Uncovered;
        if dest.nbytes <= self.caps.longest_read {
            // SAFETY: the read is over once the get is complete, until which `dest` is valid.
            posted = unsafe { self.wire.read(&self.network, pe, (source, dest), awaited) }?;
        }
        if !awaited {
            self.activate(pe);
        }
        if matches!(posted, PostOutcome::Full | PostOutcome::Uncovered) {
            // SAFETY: the destination is valid as `get` requires, by the same contract.
            posted = unsafe { self.get_later(pe, get, posted) }?;
        }
        if awaited {
            self.end(pe, posted)
        } else {
            Ok(())
        }
    }

    /// Starts the reads of a get that found no room at first, exceeds the longest read, or needs
    /// several keys. Several reads are over on return if the call waits.
    ///
    /// # Safety
    /// As [`get`](Self::get).
    #[cold]
    #[inline(never)]
    unsafe fn get_later(
        &mut self,
        pe: Pe,
        get: &Get,
        first: PostOutcome<W::Token>,
    ) -> Result<PostOutcome<W::Token>, Error> {
        let &Get {
            dest,
            source,
            completion,
        } = get;
        let awaited = completion == Completion::Now;
        // SAFETY: the same contract, also of a part.
        let start = |wire: &mut W, network: &W::Network, part| unsafe {
            wire.read(network, pe, part, awaited)
        };
        match self.post_again(pe, first, &mut |wire, network| {
            start(wire, network, (source, dest))
        })? {
            PostOutcome::Uncovered => {}
            posted => return Ok(posted),
        }
        let longest = self.caps.longest_read;
        self.in_parts(pe, (source, dest), awaited, longest, start)?;
        Ok(PostOutcome::Done)
    }

    /// Puts blocks. The local memory may be reused when the call returns.
    ///
    /// # Safety
    /// Every block is valid for reads.
    pub(super) unsafe fn put_strided(
        &mut self,
        pe: Pe,
        blocks: StridedBlocks,
    ) -> Result<(), Error> {
        let (segment, nbytes) = (blocks.remote.segment, blocks.local.nbytes);
        let may_batch = self.may_batch_put(pe, segment, nbytes);
        let (writes, operation) = (true, SmallOperation::PutStrided);
        // SAFETY: every block is valid for reads, by contract.
        if unsafe { self.batch_strided(pe, blocks, may_batch, writes, operation) }? {
            return Ok(());
        }
        for (dest, source) in blocks.each() {
            let put = Put {
                dest,
                source,
                completion: Completion::Now,
            };
            // SAFETY: a block, which is valid for reads while `put` waits, by contract.
            unsafe { self.put(pe, &put) }?;
        }
        Ok(())
    }

    /// Starts to get blocks.
    ///
    /// # Safety
    /// Every block is valid for writes until the get is complete.
    pub(super) unsafe fn get_strided_nbi(
        &mut self,
        pe: Pe,
        blocks: StridedBlocks,
    ) -> Result<(), Error> {
        let may_batch = is_small(blocks.remote.segment, blocks.local.nbytes) && self.batches;
        let (writes, operation) = (false, SmallOperation::GetStrided);
        // SAFETY: every block is valid for writes until the get is complete, by contract.
        if unsafe { self.batch_strided(pe, blocks, may_batch, writes, operation) }? {
            return Ok(());
        }
        for (source, dest) in blocks.each() {
            let get = Get {
                dest,
                source,
                completion: Completion::AtQuiet,
            };
            // SAFETY: a block, which is valid for writes until the get is complete, by contract.
            unsafe { self.get(pe, &get) }?;
        }
        Ok(())
    }

    /// Checks the range of the blocks and, if they `may_batch`, adds them to batches, as many in
    /// one operation as fit. Returns false if they are not batched: if they may not be, are empty,
    /// or if fewer than two fit.
    ///
    /// # Safety
    /// Every block is valid for reads, or for writes until the operation is complete.
    unsafe fn batch_strided(
        &mut self,
        pe: Pe,
        blocks: StridedBlocks,
        may_batch: bool,
        writes: bool,
        operation: fn(StridedBlocks) -> SmallOperation,
    ) -> Result<bool, Error> {
        self.network
            .check(pe, blocks.remote, blocks.remote_nbytes())?;
        let at_once = self.batcher.most_blocks(blocks.local.nbytes).min(blocks.n);
        if !may_batch || at_once < 2 || blocks.local.nbytes == 0 {
            return Ok(false);
        }
        let segments = &[blocks.remote.segment];
        for part in blocks.in_parts(at_once) {
            // SAFETY: some of the blocks, which are valid as `batch` requires, by contract.
            unsafe { self.batch(pe, segments, &[operation(part)], writes) }?;
        }
        Ok(true)
    }
}

impl<W: Wire> Origin<W> {
    /// Returns how many bytes from the start of a range one key covers. Reads the key from the
    /// connected PE if it is missing.
    #[inline]
    pub(super) fn covered(
        &mut self,
        pe: Pe,
        at: RemoteAddr,
        nbytes: usize,
    ) -> Result<usize, Error> {
        loop {
            match self.wire.covered(&self.network, pe, at, nbytes)? {
                Covered::Bytes(covered) => return Ok(covered.min(nbytes)),
                Covered::Unknown(block) => self.find_key(pe, block)?,
            }
        }
    }

    /// Checks a range in a segment of a connected PE and reads all missing keys. So a transfer in
    /// parts can fail after its start only by a loss, which ends all its parts.
    pub(super) fn find_keys(
        &mut self,
        pe: Pe,
        mut at: RemoteAddr,
        mut nbytes: usize,
    ) -> Result<(), Error> {
        self.network.check(pe, at, nbytes)?;
        while nbytes > 0 {
            let covered = self.covered(pe, at, nbytes)?;
            at.offset += covered as u64;
            nbytes -= covered;
        }
        Ok(())
    }

    /// Reads the entry of a block from the table of keys of a PE, and passes it to the wire.
    #[cold]
    fn find_key(&mut self, pe: Pe, block: HeapBlock) -> Result<(), Error> {
        let from = heap_blocks::entry(block, self.network.nbytes(pe, Segment::Internal)?);
        let from = from.ok_or_else(|| damaged(pe, "table of keys"))?;
        let to = LocalBuf {
            base: self.entry.as_mut_ptr(),
            nbytes: ENTRY,
        };
        let get = Get {
            dest: to,
            source: from,
            completion: Completion::Now,
        };
        // SAFETY: a buffer of the origin, which is freed after the wire.
        unsafe { self.get_by_wire(pe, &get) }?;
        let entry = *self.entry;
        self.wire.learn(&self.network, pe, block, &entry)
    }
}
