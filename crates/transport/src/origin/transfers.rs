//! Puts and gets, whole or of strided blocks.
#![allow(unsafe_code)]

use super::state::Origin;
use super::wire::{PostOutcome, Wire, WireNetwork, WriteEnd};
use crate::kit::gather::{SmallOperation, is_small};
use crate::{
    Completion, Error, Get, LocalAccess, LocalBuf, Pe, Put, RemoteAddr, Segment, StridedBlocks,
};

impl Put {
    /// Returns true if the call waits until the source is free.
    pub(super) fn awaits_source(&self) -> bool {
        self.completion == Completion::Now && self.source.nbytes > 0
    }
}

impl<W: Wire> Origin<W> {
    /// Returns true if a put to a segment, or each block of one, is gathered unless it is a lone
    /// one.
    #[inline]
    fn may_batch_put(&self, pe: Pe, segment: Segment, nbytes: usize) -> bool {
        // A batch is a message, of which the wire's fence knows nothing: a put that only that
        // orders would have to wait. As a write, a flag that announces data need not.
        let is_ordered = || self.routes[pe].writes_before && self.caps.orders_writes;
        is_small(segment, nbytes) && self.may_batch() && !is_ordered()
    }

    /// Copies local memory to a PE.
    ///
    /// # Safety
    /// The source is valid for reads until the call returns or, if that does not wait, until the
    /// put is complete.
    pub(super) unsafe fn put(
        &mut self,
        network: &W::Network,
        pe: Pe,
        put: &Put,
    ) -> Result<(), Error> {
        let &Put { dest, source, .. } = put;
        network.check(pe, dest, source.nbytes)?;
        if source.nbytes == 0 {
            return Ok(());
        }
        self.check_memory(network, LocalAccess::Read, source)?;
        let may_batch = self.may_batch_put(pe, dest.segment, source.nbytes);
        if may_batch && !self.gather.is_lone(pe) {
            let proxy = self.gather.proxy(&*network.local().host, pe, &[dest.segment]);
            self.reach(network, proxy.pe)?;
            self.touch(proxy.pe);
            self.follow_writes(network, proxy.pe, self.caps.orders_messages)?;
            // SAFETY: valid by contract.
            return unsafe {
                self.add_to_batch(network, proxy, &[SmallOperation::Put(dest, source)])
            };
        }
        self.send_gathered(network, pe)?;
        // SAFETY: the same contract.
        let posted = unsafe { self.begin_put(network, pe, put, false) }?;
        if may_batch {
            self.gather.has_left();
        }
        if put.awaits_source() { self.end(network, pe, posted) } else { Ok(()) }
    }

    /// Starts the writes of a put that is not gathered. Returns what became of the last one; all
    /// others are over if the call waits.
    ///
    /// # Safety
    /// As [`put`](Self::put).
    pub(super) unsafe fn begin_put(
        &mut self,
        network: &W::Network,
        pe: Pe,
        put: &Put,
        source_free: bool,
    ) -> Result<PostOutcome<W::Token>, Error> {
        let &Put { mut dest, mut source, .. } = put;
        let end = WriteEnd { awaited: put.awaits_source(), source_free };
        self.reach(network, pe)?;
        self.touch(pe);
        self.follow_requests(network, pe)?;
        self.follow_writes(network, pe, self.caps.orders_writes)?;
        self.routes[pe].dirty = true;
        loop {
            // A part ends at a word of the target, wherever the put begins.
            let longest = self.caps.longest_write - (dest.offset % 8) as usize;
            let nbytes = self.covered(network, pe, dest, source.nbytes.min(longest))?;
            let part = (dest, source.first(nbytes));
            self.room(network)?;
            // SAFETY: a part of what is valid by contract.
            let post = |wire: &mut W| unsafe { wire.write(network, pe, part, end) };
            let posted = self.post(network, pe, post)?;
            if nbytes == source.nbytes {
                return Ok(posted);
            }
            if end.awaited {
                self.end(network, pe, posted)?;
            }
            dest.offset += nbytes as u64;
            source = source.skip(nbytes);
        }
    }

    /// Copies a PE's memory to local memory.
    ///
    /// # Safety
    /// The destination is valid for writes until the call returns or, if that does not wait, until
    /// the get is complete.
    pub(super) unsafe fn get(
        &mut self,
        network: &W::Network,
        pe: Pe,
        get: &Get,
    ) -> Result<(), Error> {
        let &Get { dest, source, completion } = get;
        let awaited = completion == Completion::Now;
        network.check(pe, source, dest.nbytes)?;
        if dest.nbytes == 0 {
            return Ok(());
        }
        self.check_memory(network, LocalAccess::Write, dest)?;
        let may_batch = !awaited && is_small(source.segment, dest.nbytes) && self.may_batch();
        if may_batch && !self.gather.is_lone(pe) {
            let proxy = self.gather.proxy(&*network.local().host, pe, &[source.segment]);
            self.reach(network, proxy.pe)?;
            self.touch(proxy.pe);
            // SAFETY: valid by contract.
            return unsafe {
                self.add_to_batch(network, proxy, &[SmallOperation::Get(source, dest)])
            };
        }
        match awaited {
            true => self.send_all_gathered(network)?,
            false => self.send_gathered(network, pe)?,
        }
        // SAFETY: the same contract.
        unsafe { self.begin_get(network, pe, source, dest, awaited) }?;
        if may_batch {
            self.gather.has_left();
        }
        Ok(())
    }

    /// Starts the reads of a get that is not gathered, and waits for their end if it is `awaited`.
    ///
    /// # Safety
    /// As [`get`](Self::get).
    pub(super) unsafe fn begin_get(
        &mut self,
        network: &W::Network,
        pe: Pe,
        mut source: RemoteAddr,
        mut dest: LocalBuf,
        awaited: bool,
    ) -> Result<(), Error> {
        self.reach(network, pe)?;
        self.touch(pe);
        while dest.nbytes > 0 {
            let longest = self.caps.longest_read;
            let nbytes = self.covered(network, pe, source, dest.nbytes.min(longest))?;
            let part = (source, dest.first(nbytes));
            self.room(network)?;
            // SAFETY: a part of what is valid by contract.
            let post = |wire: &mut W| unsafe { wire.read(network, pe, part, awaited) };
            let posted = self.post(network, pe, post)?;
            if awaited {
                self.end(network, pe, posted)?;
            }
            source.offset += nbytes as u64;
            dest = dest.skip(nbytes);
        }
        if awaited {
            self.forget_idle(pe);
        }
        Ok(())
    }

    /// Puts blocks. The local memory is free when the call returns.
    ///
    /// # Safety
    /// Every block is valid for reads.
    pub(super) unsafe fn put_strided(
        &mut self,
        network: &W::Network,
        pe: Pe,
        blocks: StridedBlocks,
    ) -> Result<(), Error> {
        network.check(pe, blocks.remote, blocks.remote_nbytes())?;
        let (segment, nbytes) = (blocks.remote.segment, blocks.local.nbytes);
        if blocks.n > 1 && nbytes > 0 && self.may_batch_put(pe, segment, nbytes) {
            self.check_memory(network, LocalAccess::Read, blocks.local_range())?;
            let operation = SmallOperation::PutStrided;
            // SAFETY: the same contract.
            if unsafe { self.batch_strided(network, pe, blocks, operation) }? {
                return Ok(());
            }
        }
        for (dest, source) in blocks.each() {
            let put = Put { dest, source, completion: Completion::Now };
            // SAFETY: a block, valid by contract.
            unsafe { self.put(network, pe, &put) }?;
        }
        Ok(())
    }

    /// Starts to get blocks.
    ///
    /// # Safety
    /// Every block is valid for writes until the get is complete.
    pub(super) unsafe fn get_strided_nbi(
        &mut self,
        network: &W::Network,
        pe: Pe,
        blocks: StridedBlocks,
    ) -> Result<(), Error> {
        network.check(pe, blocks.remote, blocks.remote_nbytes())?;
        let (segment, nbytes) = (blocks.remote.segment, blocks.local.nbytes);
        if blocks.n > 1 && nbytes > 0 && is_small(segment, nbytes) && self.may_batch() {
            self.check_memory(network, LocalAccess::Write, blocks.local_range())?;
            let operation = SmallOperation::GetStrided;
            // SAFETY: the same contract.
            if unsafe { self.batch_strided(network, pe, blocks, operation) }? {
                return Ok(());
            }
        }
        for (source, dest) in blocks.each() {
            let get = Get { dest, source, completion: Completion::AtQuiet };
            // SAFETY: a block, valid by contract.
            unsafe { self.get(network, pe, &get) }?;
        }
        Ok(())
    }

    /// Gathers as many blocks at once as fit a batch, by the operation for some of them. Returns
    /// false if that is not more than one.
    ///
    /// # Safety
    /// Every block is valid for what the operation does until that is complete.
    unsafe fn batch_strided(
        &mut self,
        network: &W::Network,
        pe: Pe,
        blocks: StridedBlocks,
        operation: fn(StridedBlocks) -> SmallOperation,
    ) -> Result<bool, Error> {
        let at_once = self.gather.most_blocks(blocks.local.nbytes);
        if at_once < 2 {
            return Ok(false);
        }
        let segment = blocks.remote.segment;
        let proxy = self.gather.proxy(&*network.local().host, pe, &[segment]);
        self.reach(network, proxy.pe)?;
        self.touch(proxy.pe);
        self.follow_writes(network, proxy.pe, self.caps.orders_messages)?;
        for part in blocks.in_parts(at_once) {
            // SAFETY: valid by contract.
            unsafe { self.add_to_batch(network, proxy, &[operation(part)]) }?;
        }
        Ok(true)
    }
}
