//! The verbs of one context.
//!
//! All endpoints of a PE share its links; an endpoint remembers the number of its last request to
//! each PE, so that its quiet waits for its own operations alone.
#![allow(unsafe_code)]

mod batched;

use crate::connection::{Connection, ConnectionEnd};
use crate::own;
use crate::progress::Progress;
use crate::proto::MAX_BODY;
use crate::session::{AckRequest, EndpointSession};
use crate::shared::SharedState;
use rushmem_transport::kit::backoff::Backoff;
use rushmem_transport::kit::batching::{
    ReplyDestinations, SmallOperation, blocks_within, is_small,
};
use rushmem_transport::kit::pe_map::PeMap;
use rushmem_transport::kit::peers::{check_aligned, check_range};
use rushmem_transport::kit::progress_state::ProgressState;
use rushmem_transport::kit::wait::{Attempt, Waiter, wait};
use rushmem_transport::{
    AmoRequest, AmoWidth, Completion, Endpoint, Error, Fault, Get, Host, LocalAccess, OldValue, Pe,
    Put, RemoteAddr, SignalUpdate, StridedBlocks,
};
use std::sync::Arc;
use std::time::Duration;

/// Polls of a link before other peers are polled, since the reply is likely to come there.
const POLLS: usize = 4;

/// One context's endpoint.
pub(crate) struct TcpEndpoint {
    progress: Arc<Progress>,
    /// Words of long transfers are written and read in parts: no other thread reads them meanwhile.
    in_parts: bool,
    routes: PeMap<Route>,
    /// The PEs to which some request is not known to be done.
    active: Vec<Pe>,
    /// The PEs of `active` for which something may be held back since the last fence.
    held: Vec<Pe>,
    session: Option<Arc<EndpointSession>>,
    /// The number of events before the last attempt of a wait.
    seen: u64,
    /// The PE for which it waits or last waited.
    towards: Option<Pe>,
}

/// The requests that were issued to one PE.
#[derive(Default)]
struct Route {
    /// The number of the last request that is not known to be done; 0 if there is none.
    last: u64,
    /// The PE is among those for which something may be held back.
    is_held: bool,
}

/// When a request leaves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leave {
    /// With all that waits, now.
    Now,
    /// Together with others.
    Later,
    /// Now if the connection [was idle](Connection::was_idle), else together with others.
    NowIfIdle,
}

impl Leave {
    /// Returns when a request leaves: at once if its caller waits for it.
    fn of(completion: Completion) -> Leave {
        match completion {
            Completion::Now => Leave::Now,
            Completion::AtQuiet => Leave::Later,
        }
    }
}

impl TcpEndpoint {
    pub(crate) fn new(progress: Arc<Progress>, in_parts: bool) -> TcpEndpoint {
        let routes = PeMap::new(progress.shared.peers.n_pes());
        TcpEndpoint {
            progress,
            in_parts,
            routes,
            active: Vec::new(),
            held: Vec::new(),
            session: None,
            seen: 0,
            towards: None,
        }
    }

    fn shared(&self) -> &SharedState {
        &self.progress.shared
    }

    fn is_own(&self, pe: Pe) -> bool {
        pe == self.shared().me
    }

    /// Checks the range first, so that the peer does not see a protocol violation.
    fn check(&self, pe: Pe, at: RemoteAddr, nbytes: usize) -> Result<(), Error> {
        let peer = self.shared().peers.get(pe)?;
        check_range(pe, at, nbytes, peer.sizes[at.segment as usize])
    }

    fn check_word(&self, pe: Pe, at: RemoteAddr, width: AmoWidth) -> Result<(), Error> {
        self.check(pe, at, width.nbytes())?;
        check_aligned(pe, at, width)
    }

    /// Works on the link to `pe`, which was reached.
    fn with_link<T>(
        &mut self,
        pe: Pe,
        work: impl FnOnce(&mut Connection, &SharedState) -> Result<T, ConnectionEnd>,
    ) -> Result<T, Error> {
        let shared = self.shared();
        let done = shared.with_link(pe, |connection| work(connection, shared));
        done.inspect_err(|_| self.abandon())
    }

    /// Does `step` on the link to `pe` until it yields something; peers are served meanwhile.
    fn until<T>(
        &mut self,
        pe: Pe,
        mut step: impl FnMut(&mut Connection, &SharedState) -> Result<Option<T>, ConnectionEnd>,
    ) -> Result<T, Error> {
        self.towards = Some(pe);
        // When PEs outnumber the CPUs, the peer may need this one to answer.
        let polls = if self.shared().state.oversubscribed() { 1 } else { POLLS };
        self.wait_for(|shared| {
            for _ in 0..polls {
                let stepped = shared.with_link(pe, |connection| step(connection, shared));
                if !matches!(stepped, Ok(None)) {
                    return stepped;
                }
            }
            Ok(None)
        })
    }

    /// Does `look` until it yields something; peers are served meanwhile.
    fn wait_for<T>(
        &mut self,
        mut look: impl FnMut(&SharedState) -> Result<Option<T>, Error>,
    ) -> Result<T, Error> {
        let done = wait(self, |this| {
            this.seen = this.shared().events();
            Ok(look(this.shared())?.map_or(Attempt::Idle, Attempt::Done))
        });
        done.inspect_err(|_| self.abandon())
    }

    /// Appends a request as soon as there is room; returns its number.
    fn issue(
        &mut self,
        pe: Pe,
        leave: Leave,
        mut append: impl FnMut(&mut Connection) -> u64,
    ) -> Result<u64, Error> {
        if self.routes[pe].last == 0 {
            self.towards = Some(pe);
            self.wait_for(|shared| Ok(shared.reach(pe)?.then_some(())))?;
        }
        self.activate(pe);
        let tuning = self.shared().tuning;
        let (seq, unsent) = self.until(pe, |connection, shared| {
            if !connection.origin.has_room(&tuning) {
                shared.state.count_retry();
                connection.flush()?;
                connection.receive(&shared.segments, &shared.buffers)?;
                if !connection.origin.has_room(&tuning) {
                    return Ok(None);
                }
            }
            let leaves = match leave {
                Leave::Now => true,
                Leave::Later => false,
                Leave::NowIfIdle => connection.was_idle(),
            };
            let seq = append(connection);
            if leaves || connection.origin.is_full(&tuning) {
                connection.flush()?;
            }
            Ok(Some((seq, connection.has_unsent())))
        })?;
        self.routes[pe].last = seq;
        if unsent && !std::mem::replace(&mut self.routes[pe].is_held, true) {
            self.held.push(pe);
        }
        Ok(seq)
    }

    fn activate(&mut self, pe: Pe) {
        if self.routes[pe].last == 0 {
            self.active.push(pe);
            // A number that no link reaches before the request has got its own.
            self.routes[pe].last = u64::MAX;
        }
    }

    /// Waits until a request is done.
    fn done(&mut self, pe: Pe, seq: u64) -> Result<(), Error> {
        self.until(pe, |connection, shared| {
            if connection.origin.acked() < seq {
                connection.origin.ask_for_ack(seq);
                if connection.has_unsent() {
                    connection.flush()?;
                }
                connection.receive(&shared.segments, &shared.buffers)?;
            }
            Ok((connection.origin.acked() >= seq).then_some(()))
        })
    }

    /// Puts in pieces that a frame may carry, and with the last one the update that signals it.
    ///
    /// # Safety
    /// The source is valid for reads until the put is complete here.
    unsafe fn put_and_signal(
        &mut self,
        pe: Pe,
        put: &Put,
        signal: Option<&AmoRequest>,
    ) -> Result<(), Error> {
        let Put { dest, source, completion } = *put;
        self.check(pe, dest, source.nbytes)?;
        let copy = source.nbytes <= self.shared().tuning.copy_up_to;
        let leave = match signal {
            _ if !copy => Leave::Now,
            Some(_) => Leave::of(completion),
            None => Leave::Later,
        };
        let how = (copy, self.in_parts && !copy);
        let (mut position, mut done) = (0, 0);
        while done < source.nbytes {
            let part = source.skip(done).first(room(dest.offset + done as u64));
            let at = RemoteAddr { offset: dest.offset + done as u64, ..dest };
            done += part.nbytes;
            let signal = signal.filter(|_| done == source.nbytes);
            self.issue(pe, leave, |Connection { origin, .. }| {
                // SAFETY: a part of the source, valid by contract.
                let seq = unsafe { origin.put(at, part, how) };
                position = origin.positions().0;
                signal.map_or(seq, |signal| origin.update(signal))
            })?;
        }
        match completion {
            Completion::Now if !copy => self.sent(pe, position),
            _ => Ok(()),
        }
    }

    /// Puts blocks in as few requests as they fit into, outside a session; returns false if each is
    /// to be a request.
    ///
    /// # Safety
    /// Every block is valid for reads.
    unsafe fn put_batches(&mut self, pe: Pe, blocks: &StridedBlocks) -> Result<bool, Error> {
        let (segment, nbytes) = (blocks.remote.segment, blocks.local.nbytes);
        let at_once = blocks_within(self.shared().tuning.batch, nbytes).min(blocks.n);
        if self.is_own(pe) || nbytes == 0 || !is_small(segment, nbytes) || at_once < 2 {
            return Ok(false);
        }
        self.check(pe, blocks.remote, blocks.remote_nbytes())?;
        for part in blocks.in_parts(at_once) {
            // SAFETY: valid by contract.
            let batch = unsafe { SmallOperation::PutStrided(part).put_batch() };
            self.issue(pe, Leave::Later, |Connection { origin, .. }| {
                // SAFETY: nothing is answered.
                unsafe { origin.batch(&batch, ReplyDestinations::default()) }
            })?;
        }
        Ok(true)
    }

    /// Asks every PE that owes an answer for it.
    fn ask(&mut self) -> Result<(), Error> {
        for i in 0..self.active.len() {
            let pe = self.active[i];
            let seq = self.routes[pe].last;
            self.with_link(pe, |connection, _| {
                if connection.origin.acked() >= seq {
                    return Ok(());
                }
                connection.origin.ask_for_ack(seq);
                connection.flush()
            })?;
        }
        Ok(())
    }

    /// Waits until the kernel has everything up to a position.
    fn sent(&mut self, pe: Pe, position: u64) -> Result<(), Error> {
        self.until(pe, |connection, shared| {
            if connection.origin.positions().1 < position {
                connection.flush()?;
                connection.receive(&shared.segments, &shared.buffers)?;
            }
            Ok((connection.origin.positions().1 >= position).then_some(()))
        })
    }

    /// Closes the links that refer to memory of this endpoint's callers, after an error.
    fn abandon(&mut self) {
        self.forget_batched();
        for pe in self.active.drain(..) {
            self.routes[pe].last = 0;
            self.progress.shared.abandon(pe);
        }
    }
}

impl Waiter for TcpEndpoint {
    fn state(&self) -> &ProgressState {
        &self.shared().state
    }

    fn poll(&mut self, _: bool, _: &mut Backoff) -> Result<bool, Error> {
        self.progress.poll()
    }

    fn sleep(&mut self, at_most: Duration) {
        self.shared().sleep(self.seen, at_most);
    }

    fn in_flight(&self) -> u64 {
        self.towards.map_or(0, |pe| self.shared().unacked(pe))
    }

    fn host(&self) -> &dyn Host {
        &*self.shared().host
    }

    fn awaited(&self) -> Vec<Pe> {
        self.towards.into_iter().collect()
    }
}

impl Endpoint for TcpEndpoint {
    unsafe fn put(&mut self, pe: Pe, put: Put) -> Result<(), Error> {
        if self.is_own(pe) {
            self.check(pe, put.dest, put.source.nbytes)?;
            // SAFETY: valid by contract.
            return unsafe { own::put(self.shared(), &put) };
        }
        // SAFETY: valid by contract.
        if self.session.is_some() && unsafe { self.batch_put(pe, &put) }? {
            return Ok(());
        }
        // SAFETY: valid until the put is complete here by contract: the call waits for that, or the
        // next quiet does.
        unsafe { self.put_and_signal(pe, &put, None) }
    }

    unsafe fn get(&mut self, pe: Pe, get: Get) -> Result<(), Error> {
        let Get { dest, source, completion } = get;
        self.check(pe, source, dest.nbytes)?;
        if self.is_own(pe) {
            // SAFETY: valid by contract.
            return unsafe { own::get(self.shared(), &get) };
        }
        // SAFETY: valid by contract.
        if self.session.is_some() && unsafe { self.batch_get(pe, &get) }? {
            return Ok(());
        }
        let is_long = dest.nbytes > self.shared().tuning.copy_up_to;
        let in_parts = self.in_parts && is_long;
        // The CPU stores the first bytes that come, which would end the process by a signal.
        if is_long && let Some(fault) = Fault::at_ends(LocalAccess::Write, dest) {
            self.abandon();
            return Err(self.shared().loss.of_memory(fault));
        }
        let leave = Leave::of(completion);
        let how = (!in_parts && self.shared().segments.holding(dest).is_some(), in_parts);
        let (mut seq, mut done) = (0, 0);
        while done < dest.nbytes {
            let part = dest.skip(done).first(room(source.offset + done as u64));
            let at = RemoteAddr { offset: source.offset + done as u64, ..source };
            // SAFETY: a part of the destination, valid until the get is complete by contract.
            let append = |link: &mut Connection| unsafe { link.origin.get(at, part, how) };
            seq = self.issue(pe, leave, append)?;
            done += part.nbytes;
        }
        match completion {
            Completion::Now if done > 0 => self.done(pe, seq),
            _ => Ok(()),
        }
    }

    unsafe fn amo(&mut self, pe: Pe, request: AmoRequest) -> Result<u64, Error> {
        self.check_word(pe, request.dest, request.width)?;
        if self.is_own(pe) {
            // SAFETY: valid by contract.
            return unsafe { own::amo(self.shared(), &request) };
        }
        // SAFETY: valid by contract.
        if self.session.is_some() && unsafe { self.batch_amo(pe, &request) }? {
            return Ok(0);
        }
        match request.old {
            OldValue::Ignored => {
                self.issue(pe, Leave::NowIfIdle, |link| link.origin.update(&request)).map(|_| 0)
            }
            OldValue::AtQuiet(to) => {
                // SAFETY: valid until the next quiet by contract.
                let append = |link: &mut Connection| unsafe {
                    link.origin.fetch(&request, to, request.width)
                };
                self.issue(pe, Leave::Later, append).map(|_| 0)
            }
            OldValue::Returned => {
                let mut old = 0u64;
                let to = (&raw mut old).cast();
                // SAFETY: a local that lives until the answer arrives or, on an error, the link is
                // closed.
                let append = |link: &mut Connection| unsafe {
                    link.origin.fetch(&request, to, AmoWidth::Eight)
                };
                let seq = self.issue(pe, Leave::Now, append)?;
                self.done(pe, seq)?;
                Ok(old)
            }
        }
    }

    unsafe fn put_signal(&mut self, pe: Pe, put: Put, signal: SignalUpdate) -> Result<(), Error> {
        let update = signal.amo();
        self.check_word(pe, update.dest, update.width)?;
        if self.is_own(pe) {
            // SAFETY: valid by contract.
            unsafe { self.put(pe, put) }?;
            // SAFETY: the old value is not returned.
            return unsafe { own::amo(self.shared(), &update) }.map(|_| ());
        }
        // SAFETY: valid by contract.
        if self.session.is_some() && unsafe { self.batch_put_signal(pe, &put, &signal) }? {
            return Ok(());
        }
        if put.source.nbytes == 0 {
            let leave = Leave::of(put.completion);
            return self.issue(pe, leave, |link| link.origin.update(&update)).map(|_| ());
        }
        // SAFETY: valid until the put is complete here by contract: the call waits for that, or the
        // next quiet does.
        unsafe { self.put_and_signal(pe, &put, Some(&update)) }
    }

    unsafe fn put_strided(&mut self, pe: Pe, blocks: StridedBlocks) -> Result<(), Error> {
        let are_batched = match self.session {
            // SAFETY: valid by contract.
            Some(_) => unsafe { self.batch_strided(pe, &blocks, SmallOperation::PutStrided) }?,
            // SAFETY: valid by contract.
            None => unsafe { self.put_batches(pe, &blocks) }?,
        };
        if are_batched {
            return Ok(());
        }
        for (dest, source) in blocks.each() {
            // SAFETY: a block, valid by contract.
            unsafe { self.put(pe, Put { dest, source, completion: Completion::Now }) }?;
        }
        Ok(())
    }

    unsafe fn get_strided_nbi(&mut self, pe: Pe, blocks: StridedBlocks) -> Result<(), Error> {
        let operation = SmallOperation::GetStrided;
        // SAFETY: valid by contract.
        if self.session.is_some() && unsafe { self.batch_strided(pe, &blocks, operation) }? {
            return Ok(());
        }
        for (source, dest) in blocks.each() {
            // SAFETY: a block, valid by contract.
            unsafe { self.get(pe, Get { dest, source, completion: Completion::AtQuiet }) }?;
        }
        Ok(())
    }

    fn session(&mut self, is_open: bool) -> Result<(), Error> {
        if is_open != self.session.is_some() {
            self.quiet()?;
            let new = || Arc::new(EndpointSession::new(self.routes.n_pes(), &self.shared().tuning));
            self.session = is_open.then(new);
        }
        Ok(())
    }

    fn fence(&mut self) -> Result<(), Error> {
        if self.session.is_some() {
            if self.uses_proxies() {
                return self.quiet();
            }
            self.send_open_batches(AckRequest::Omitted)?;
        }
        // A stream keeps its order; what was held back leaves.
        while let Some(pe) = self.held.pop() {
            self.routes[pe].is_held = false;
            self.with_link(pe, |connection, _| match connection.has_unsent() {
                true => connection.flush(),
                false => Ok(()),
            })?;
        }
        Ok(())
    }

    fn quiet(&mut self) -> Result<(), Error> {
        if self.session.is_some() {
            self.send_open_batches(AckRequest::Included)?;
        }
        // Ask all before waiting for one.
        if self.active.len() > 1 {
            self.ask()?;
        }
        while let Some(&pe) = self.active.last() {
            self.done(pe, self.routes[pe].last)?;
            self.routes[pe].last = 0;
            self.active.pop();
        }
        self.shared().loss.check()
    }

    fn is_quiet(&mut self) -> Result<bool, Error> {
        if self.session.is_some() && !self.try_send_open_batches()? {
            self.progress.poll().inspect_err(|_| self.abandon())?;
            return Ok(false);
        }
        self.ask()?;
        self.progress.poll().inspect_err(|_| self.abandon())?;
        while let Some(&pe) = self.active.last() {
            let seq = self.routes[pe].last;
            let is_done = self.with_link(pe, |connection, shared| {
                connection.receive(&shared.segments, &shared.buffers)?;
                Ok(connection.origin.acked() >= seq)
            })?;
            if !is_done {
                return Ok(false);
            }
            self.routes[pe].last = 0;
            self.active.pop();
        }
        self.shared().loss.check().map(|()| true)
    }

    fn in_flight(&mut self) -> Result<Option<Vec<(Pe, u64)>>, Error> {
        let mut in_flight = Vec::new();
        if !self.is_quiet()? {
            let unacked = |&pe: &Pe| (pe, self.shared().unacked(pe));
            in_flight.extend(self.active.iter().map(unacked).filter(|(_, n)| *n > 0));
            self.add_batched(&mut in_flight);
        }
        Ok(Some(in_flight))
    }

    fn pe_quiet(&mut self, pe: Pe) -> Result<(), Error> {
        if pe.index() >= self.routes.n_pes() {
            return Err(Error::Unreachable(pe));
        }
        if self.session.is_some() {
            if self.uses_proxies() {
                return self.quiet();
            }
            self.send_open_batch(pe, AckRequest::Included)?;
        }
        match self.routes[pe].last {
            0 => return self.shared().loss.check(),
            seq => self.done(pe, seq)?,
        }
        self.routes[pe].last = 0;
        self.active.retain(|&other| other != pe);
        Ok(())
    }
}

impl Drop for TcpEndpoint {
    fn drop(&mut self) {
        // After a loss there is nothing left to complete.
        let _ = self.quiet();
    }
}

/// Returns how many bytes from this offset of a segment go into one frame. The next frame begins at
/// a multiple of 8, so that no aligned word of the segment is divided between two.
fn room(offset: u64) -> usize {
    MAX_BODY - (offset % 8) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_divide_no_aligned_word() {
        for offset in 0..8 {
            let end = offset + room(offset) as u64;
            assert_eq!(end, MAX_BODY as u64, "from {offset}");
            assert_eq!((end % 8, room(end)), (0, MAX_BODY), "from {offset}");
        }
    }
}
