//! What all endpoints and the service thread of a PE share: peers, eps, and who polls.
//!
//! Locks: the service is tried by whoever polls, and waited for only to register memory and to open an endpoint; a
//! ep is waited for by its endpoint and tried by the service thread. Nobody waits for a lock while holding another.
#![allow(unsafe_code)]

use crate::contact::Area;
use crate::ep::{Failure, FiEndpoint, Remote};
use crate::fabric::{Cq, Fabric};
use crate::fid::Fid;
use crate::native::Native;
use crate::replies::Replies;
use crate::service::{Served, Service};
use crate::settings::Tuning;
use crate::unconfirmed;
use libfabric_sys as fi;
use rushmem_transport::LocalBuf;
use rushmem_transport::kit::amos::Amos;
use rushmem_transport::{AmoWidth, Error, Host, Pe, RemoteAddr, Segment};
use rustix::event::Timespec;
use rustix::time::{Itimerspec, TimerfdTimerFlags, timerfd_settime};
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, TryLockError};
use std::time::Duration;

/// What an endpoint has in flight is looked after within about this time, if nobody polls.
pub(crate) const UNATTENDED: Duration = Duration::from_micros(50);

/// How to reach a PE and what it lets others use.
pub(crate) struct Contact {
    pub(crate) at: fi::fi_addr_t,
    pub(crate) host: String,
    pub(crate) areas: [Area; Segment::COUNT],
    /// Where its service listens, if that is a socket.
    pub(crate) socket: Option<SocketAddr>,
}

/// A segment of this PE.
#[derive(Clone, Copy)]
pub(crate) struct Own {
    pub(crate) range: LocalBuf,
    /// Its descriptor, as a number.
    pub(crate) desc: usize,
}

// SAFETY: addresses; the memory is valid as long as the transport lives.
unsafe impl Sync for Own {}

/// An ep, and what others than its user see of it.
pub(crate) struct Cell {
    pub(crate) number: u32,
    /// `None` once it was given up.
    pub(crate) ep: Mutex<Option<FiEndpoint>>,
    pub(crate) replies: Replies,
    /// Atomic operations that were asked for, all in all.
    pub(crate) asked: AtomicU32,
    /// Something is in flight that needs polling.
    pub(crate) busy: AtomicBool,
}

/// One PE's share in the fabric. Fields are dropped in this order: registrations and eps, then the
/// service, and the fabric last.
pub(crate) struct Shared {
    pub(crate) segments: Mutex<Vec<Fid<fi::fid_mr>>>,
    /// Endpoints of libfabric that no context has.
    pub(crate) spare: Mutex<Vec<Arc<Cell>>>,
    /// All eps, by their number.
    pub(crate) cells: RwLock<Vec<Arc<Cell>>>,
    pub(crate) service: Mutex<Service>,
    /// The service's queue, to sleep on.
    pub(crate) cq: Arc<Cq>,
    pub(crate) fabric: Arc<Fabric>,
    pub(crate) me: u32,
    pub(crate) own_host: String,
    /// Where the own service listens, if that is a socket.
    pub(crate) own_socket: Option<SocketAddr>,
    /// In every message of this job.
    pub(crate) tag: u64,
    pub(crate) amos: Amos,
    /// Which of its own the fabric has, where it carries them out.
    pub(crate) native: Native,
    pub(crate) oversubscribed: bool,
    pub(crate) tuning: Tuning,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) own: [OnceLock<Own>; Segment::COUNT],
    pub(crate) peers: Box<[OnceLock<Contact>]>,
    /// Wakes the service thread.
    pub(crate) timer: OwnedFd,
    /// Counts the looks of threads that wait, at their eps as at the service: as long as it moves, the service
    /// thread need not look.
    pub(crate) looks: AtomicU64,
    /// Whoever polled so far sleeps elsewhere.
    pub(crate) handed_over: AtomicBool,
    /// The service thread will look soon by itself.
    pub(crate) attended: AtomicBool,
    pub(crate) closing: AtomicBool,
    pub(crate) loss: OnceLock<Error>,
}

/// A lock whose holder panicked is as good as any: the job is ending.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The lock, if it is free.
pub(crate) fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

impl Shared {
    /// The error that ended everything, if one did.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.loss.get() {
            None => Ok(()),
            Some(error) => Err(error.clone()),
        }
    }

    /// Something failed: from now on everything does. Returns the first loss.
    pub(crate) fn lose(&self, failure: &Failure) -> Error {
        let (me, own, why) = (self.me, &self.own_host, &failure.why);
        let provider = &self.fabric.facts.provider;
        let text = match failure.pe {
            Some(pe) => {
                let contact = self.peers.get(pe as usize).and_then(OnceLock::get);
                let host = contact.map_or("an unknown host", |contact| contact.host.as_str());
                format!(
                    "the way from PE {me} on {own} to PE {pe} on {host} broke: \
                     libfabric ({provider}) says {why}"
                )
            }
            None => {
                format!("PE {me} on {own} cannot be reached: libfabric ({provider}) says {why}")
            }
        };
        self.end(Error::Lost(Pe(failure.pe.unwrap_or(me)), text))
    }

    /// This PE cannot go on: from now on everything fails.
    pub(crate) fn give_up(&self, why: &str) {
        let (me, own) = (self.me, &self.own_host);
        let text = format!("PE {me} on {own} cannot use its network: {why}");
        self.end(Error::Lost(Pe(me), text));
    }

    fn end(&self, error: Error) -> Error {
        let mut first = false;
        let error = self.loss.get_or_init(|| {
            first = true;
            error
        });
        if first && !self.closing.load(Ordering::Acquire) {
            self.host.lost(error);
        }
        error.clone()
    }

    pub(crate) fn contact(&self, pe: Pe) -> Result<&Contact, Error> {
        let contact = self.peers.get(pe.index()).and_then(OnceLock::get);
        contact.ok_or(Error::Unreachable(pe))
    }

    /// Whether a PE of this job was connected.
    pub(crate) fn is_connected(&self, pe: Pe) -> Result<bool, Error> {
        let contact = self.peers.get(pe.index()).ok_or(Error::Unreachable(pe))?;
        Ok(contact.get().is_some())
    }

    /// Puts to one PE, and atomic operations after them, arrive in order.
    pub(crate) fn keeps_order(&self) -> bool {
        self.fabric.facts.ordered && self.amos == Amos::Software
    }

    /// A PE has been silent for long: an error when its process has ended.
    pub(crate) fn confirm(&self, pe: u32) -> Result<(), Failure> {
        let contact = self.peers.get(pe as usize).and_then(OnceLock::get);
        let (Some(own), Some(there)) = (self.own_socket, contact.and_then(|c| c.socket)) else {
            return Ok(());
        };
        // The own one shows whether the provider's names are such addresses.
        if unconfirmed::listens(there) == Some(false) && unconfirmed::listens(own) == Some(true) {
            let why = format!("nothing, but nobody listens at {there} any more");
            return Err(Failure { pe: Some(pe), why });
        }
        Ok(())
    }

    /// So many bytes at an address of a peer, as the fabric has them.
    ///
    /// # Errors
    /// When they are not in the peer's segment.
    pub(crate) fn remote(&self, pe: Pe, at: RemoteAddr, nbytes: usize) -> Result<Remote, Error> {
        let contact = self.contact(pe)?;
        let area = contact.areas[at.segment as usize];
        match at.offset.checked_add(nbytes as u64) {
            Some(end) if end <= area.nbytes => Ok(Remote {
                pe: pe.0,
                at: contact.at,
                address: area.base.wrapping_add(at.offset),
                key: area.key,
            }),
            _ => Err(Error::Invalid(format!(
                "{nbytes} bytes at offset {} reach beyond the {} bytes of segment {:?} of PE {pe}",
                at.offset, area.nbytes, at.segment
            ))),
        }
    }

    /// Some byte of a peer's, to be read for the sake of reading.
    pub(crate) fn some_byte(&self, pe: u32) -> Option<Remote> {
        let contact = self.contact(Pe(pe)).ok()?;
        let area = contact.areas.iter().find(|area| area.nbytes > 0)?;
        Some(Remote { pe, at: contact.at, address: area.base, key: area.key })
    }

    /// So many bytes of this PE's own segment, if it has them.
    pub(crate) fn local(&self, at: RemoteAddr, nbytes: usize) -> Option<LocalBuf> {
        let own = self.own[at.segment as usize].get()?;
        let end = at.offset.checked_add(nbytes as u64)?;
        (end <= own.range.nbytes as u64).then(|| own.range.skip(at.offset as usize).first(nbytes))
    }

    /// The descriptor of the own segment that memory lies in.
    pub(crate) fn known(&self, range: LocalBuf) -> Option<usize> {
        let within = |own: &&Own| {
            let offset = range.base.addr().checked_sub(own.range.base.addr());
            offset
                .and_then(|offset| offset.checked_add(range.nbytes))
                .is_some_and(|end| end <= own.range.nbytes)
        };
        self.own.iter().filter_map(OnceLock::get).find(within).map(|own| own.desc)
    }

    pub(crate) fn cell(&self, number: u32) -> Option<Arc<Cell>> {
        let cells = self.cells.read().unwrap_or_else(PoisonError::into_inner);
        cells.get(number as usize).cloned()
    }

    /// Let everything work, as far as nobody else does; returns whether there was work for peers.
    ///
    /// # Errors
    /// When a PE was lost.
    pub(crate) fn poll(&self) -> Result<bool, Error> {
        self.looked();
        self.poll_eps();
        self.poll_service()
    }

    /// A thread that waits looks at what it waits for, and now and then at the service.
    pub(crate) fn looked(&self) {
        self.looks.fetch_add(1, Ordering::Relaxed);
    }

    /// Serve peers, if nobody else does; returns whether there was work.
    ///
    /// # Errors
    /// When a PE was lost, now or before.
    pub(crate) fn poll_service(&self) -> Result<bool, Error> {
        if self.handed_over.load(Ordering::Relaxed) {
            self.handed_over.store(false, Ordering::Relaxed);
        }
        let worked = self.serve()?;
        self.check().map(|()| worked)
    }

    /// As [`poll_service`](Shared::poll_service), by the service thread.
    pub(crate) fn serve(&self) -> Result<bool, Error> {
        let Some(mut service) = try_lock(&self.service) else { return Ok(false) };
        let worked = service.poll(self);
        drop(service);
        // What the provider itself wrote meanwhile nobody tells of.
        self.host.arrived();
        worked.map_err(|failure| self.lose(&failure))
    }

    /// Let the eps work on which something is in flight; returns whether there are any.
    pub(crate) fn poll_eps(&self) -> bool {
        let cells = self.cells.read().unwrap_or_else(PoisonError::into_inner);
        let mut busy = false;
        for cell in cells.iter().filter(|cell| cell.busy.load(Ordering::Relaxed)) {
            busy = true;
            let Some(mut ep) = try_lock(&cell.ep) else { continue };
            match ep.as_mut().map(|ep| ep.poll(|_| ()).map(|_| ep.in_flight())) {
                Some(Ok(in_flight)) => {
                    // Whoever begins something has the ep, and notes it then.
                    let all_here = cell.replies.came() == cell.asked.load(Ordering::Relaxed);
                    if in_flight == 0 && all_here {
                        cell.busy.store(false, Ordering::Relaxed);
                    }
                }
                Some(Err(failure)) => {
                    // Its endpoint learns of it at its next call.
                    *ep = None;
                    cell.busy.store(false, Ordering::Relaxed);
                    drop(ep);
                    self.lose(&failure);
                }
                None => cell.busy.store(false, Ordering::Relaxed),
            }
        }
        busy
    }

    /// Sleep until something may have arrived, but not longer than `at_most`; whether it may.
    pub(crate) fn sleep(&self, at_most: Duration) -> bool {
        self.fabric.sleep(&self.cq, at_most, None)
    }

    /// As [`sleep`](Shared::sleep), or until the timer rings.
    pub(crate) fn sleep_or_be_woken(&self, at_most: Duration) -> bool {
        self.fabric.sleep(&self.cq, at_most, Some(self.timer.as_fd()))
    }

    /// Something is in flight: the service thread looks after it if nobody else does.
    pub(crate) fn note(&self, cell: &Cell) {
        if cell.busy.load(Ordering::Relaxed) {
            return;
        }
        cell.busy.store(true, Ordering::Relaxed);
        // Either this thread sees that nobody attends, or the service thread sees the note.
        fence(Ordering::SeqCst);
        if !self.attended.load(Ordering::Relaxed) {
            self.attended.store(true, Ordering::Relaxed);
            self.ring_after(UNATTENDED);
        }
    }

    /// Wake the service thread after so long.
    pub(crate) fn ring_after(&self, time: Duration) {
        let at = Itimerspec { it_interval: timespec(Duration::ZERO), it_value: timespec(time) };
        // It fails for times that are no times.
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &at);
    }

    /// The timer may have rung.
    pub(crate) fn rang(&self) {
        // It is empty when it has not.
        let _ = rustix::io::read(&self.timer, &mut [0; 8]);
    }
}

/// A duration for the kernel.
pub(crate) fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) }
}

impl Served for Shared {
    fn tag(&self) -> u64 {
        self.tag
    }

    fn word(&self, at: RemoteAddr, width: AmoWidth) -> Option<*mut u8> {
        let word = self.local(at, width.nbytes())?.base;
        word.addr().is_multiple_of(width.nbytes()).then_some(word)
    }

    fn answered(&self, ep: u32, slot: u32, value: u64) {
        if let Some(cell) = self.cell(ep) {
            cell.replies.put(slot, value);
        }
    }

    fn n_pes(&self) -> usize {
        self.peers.len()
    }

    fn address(&self, pe: Pe) -> Option<fi::fi_addr_t> {
        self.contact(pe).ok().map(|contact| contact.at)
    }
}
