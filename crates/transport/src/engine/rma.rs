//! Remote memory access: transfers, whole, in parts or of strided blocks, and puts with a signal.
//! The keys that they need are read from the PE by transfers, too.
#![allow(unsafe_code)]

use super::acks::RequestOrder;
use super::batching::{EntrySize, is_small};
use super::keys;
use super::origin::Origin;
use super::wire::{PostOutcome, Remote, StreamOrder, Wire, WireNetwork, WriteEnd, WriteSent};
use crate::buffer::{Local, Way};
use crate::peers::check_aligned;
use crate::segments::heap_blocks::{self, Covered, ENTRY, HeapBlock};
use crate::{
    AmoOp, AmoRequest, Buffer, Completion, DestBuf, Error, Get, Pe, Proxy, Put, RemoteAddr,
    Segment, SignalOrder, SourceBuf, StridedBlocks, Transfer,
};
use std::ptr::from_ref;

impl<W: Wire> Origin<W> {
    /// Transfers bytes. Small ones are batched, unless they are lone or may not be; a lone put may
    /// be a request of its own.
    #[inline(always)]
    pub(super) fn transfer<A: Way>(
        &mut self,
        pe: Pe,
        transfer: &mut Transfer<A>,
    ) -> Result<(), Error> {
        if self.batches {
            self.transfer_or_batch(pe, transfer)
        } else {
            self.transfer_by_wire(pe, transfer)
        }
    }

    /// Adds a transfer to the batch for the PE if it may be batched and is not lone. A lone put is
    /// sent as a request where the wire says so. Otherwise has the wire carry the transfer out,
    /// after the batches that must precede it.
    #[inline(never)]
    fn transfer_or_batch<A: Way>(
        &mut self,
        pe: Pe,
        transfer: &mut Transfer<A>,
    ) -> Result<(), Error> {
        let remote = transfer.remote;
        let nbytes = transfer.local.nbytes();
        keys::check_in_segment(&*self.network, pe, remote, nbytes)?;
        if nbytes == 0 {
            return Ok(());
        }

        // A batch copies the source of a put, but its answer brings the data of a get.
        let may_wait = A::IS_PUT || transfer.completion != Completion::Now;
        let may_batch = may_wait && self.may_batch::<A>(pe, remote.segment, nbytes);
        let is_lone = may_batch && self.batcher.is_lone(pe);
        if is_lone && !(A::IS_PUT && self.caps.lone_puts_are_requests) {
            self.transfer_by_wire(pe, transfer)?;
            // Called after the send, which may take longer than what a loop does between two
            // operations.
            self.batcher.mark_busy();
            return Ok(());
        }

        if may_batch {
            let size = EntrySize::of_transfer::<A>(nbytes);
            let to = self.room_for::<A>(pe, remote.segment, size)?;
            let local = std::mem::take(&mut transfer.local);
            self.batcher.open(to).transfer(remote, local);

            if is_lone {
                // A request that asks may exceed the window, since its caller then waits for the
                // acknowledgment. A put does not.
                let order = if self.issued.is_full(to.pe) {
                    RequestOrder::AfterFence
                } else {
                    self.batcher.order_of_lone_put()
                };
                return self.send_batch(to.pe, order);
            }
            self.activate(to.pe);
            return Ok(());
        }

        if may_wait {
            self.send_open_batch(pe)?;
            return self.transfer_by_wire(pe, transfer);
        }

        self.send_open_batches()?;
        self.transfer_by_wire(pe, transfer)?;
        self.cover_writes(pe);
        Ok(())
    }

    /// Puts, and updates the word of a signal after the data. The signal is an atomic operation,
    /// unless it sets a flag of the library and the wire orders everything, or the flag is
    /// [alone](Self::may_write_lone_flag).
    pub(super) fn put_signal(
        &mut self,
        pe: Pe,
        put: &mut Put,
        signal: &AmoRequest,
        order: SignalOrder,
    ) -> Result<(), Error> {
        check_aligned(pe, signal.dest, signal.width)?;
        let sets_flag = signal.op == AmoOp::Set && signal.dest.segment == Segment::Internal;
        if sets_flag && self.caps.order == StreamOrder::Everything {
            self.put_and_write_flag(pe, put, signal.dest, &signal.operand)
        } else if sets_flag && self.may_write_lone_flag(pe, put.local.nbytes(), order) {
            self.write_lone_flag(pe, signal.dest, signal.operand)
        } else {
            self.put_and_operate(pe, put, signal, order)
        }
    }

    /// Returns true if a flag of the library that follows `nbytes` bytes of data is a write over a
    /// wire that does not order everything: if there are no data, no batch has operations on the
    /// PE, and the PE has acknowledged all requests. The write would overtake these.
    fn may_write_lone_flag(&self, pe: Pe, nbytes: usize, order: SignalOrder) -> bool {
        self.caps.lone_flags_are_writes
            && order == SignalOrder::AfterAllNext
            && nbytes == 0
            && !self.batcher.has_any(pe)
            && !self.batcher.uses_proxies(&*self.network.local().host)
            && self.issued.unacked(pe) == 0
    }

    /// Writes the bytes of a flag of the library in which `value` differs from the value before it,
    /// each after all that was issued before.
    fn write_lone_flag(&mut self, pe: Pe, flag: RemoteAddr, value: u64) -> Result<(), Error> {
        let bytes = value.to_le_bytes();
        let n_changed = 1 + value.trailing_zeros() / u8::BITS;
        for (offset, byte) in (flag.offset..).zip(&bytes[..n_changed as usize]) {
            self.fence_wire()?;

            let to = RemoteAddr { offset, ..flag };
            // SAFETY: the source is borrowed during this call. `await_end` below returns when the
            // network has read it or, after a loss, the caller abandons the wire before the borrow
            // ends.
            let mut source = unsafe { SourceBuf::new(from_ref(byte), 1) };
            let end = WriteEnd {
                awaited: true,
                source_free: false,
                sent: WriteSent::Now,
            };
            let posted = self.begin(pe, to, &mut source, end)?;
            self.await_end(pe, posted)?;
        }
        Ok(())
    }

    /// Puts, then writes a flag of the library, over a wire that orders everything. This takes less
    /// time than a request, which is numbered and acknowledged.
    fn put_and_write_flag(
        &mut self,
        pe: Pe,
        put: &mut Put,
        flag: RemoteAddr,
        value: &u64,
    ) -> Result<(), Error> {
        // Nothing may delay the flag once the data, which are sent with it, are written.
        self.send_open_batch(pe)?;
        if self.batcher.uses_proxies(&*self.network.local().host) {
            self.quiet()?;
        }
        self.order_after_unsent(pe)?;

        let of_data = WriteEnd {
            awaited: put.completion == Completion::Now,
            source_free: true,
            sent: WriteSent::WithNext,
        };
        let data = self.begin(pe, put.remote, &mut put.local, of_data)?;

        // SAFETY: the source is borrowed during this call. `await_end` below returns when the
        // network has read it or, after a loss, the caller abandons the wire before the borrow
        // ends.
        let mut value = unsafe { SourceBuf::new(from_ref(value).cast(), size_of_val(value)) };
        let of_flag = WriteEnd {
            awaited: true,
            source_free: false,
            sent: WriteSent::Now,
        };
        let flag = self.begin(pe, flag, &mut value, of_flag);
        let written = flag.and_then(|flag| self.await_end(pe, flag));

        // Also if the flag is refused: the caller may reuse the source then, too.
        if of_data.awaited {
            let ended = self.await_end(pe, data);
            return written.and(ended);
        }
        written
    }

    /// Returns true if transfers from or to a segment, each of this many bytes, are batched unless
    /// they are lone.
    #[inline]
    fn may_batch<A: Way>(&self, pe: Pe, segment: Segment, nbytes: usize) -> bool {
        // A batch is a message. It may have to wait for the writes before the last fence, and the
        // writes after the next fence may have to wait for it. A put that is a write, such as a
        // flag that announces data, avoids both.
        let only_writes = StreamOrder::WritesByFence..StreamOrder::Everything;
        let is_write = || {
            A::IS_PUT && self.routes[pe].has_writes_before && only_writes.contains(&self.caps.order)
        };
        is_small(segment, nbytes) && self.batches && !is_write()
    }

    /// Makes room for an entry of this size in the batch for a PE, or for its proxy. A put follows
    /// the writes before the last fence. Returns the PE that will carry the entry out.
    #[inline]
    fn room_for<A: Way>(
        &mut self,
        pe: Pe,
        segment: Segment,
        size: EntrySize,
    ) -> Result<Proxy, Error> {
        let host = &*self.network.local().host;
        let proxy = self.batcher.proxy(host, pe, &[segment]);

        if A::IS_PUT {
            self.order_after_writes(proxy.pe, StreamOrder::WritesBeforeMessages)?;
        }

        self.make_room(proxy.pe, size)?;
        Ok(proxy)
    }

    /// Returns the maximum number of bytes of a transfer that the wire starts as a whole.
    #[inline]
    fn longest<A: Way>(&self) -> usize {
        if A::IS_PUT {
            self.caps.longest_write
        } else {
            self.caps.longest_read
        }
    }

    /// Transfers bytes, without batching.
    #[inline(always)]
    pub(super) fn transfer_by_wire<A: Way>(
        &mut self,
        pe: Pe,
        transfer: &mut Transfer<A>,
    ) -> Result<(), Error> {
        let end = WriteEnd {
            awaited: transfer.completion == Completion::Now,
            source_free: false,
            // More operations usually follow before a fence, and no other one does in this call.
            sent: WriteSent::WithOthers,
        };
        let posted = self.begin(pe, transfer.remote, &mut transfer.local, end)?;
        if end.awaited {
            self.await_end(pe, posted)
        } else {
            Ok(())
        }
    }

    /// Starts a transfer that is not batched. Returns its outcome if the wire carries it out at
    /// once; one in parts is over on return if the call waits.
    #[inline(always)]
    pub(super) fn begin<A: Way>(
        &mut self,
        pe: Pe,
        remote: RemoteAddr,
        local: &mut Buffer<A>,
        end: WriteEnd,
    ) -> Result<PostOutcome<W::Token>, Error> {
        let nbytes = local.nbytes();
        if nbytes == 0 {
            return Ok(PostOutcome::Done);
        }
        if A::IS_PUT {
            self.order_write(pe)?;
        } else {
            self.reach(pe)?;
        }

        let mut posted = PostOutcome::Full;
        if nbytes <= self.longest::<A>()
            && let Some(range) = keys::find(&*self.network, pe, remote, nbytes)
        {
            posted = start(&mut self.wire, &self.network, range, local, end)?;
        }
        if A::IS_PUT {
            self.mark_dirty(pe);
        } else if !end.awaited {
            self.activate(pe);
        }

        match posted {
            PostOutcome::Full => self.begin_later(pe, remote, local, end),
            posted => Ok(posted),
        }
    }

    /// Starts a transfer that found no room at first, exceeds the longest one of the wire, or is
    /// not covered by one known key: in parts that one key covers, if it has to be divided. A part
    /// ends at the end of an 8-byte word of the target, so that no word is torn. If the call waits
    /// or fails, the parts that were started are over on return.
    #[cold]
    #[inline(never)]
    fn begin_later<A: Way>(
        &mut self,
        pe: Pe,
        mut remote: RemoteAddr,
        local: &mut Buffer<A>,
        end: WriteEnd,
    ) -> Result<PostOutcome<W::Token>, Error> {
        let nbytes = local.nbytes();
        self.find_keys(pe, remote, nbytes)?;
        let longest = self.longest::<A>();
        if nbytes <= longest && self.find_key(pe, remote, nbytes)? == nbytes {
            return self.post(pe, |wire, network| {
                let range = keys::require(network, pe, remote, nbytes)?;
                start(wire, network, range, &mut *local, end)
            });
        }

        let mut started = Vec::new();
        let mut done = Ok(());
        while done.is_ok() && local.nbytes() > 0 {
            let nbytes = local.nbytes().min(longest - (remote.offset % 8) as usize);
            let posted = self.find_key(pe, remote, nbytes).and_then(|nbytes| {
                let mut part = local.take_first(nbytes);
                self.post(pe, |wire, network| {
                    let range = keys::require(network, pe, remote, nbytes)?;
                    start(wire, network, range, &mut part, end)
                })
                .inspect(|_| remote.offset += nbytes as u64)
            });

            done = posted.map(|part| started.push(part));
        }

        if !end.awaited && done.is_ok() {
            return Ok(PostOutcome::Done);
        }
        // After a loss each wait fails at once.
        for part in started {
            let ended = self.await_end(pe, part);
            done = done.and(ended);
        }
        done.map(|()| PostOutcome::Done)
    }

    /// Transfers blocks: to the PE, so that the local memory may be reused when the call returns,
    /// or from it by the next quiet. Blocks that may be batched travel as few operations.
    pub(super) fn transfer_strided<A: Way>(
        &mut self,
        pe: Pe,
        mut blocks: StridedBlocks<A>,
    ) -> Result<(), Error> {
        let segment = blocks.remote.segment;
        let nbytes = blocks.nbytes;
        keys::check_in_segment(&*self.network, pe, blocks.remote, blocks.remote_nbytes())?;

        let at_once = self.batcher.most_blocks(nbytes).min(blocks.n);
        if at_once >= 2 && nbytes > 0 && self.may_batch::<A>(pe, segment, nbytes) {
            for mut part in blocks.in_parts(at_once) {
                let size = EntrySize::of_blocks(&part);
                let to = self.room_for::<A>(pe, segment, size)?;
                self.batcher.open(to).strided(&mut part);
                self.activate(to.pe);
            }
            return Ok(());
        }

        let completion = if A::IS_PUT {
            Completion::Now
        } else {
            Completion::AtQuiet
        };
        for (remote, local) in blocks.each() {
            let mut block = Transfer {
                remote,
                local,
                completion,
            };
            self.transfer(pe, &mut block)?;
        }
        Ok(())
    }

    /// Waits until a write to a PE, or an atomic operation of the network, may be started after the
    /// operations before it.
    #[inline(always)]
    pub(super) fn order_write(&mut self, pe: Pe) -> Result<(), Error> {
        self.network.local().loss.check()?;
        let fences = self.issued.fences();
        let route = self.routes.get(pe);
        if route.is_some_and(|route| route.ordered_at == fences) {
            return Ok(());
        }
        self.order_first_write(pe)
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

    /// Records that a write, or an atomic operation of the network, was issued to a PE. Called
    /// after the write was passed to the wire, so that the NIC starts earlier.
    #[inline(always)]
    pub(super) fn mark_dirty(&mut self, pe: Pe) {
        if !std::mem::replace(&mut self.routes[pe].is_dirty, true) {
            self.activate(pe);
        }
    }

    /// Returns how many bytes from the start of a range in a segment of a connected PE one key
    /// covers. Reads the key from the PE if it is missing.
    pub(super) fn find_key(
        &mut self,
        pe: Pe,
        remote: RemoteAddr,
        nbytes: usize,
    ) -> Result<usize, Error> {
        loop {
            match keys::peer(&*self.network, pe)?.covered(remote) {
                Covered::Bytes(covered) => return Ok(covered.min(nbytes)),
                Covered::Unknown(block) => self.read_key(pe, block)?,
            }
        }
    }

    /// Checks a range in a segment of a connected PE and reads all missing keys. So a transfer in
    /// parts can fail after its start only by a loss, which ends all its parts.
    pub(super) fn find_keys(
        &mut self,
        pe: Pe,
        mut remote: RemoteAddr,
        mut nbytes: usize,
    ) -> Result<(), Error> {
        keys::check_in_segment(&*self.network, pe, remote, nbytes)?;
        while nbytes > 0 {
            let covered = self.find_key(pe, remote, nbytes)?;
            remote.offset += covered as u64;
            nbytes -= covered;
        }
        Ok(())
    }

    /// Reads the key of a block from the table of keys of a PE.
    #[cold]
    fn read_key(&mut self, pe: Pe, block: HeapBlock) -> Result<(), Error> {
        let internal_bytes = keys::peer(&*self.network, pe)?.nbytes(Segment::Internal);
        let remote = heap_blocks::entry(block, internal_bytes);
        let remote = remote.ok_or_else(|| Error::damaged(pe, "table of keys"))?;

        // SAFETY: `entry` is a boxed buffer of this origin of `ENTRY` bytes, valid for writes. The
        // origin drops it after the wire, so also after the last access of the network.
        let local = unsafe { DestBuf::new(self.entry.as_mut_ptr(), ENTRY) };

        let mut get = Get {
            remote,
            local,
            completion: Completion::Now,
        };
        self.transfer_by_wire(pe, &mut get)?;

        let network = &*self.network;
        keys::peer(network, pe)?
            .blocks
            .learn(pe, block, &self.entry, |key| {
                network.key(pe, Segment::Heap, block, key)
            })
    }
}

/// Starts a transfer on a wire, which owns the memory from then on unless it has no room.
#[inline(always)]
fn start<W: Wire, A: Way>(
    wire: &mut W,
    network: &W::Network,
    remote: Remote<'_, W::Network>,
    local: &mut Buffer<A>,
    end: WriteEnd,
) -> Result<PostOutcome<W::Token>, Error> {
    match A::local(local) {
        Local::Source(source) => wire.write(network, remote, source, end),
        Local::Dest(dest) => wire.read(network, remote, dest, end.awaited),
    }
}
