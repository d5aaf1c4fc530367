//! The verbs of one context.
//!
//! All endpoints of a PE share its links; an endpoint remembers the number of its last request to each
//! PE, so that its quiet waits for its own operations alone.
#![allow(unsafe_code)]

use crate::inbound::End;
use crate::outbound::Outbound;
use crate::patience::Patience;
use crate::proto::MAX_BODY;
use crate::shared::{Contact, Link, Shared, lock};
use rushmem_transport::{
    AmoRequest, AmoWidth, Completion, Endpoint, Error, Get, LocalBuf, OldValue, Pe, Put,
    RemoteAddr, Signal,
};
use std::sync::Arc;

/// Looks at a link before peers get their turn: what is waited for is likely to come there, and each look
/// elsewhere makes it late.
const LOOKS: usize = 4;

/// One context's endpoint.
pub(crate) struct TcpEndpoint {
    shared: Arc<Shared>,
    /// Per PE, the number of the last request that is not known to be done; 0 when there is none.
    last: Vec<u64>,
    /// The PEs of which it is not 0.
    touched: Vec<u32>,
    /// Those of them for which something may be held back since the last fence.
    held: Vec<u32>,
    /// Per PE, whether it is one of those.
    is_held: Vec<bool>,
}

/// When a request leaves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leave {
    /// With all that waits, now.
    Now,
    /// Together with others.
    Later,
}

impl Leave {
    /// A request whose caller waits for it leaves now.
    fn of(completion: Completion) -> Leave {
        match completion {
            Completion::Now => Leave::Now,
            Completion::AtQuiet => Leave::Later,
        }
    }
}

impl TcpEndpoint {
    pub(crate) fn new(shared: Arc<Shared>) -> TcpEndpoint {
        let last = vec![0; shared.peers.len()];
        let is_held = vec![false; last.len()];
        TcpEndpoint { shared, last, touched: Vec::new(), held: Vec::new(), is_held }
    }

    fn contact(&self, pe: Pe) -> Result<&Contact, Error> {
        let peer = self.shared.peers.get(pe.index());
        peer.and_then(|peer| peer.contact.get()).ok_or(Error::Unreachable(pe))
    }

    /// Refuse what the peer would take for a lie.
    fn check(&self, pe: Pe, at: RemoteAddr, nbytes: usize) -> Result<(), Error> {
        let size = self.contact(pe)?.sizes[at.segment as usize];
        match at.offset.checked_add(nbytes as u64) {
            Some(end) if end <= size => Ok(()),
            _ => Err(Error::Invalid(format!(
                "{nbytes} bytes at offset {} reach beyond the {size} bytes of segment {:?} of PE {pe}",
                at.offset, at.segment
            ))),
        }
    }

    fn check_word(&self, pe: Pe, at: RemoteAddr, width: AmoWidth) -> Result<(), Error> {
        self.check(pe, at, width.nbytes())?;
        match at.offset.is_multiple_of(width.nbytes() as u64) {
            true => Ok(()),
            false => Err(Error::Invalid(format!(
                "offset {} of an atomic operation at PE {pe} is not a multiple of {}",
                at.offset,
                width.nbytes()
            ))),
        }
    }

    /// Do `step` on the link to `pe` until it yields something; peers are served meanwhile.
    fn until<T>(
        &mut self,
        pe: Pe,
        mut step: impl FnMut(&mut Outbound) -> Result<Option<T>, End>,
    ) -> Result<T, Error> {
        let mut patience = Patience::default();
        // In a crowd whoever shall answer may need this CPU.
        let looks = if self.shared.oversubscribed { 1 } else { LOOKS };
        loop {
            let news = self.shared.news();
            let mut stepped = Ok(None);
            for _ in 0..looks {
                stepped = self.shared.with_link(pe.0, &mut step);
                if !matches!(stepped, Ok(None)) {
                    break;
                }
            }
            let done = match stepped {
                Ok(Some(done)) => {
                    patience.end(&self.shared);
                    return Ok(done);
                }
                Ok(None) => self.shared.poll(),
                Err(error) => Err(error),
            };
            match done {
                Ok(true) => patience.renew(),
                Ok(false) => patience.pause(&self.shared, news),
                Err(error) => {
                    self.abandon();
                    return Err(error);
                }
            }
        }
    }

    /// Append a request as soon as there is room; returns its number.
    fn issue(
        &mut self,
        pe: Pe,
        leave: Leave,
        mut append: impl FnMut(&mut Outbound) -> u64,
    ) -> Result<u64, Error> {
        self.touch(pe);
        let tuning = self.shared.tuning;
        let (seq, unsent) = self.until(pe, |out| {
            if !out.has_room(&tuning) {
                out.flush()?;
                out.receive()?;
                if !out.has_room(&tuning) {
                    return Ok(None);
                }
            }
            let seq = append(out);
            if leave == Leave::Now || out.is_full(&tuning) {
                out.flush()?;
            }
            Ok(Some((seq, out.has_unsent())))
        })?;
        self.last[pe.index()] = seq;
        if unsent && !std::mem::replace(&mut self.is_held[pe.index()], true) {
            self.held.push(pe.0);
        }
        Ok(seq)
    }

    fn touch(&mut self, pe: Pe) {
        if self.last[pe.index()] == 0 {
            self.touched.push(pe.0);
            // A number that no link reaches before the request has got its own.
            self.last[pe.index()] = u64::MAX;
        }
    }

    /// Wait until a request is done.
    fn done(&mut self, pe: Pe, seq: u64) -> Result<(), Error> {
        self.until(pe, |out| {
            if out.acked() < seq {
                out.ask_for_ack(seq);
                if out.has_unsent() {
                    out.flush()?;
                }
                out.receive()?;
            }
            Ok((out.acked() >= seq).then_some(()))
        })
    }

    /// Start a put in pieces that a frame may carry; returns the stream's position after it.
    ///
    /// # Safety
    /// The source is valid for reads until everything up to the position is sent.
    unsafe fn start_put(
        &mut self,
        pe: Pe,
        dest: RemoteAddr,
        source: LocalBuf,
    ) -> Result<u64, Error> {
        self.check(pe, dest, source.nbytes)?;
        let copy = source.nbytes <= self.shared.tuning.copy_up_to;
        let leave = if copy { Leave::Later } else { Leave::Now };
        let (mut position, mut done) = (0, 0);
        while done < source.nbytes {
            let part = source.skip(done).first(MAX_BODY);
            let at = RemoteAddr { offset: dest.offset + done as u64, ..dest };
            self.issue(pe, leave, |out| {
                // SAFETY: a part of the source, valid by contract.
                let seq = unsafe { out.put(at, part, copy) };
                position = out.positions().0;
                seq
            })?;
            done += part.nbytes;
        }
        Ok(if copy { 0 } else { position })
    }

    /// Ask every PE that owes an answer for it.
    fn ask(&mut self) -> Result<(), Error> {
        for i in 0..self.touched.len() {
            let pe = self.touched[i];
            let seq = self.last[pe as usize];
            let asked = self.shared.with_link(pe, |out| {
                if out.acked() >= seq {
                    return Ok(());
                }
                out.ask_for_ack(seq);
                out.flush()
            });
            if let Err(error) = asked {
                self.abandon();
                return Err(error);
            }
        }
        Ok(())
    }

    /// Wait until the kernel has everything up to a position.
    fn sent(&mut self, pe: Pe, position: u64) -> Result<(), Error> {
        if position == 0 {
            return Ok(());
        }
        self.until(pe, |out| {
            if out.positions().1 < position {
                out.flush()?;
                out.receive()?;
            }
            Ok((out.positions().1 >= position).then_some(()))
        })
    }

    /// After an error: use the links that know this endpoint's buffers no more, so that nothing touches
    /// them.
    fn abandon(&mut self) {
        for pe in self.touched.drain(..) {
            self.last[pe as usize] = 0;
            let mut link = lock(&self.shared.peers[pe as usize].link);
            let why = "it was given up after another loss".to_owned();
            *link = match std::mem::replace(&mut *link, Link::Idle) {
                Link::Open(out) => {
                    self.shared.unwatch(&out.socket);
                    Link::Closed { why, _unused: Some(out) }
                }
                other => other,
            };
        }
    }
}

impl Endpoint for TcpEndpoint {
    unsafe fn put(&mut self, pe: Pe, put: Put) -> Result<(), Error> {
        // SAFETY: valid until the put is complete here by contract: the call waits for that, or the next quiet does.
        let position = unsafe { self.start_put(pe, put.dest, put.source) }?;
        match put.completion {
            Completion::Now => self.sent(pe, position),
            Completion::AtQuiet => Ok(()),
        }
    }

    unsafe fn get(&mut self, pe: Pe, get: Get) -> Result<(), Error> {
        let Get { dest, source, completion } = get;
        self.check(pe, source, dest.nbytes)?;
        let leave = Leave::of(completion);
        let (mut seq, mut done) = (0, 0);
        while done < dest.nbytes {
            let part = dest.skip(done).first(MAX_BODY);
            let at = RemoteAddr { offset: source.offset + done as u64, ..source };
            // SAFETY: a part of the destination, valid until the get is complete by contract.
            seq = self.issue(pe, leave, |out| unsafe { out.get(at, part) })?;
            done += part.nbytes;
        }
        match completion {
            Completion::Now if done > 0 => self.done(pe, seq),
            _ => Ok(()),
        }
    }

    unsafe fn amo(&mut self, pe: Pe, request: AmoRequest) -> Result<u64, Error> {
        self.check_word(pe, request.dest, request.width)?;
        match request.old {
            OldValue::Ignored => self.issue(pe, Leave::Now, |out| out.update(&request)).map(|_| 0),
            OldValue::AtQuiet(to) => {
                // SAFETY: valid until the next quiet by contract.
                let append = |out: &mut Outbound| unsafe { out.fetch(&request, to, request.width) };
                self.issue(pe, Leave::Later, append).map(|_| 0)
            }
            OldValue::Returned => {
                let mut old = 0u64;
                let to = (&raw mut old).cast();
                // SAFETY: a local that lives until the answer has come or, on an error, the link is closed.
                let append =
                    |out: &mut Outbound| unsafe { out.fetch(&request, to, AmoWidth::Eight) };
                let seq = self.issue(pe, Leave::Now, append)?;
                self.done(pe, seq)?;
                Ok(old)
            }
        }
    }

    unsafe fn put_signal(&mut self, pe: Pe, put: Put, signal: Signal) -> Result<(), Error> {
        let update = signal.amo();
        self.check_word(pe, update.dest, update.width)?;
        // SAFETY: as for `put`.
        let position = unsafe { self.start_put(pe, put.dest, put.source) }?;
        self.issue(pe, Leave::of(put.completion), |out| out.update(&update))?;
        match put.completion {
            Completion::Now => self.sent(pe, position),
            Completion::AtQuiet => Ok(()),
        }
    }

    fn fence(&mut self) -> Result<(), Error> {
        // A stream keeps its order; what was held back leaves.
        while let Some(pe) = self.held.pop() {
            self.is_held[pe as usize] = false;
            let sent = self.shared.with_link(pe, |out| match out.has_unsent() {
                true => out.flush(),
                false => Ok(()),
            });
            if let Err(error) = sent {
                self.abandon();
                return Err(error);
            }
        }
        Ok(())
    }

    fn quiet(&mut self) -> Result<(), Error> {
        // Ask all before waiting for one.
        if self.touched.len() > 1 {
            self.ask()?;
        }
        while let Some(&pe) = self.touched.last() {
            self.done(Pe(pe), self.last[pe as usize])?;
            self.last[pe as usize] = 0;
            self.touched.pop();
        }
        self.shared.check()
    }

    fn is_quiet(&mut self) -> Result<bool, Error> {
        self.ask()?;
        self.shared.poll()?;
        while let Some(&pe) = self.touched.last() {
            let seq = self.last[pe as usize];
            match self.shared.with_link(pe, |out| {
                out.receive()?;
                Ok(out.acked() >= seq)
            }) {
                Ok(true) => {}
                Ok(false) => return Ok(false),
                Err(error) => {
                    self.abandon();
                    return Err(error);
                }
            }
            self.last[pe as usize] = 0;
            self.touched.pop();
        }
        self.shared.check().map(|()| true)
    }

    fn pe_quiet(&mut self, pe: Pe) -> Result<(), Error> {
        match self.last.get(pe.index()) {
            None => return Err(Error::Unreachable(pe)),
            Some(0) => return self.shared.check(),
            Some(&seq) => self.done(pe, seq)?,
        }
        self.last[pe.index()] = 0;
        self.touched.retain(|&other| other != pe.0);
        Ok(())
    }
}

impl Drop for TcpEndpoint {
    fn drop(&mut self) {
        // After a loss there is nothing left to complete.
        let _ = self.quiet();
    }
}
