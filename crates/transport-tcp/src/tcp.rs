//! The transport of one PE: opening, registering, connecting, leaving.
#![allow(unsafe_code)]

use crate::endpoint::TcpEndpoint;
use crate::interface;
use crate::proto::Address;
use crate::service::Service;
use crate::shared::{Contact, Link, Shared, Start, lock};
use crate::thread;
use crate::tuning::{DESCRIPTORS, Tuning};
use rushmem_transport::{Caps, Endpoint, Error, Key, Open, Pe, Segment, Transport};
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
use std::cell::Cell;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

thread_local! {
    /// How much news there was when this thread last waited.
    static SEEN: Cell<u64> = const { Cell::new(0) };
}

/// This PE's sockets.
struct Tcp {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Open the transport with limits other than the usual ones.
///
/// # Errors
/// [`Error::Unavailable`] when no address can be listened on, or the kernel refuses.
pub fn open(open: &Open, tuning: Tuning) -> Result<Box<dyn Transport>, Error> {
    DESCRIPTORS.make_room(open.n_pes);
    let chosen = open.host.variable("SHMEM_TCP_INTERFACE");
    let near = open.host.nic().and_then(|nic| nic.interface);
    let ips = interface::own(open.one_machine, chosen.as_deref(), near.as_deref())?;
    let refused = |e: io::Error| Error::Unavailable(format!("the kernel refused a socket: {e}"));
    let mut listeners = Vec::new();
    let mut sockets: Vec<SocketAddr> = Vec::new();
    for ip in &ips {
        // An address may have gone since it was listed; one that works is enough.
        if let Ok(listener) = TcpListener::bind((*ip, 0)) {
            listener.set_nonblocking(true).map_err(refused)?;
            sockets.push(listener.local_addr().map_err(refused)?);
            listeners.push(listener);
        }
    }
    if listeners.is_empty() {
        return Err(Error::Unavailable(format!("no socket can listen on any of {ips:?}")));
    }
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let host = host.map_or_else(|_| "localhost".to_owned(), |name| name.trim().to_owned());
    let shared = Arc::new(Shared::new(Start {
        open: open.clone(),
        tuning,
        address: Address { host, sockets },
        service: Service::new(listeners),
        epoll: epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|e| refused(e.into()))?,
        timer: timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )
        .map_err(|e| refused(e.into()))?,
        bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|e| refused(e.into()))?,
    }));
    lock(&shared.service).unmute(&shared).map_err(|e| refused(e.into()))?;
    let thread = thread::start(Arc::clone(&shared))
        .map_err(|e| Error::Unavailable(format!("the service thread cannot be started: {e}")))?;
    Ok(Box::new(Tcp { shared, thread: Some(thread) }))
}

impl Transport for Tcp {
    fn caps(&self) -> Caps {
        Caps { amos_compose_with_cpu: true, needs_first_thread: false }
    }

    unsafe fn register(
        &mut self,
        segment: Segment,
        base: *mut u8,
        nbytes: usize,
    ) -> Result<Key, Error> {
        // SAFETY: valid until this transport is dropped by contract, and it then serves nobody.
        match unsafe { self.shared.areas.open(segment, base, nbytes) } {
            true => Ok(Key((nbytes as u64).to_le_bytes().to_vec())),
            false => Err(Error::Invalid(format!("segment {segment:?} is registered already"))),
        }
    }

    fn address(&self) -> Vec<u8> {
        self.shared.address.encode()
    }

    fn connect(&mut self, pe: Pe, address: &[u8], keys: &[(Segment, Key)]) -> Result<(), Error> {
        let peer = self.shared.peers.get(pe.index()).ok_or(Error::Unreachable(pe))?;
        let invalid = |what: &str| Error::Invalid(format!("the {what} of PE {pe} is damaged"));
        let address = Address::decode(address).ok_or_else(|| invalid("address"))?;
        let mut sizes = [0; Segment::COUNT];
        for (segment, key) in keys {
            let bytes = key.0.as_slice().try_into().map_err(|_| invalid("key"))?;
            sizes[*segment as usize] = u64::from_le_bytes(bytes);
        }
        match peer.contact.set(Contact { address, sizes }) {
            Ok(()) => Ok(()),
            Err(_) => Err(Error::Invalid(format!("PE {pe} is connected already"))),
        }
    }

    fn endpoint(&self) -> Result<Box<dyn Endpoint>, Error> {
        Ok(Box::new(TcpEndpoint::new(Arc::clone(&self.shared))))
    }

    fn progress(&self) -> Result<bool, Error> {
        self.shared.poll()
    }

    fn wait(&self, at_most: Duration) -> Result<bool, Error> {
        if self.shared.poll()? {
            return Ok(true);
        }
        // The caller looked for what it waits for after its last call of this, and looks again after
        // this one: it may sleep only over what it has seen.
        let news = self.shared.news();
        if SEEN.replace(news) != news {
            return Ok(false);
        }
        self.shared.sleep(news, at_most);
        let worked = self.shared.poll();
        SEEN.set(self.shared.news());
        worked
    }

    fn hand_over(&self) {
        self.shared.hand_over();
    }
}

impl Drop for Tcp {
    fn drop(&mut self) {
        let shared = &self.shared;
        shared.closing.store(true, Ordering::Release);
        shared.ring_after(Duration::from_nanos(1));
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
        for peer in &shared.peers {
            let mut link = lock(&peer.link);
            if let Link::Open(out) = &mut *link {
                out.leave();
            }
            *link = Link::closed("this PE has left the job".to_owned());
        }
        lock(&shared.service).leave();
    }
}
