//! Puts and gets, and their completion.
#![allow(unsafe_code)]

use super::OfiEndpoint;
use crate::ep::{Remote, WriteEnd};
use crate::requests::How;
use rushmem_transport::kit::batch::MAX_NBYTES;
use rushmem_transport::kit::gather::SmallOperation;
use rushmem_transport::{Completion, Error, Get, LocalAccess, LocalBuf, Pe, Put, RemoteAddr};
use std::sync::atomic::Ordering;

impl OfiEndpoint {
    /// Starts a put; returns whether its source is free already. A caller that waits for that would
    /// wait for the target.
    ///
    /// # Safety
    /// The source is valid for reads until it is free: then, or when
    /// [`completed`](Self::completed) or the next quiet returns.
    #[inline(always)]
    pub(crate) unsafe fn start_put(
        &mut self,
        pe: Pe,
        put: &Put,
        end: WriteEnd,
    ) -> Result<bool, Error> {
        let &Put { dest, source, completion } = put;
        // SAFETY: the same contract.
        if self.gathers && unsafe { self.gather_put(pe, dest, source) }? {
            return Ok(true);
        }
        self.follow(pe)?;
        if source.nbytes == 0 {
            return Ok(true);
        }
        if pe == self.shared().me {
            // SAFETY: the source is valid by contract.
            let is_done = unsafe { self.shared().segments.write_from(dest, source) };
            if is_done {
                self.shared().host.arrived();
                return Ok(true);
            }
        }
        self.touch(pe);
        // Only the result of the cold path passes through memory.
        match self.shared().known_remote(pe, dest, source.nbytes) {
            // SAFETY: the same contract.
            Some(remote) => unsafe { self.start_put_to(remote, source, completion, end) },
            // SAFETY: the same contract.
            None => unsafe { self.start_put_in_parts(pe, put, end) },
        }
    }

    /// Works as [`start_put`](Self::start_put), to what one key covers.
    ///
    /// # Safety
    /// The same.
    #[inline(always)]
    unsafe fn start_put_to(
        &mut self,
        remote: Remote,
        source: LocalBuf,
        completion: Completion,
        end: WriteEnd,
    ) -> Result<bool, Error> {
        if source.nbytes <= self.shared().copy_up_to(completion) {
            // SAFETY: valid during this call.
            self.start(remote.pe, false, |ep| unsafe { ep.write_copy(&remote, source) })?;
            return Ok(true);
        }
        // SAFETY: the same contract.
        unsafe { self.start_long_put(remote, source, end) }.map(|()| false)
    }

    /// Works as [`start_put`](Self::start_put), where the key must be found, or several cover the
    /// range.
    ///
    /// # Safety
    /// The same.
    #[cold]
    #[inline(never)]
    unsafe fn start_put_in_parts(
        &mut self,
        pe: Pe,
        put: &Put,
        end: WriteEnd,
    ) -> Result<bool, Error> {
        let &Put { dest, mut source, completion } = put;
        let (mut at, mut is_free) = (dest, true);
        while source.nbytes > 0 {
            let (remote, nbytes) = self.part(pe, at, source.nbytes)?;
            // SAFETY: a part of what is valid by contract.
            is_free &= unsafe { self.start_put_to(remote, source.first(nbytes), completion, end) }?;
            at.offset += nbytes as u64;
            source = source.skip(nbytes);
        }
        Ok(is_free)
    }

    /// Gathers a put if it is small; whether it did. Otherwise it becomes a write of the fabric's.
    /// So does one that follows a fence after such a write, as a flag that announces data: writes
    /// have an order, and the next one need not wait until the target has carried out a request.
    ///
    /// # Safety
    /// The source is valid for reads.
    #[inline(never)]
    unsafe fn gather_put(
        &mut self,
        pe: Pe,
        dest: RemoteAddr,
        source: LocalBuf,
    ) -> Result<bool, Error> {
        if source.nbytes == 0 || pe == self.shared().me {
            return Ok(false);
        }
        self.shared().check(pe, dest, source.nbytes)?;
        let written = self.written.get(pe).copied().unwrap_or(0);
        let is_small = source.nbytes <= MAX_NBYTES;
        if is_small && (written == 0 || written == self.n_fences) {
            self.follow_writes(pe)?;
            let put = SmallOperation::Put(dest, source);
            // SAFETY: the same contract.
            if unsafe { self.gather(pe, &[dest.segment], &[put]) }? {
                if written != 0 {
                    self.written[pe] = 0;
                }
                return Ok(true);
            }
        }
        self.written[pe] = self.n_fences;
        if is_small {
            self.small_has_left();
        }
        Ok(false)
    }

    /// Starts a put that is not copied.
    ///
    /// # Safety
    /// As [`start_put`](Self::start_put).
    #[inline(never)]
    unsafe fn start_long_put(
        &mut self,
        remote: Remote,
        source: LocalBuf,
        end: WriteEnd,
    ) -> Result<(), Error> {
        let checked = self.shared().check_memory(LocalAccess::Read, source);
        self.or_close(checked)?;
        let known = self.shared().descriptor_of(source);
        // One call of libfabric may take long: a provider over sockets moves a megabyte in one. The
        // service thread leaves the CPU alone meanwhile, for a few of its sleeps at most.
        self.shared().state.enter_wait();
        let (mut done, mut started) = (0, Ok(()));
        while done < source.nbytes && started.is_ok() {
            let part = source.skip(done).first(self.shared().tuning.max_bytes);
            let to = remote.skip(done);
            // SAFETY: valid until it completes, by contract.
            started = self.start(remote.pe, false, |ep| unsafe { ep.write(&to, part, known, end) });
            done += part.nbytes;
        }
        self.shared().state.leave_wait();
        started
    }

    /// A PE is written to.
    #[inline(always)]
    fn touch(&mut self, pe: Pe) {
        if self.flushes {
            self.touch_to_flush(pe);
        }
    }

    #[inline(never)]
    fn touch_to_flush(&mut self, pe: Pe) {
        if !self.unflushed.contains(&pe.0) {
            self.unflushed.push(pe.0);
            self.ep.undelivered.store(true, Ordering::Relaxed);
        }
    }

    /// Starts a get; returns whether its bytes have come already.
    ///
    /// # Safety
    /// The destination is valid for writes until they have: then, or when
    /// [`completed`](Self::completed) or the next quiet returns.
    pub(crate) unsafe fn start_get(&mut self, pe: Pe, get: &Get) -> Result<bool, Error> {
        let &Get { dest, source, completion } = get;
        if dest.nbytes == 0 {
            return Ok(true);
        }
        // SAFETY: the destination is valid by contract.
        if pe == self.shared().me && unsafe { self.shared().segments.read_into(source, dest) } {
            return Ok(true);
        }
        let checked = self.shared().check_memory(LocalAccess::Write, dest);
        self.or_close(checked)?;
        // SAFETY: the same contract.
        if self.gathers && unsafe { self.gather_get(pe, get) }? {
            return Ok(false);
        }
        let known = self.shared().descriptor_of(dest);
        let (mut at, mut rest) = (source, dest);
        while rest.nbytes > 0 {
            let part = rest.first(self.shared().tuning.max_bytes);
            let (from, nbytes) = match self.shared().known_remote(pe, at, part.nbytes) {
                Some(remote) => (remote, part.nbytes),
                None => self.part(pe, at, part.nbytes)?,
            };
            // SAFETY: a part of what is valid by contract.
            self.start(pe.0, completion == Completion::Now, |ep| unsafe {
                ep.read(&from, part.first(nbytes), known)
            })?;
            at.offset += nbytes as u64;
            rest = rest.skip(nbytes);
        }
        Ok(false)
    }

    /// Gathers a get if it is small and no thread waits for it; whether it did. Before one for
    /// which a thread waits, what is gathered leaves.
    ///
    /// # Safety
    /// As [`start_get`](Self::start_get).
    #[inline(never)]
    unsafe fn gather_get(&mut self, pe: Pe, get: &Get) -> Result<bool, Error> {
        let &Get { dest, source, completion } = get;
        if completion == Completion::Now {
            self.send_gathered(pe, How::default())?;
        } else if dest.nbytes <= MAX_NBYTES && pe != self.shared().me {
            self.shared().check(pe, source, dest.nbytes)?;
            let small = SmallOperation::Get(source, dest);
            // SAFETY: valid until the answers are stored by contract, or forgotten after a loss.
            if unsafe { self.gather(pe, &[source.segment], &[small]) }? {
                return Ok(true);
            }
            self.small_has_left();
        }
        Ok(false)
    }

    /// Waits until nothing of the fabric's is in flight towards a PE.
    #[inline(never)]
    pub(crate) fn completed(&mut self, pe: Pe) -> Result<(), Error> {
        self.until(Some(pe.0), |ep| Ok((ep.pending(pe.0) == 0).then_some(())))
    }

    /// Waits until nothing of the fabric's is in flight.
    pub(crate) fn all_completed(&mut self) -> Result<(), Error> {
        self.until(None, |ep| Ok((ep.in_flight() == 0).then_some(())))
    }

    /// Waits until what was written to a PE is in its memory.
    pub(crate) fn delivered(&mut self, pe: Pe) -> Result<(), Error> {
        self.completed(pe)?;
        self.flush(Some(pe))
    }

    /// After completions that do not cover the target's memory: read from it, which comes after
    /// what was written before.
    pub(crate) fn flush(&mut self, only: Option<Pe>) -> Result<(), Error> {
        let chosen = |pe: &u32| only.is_none_or(|only| only.0 == *pe);
        let touched: Vec<u32> = self.unflushed.iter().copied().filter(chosen).collect();
        for pe in touched {
            if let Some(from) = self.shared().some_byte(pe) {
                self.start(pe, true, |ep| ep.read_and_forget(&from))?;
            }
        }
        self.unflushed.retain(|pe| !chosen(pe));
        match only {
            Some(pe) => self.completed(pe),
            None => self.all_completed(),
        }?;
        self.ep.undelivered.store(!self.unflushed.is_empty(), Ordering::Relaxed);
        Ok(())
    }
}
