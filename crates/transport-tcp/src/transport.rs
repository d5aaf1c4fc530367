//! The transport of one PE: opens the sockets, registers segments, connects to the directory, and
//! leaves the job.
#![allow(unsafe_code)]

use crate::addresses::{Address, own_addresses};
use crate::progress::Progress;
use crate::service::{Network, Service};
use crate::settings::{DESCRIPTORS, Tuning};
use crate::shared::{Peer, PeerLink, SharedState, address_of};
use crate::wire::TcpWire;
use rushmem_system::host::host_name;
use rushmem_system::interfaces::{PORTS, PortRange};
use rushmem_system::lock::lock;
use rushmem_transport::engine::message::MAX_ORIGINS;
use rushmem_transport::engine::{Issuers, Issuing, Origin, WireEndpoint};
use rushmem_transport::progress::events::AwaitedWord;
use rushmem_transport::progress::service_thread::ServiceThread;
use rushmem_transport::{
    Caps, Directory, Endpoint, Error, Key, LocalBuf, NetworkActivity, Open, Pe, Segment, Transport,
};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The transport of this PE.
struct Tcp {
    progress: Arc<Progress>,
    thread: ServiceThread<Progress>,
}

/// Opens the transport with these limits.
///
/// # Errors
/// [`Error::Unavailable`] if a variable is invalid, no address can be listened on, or the kernel
/// refuses a socket or a timer.
pub fn open(open: &Open, tuning: Tuning) -> Result<Box<dyn Transport>, Error> {
    DESCRIPTORS.raise_limit(open.n_pes);
    let (_, ips) = own_addresses(open)?;
    let ports =
        PortRange::parse(open.host.variable(PORTS).as_deref()).map_err(Error::Unavailable)?;
    let refused = |error: io::Error| {
        let why = DESCRIPTORS.explain(&error);
        Error::Unavailable(format!("the kernel refused what a socket needs: {why}"))
    };
    let (mut listeners, mut failed) = (Vec::new(), None);
    let mut sockets: Vec<SocketAddr> = Vec::new();
    for ip in &ips {
        // An address may have disappeared since it was listed. One that works is enough.
        match ports.listen(*ip) {
            Ok(listener) => {
                listener.set_nonblocking(true).map_err(refused)?;
                sockets.push(listener.local_addr().map_err(refused)?);
                listeners.push(listener);
            }
            Err(error) => failed = Some(error),
        }
    }
    if let ([], Some(error)) = (&listeners[..], failed) {
        let why = DESCRIPTORS.explain(&error);
        return Err(Error::Unavailable(format!(
            "no socket can listen on any of {ips:?}: {why}"
        )));
    }
    rushmem_system::log::debug!("listens on {sockets:?}");
    let address = Address {
        host: host_name(),
        sockets,
    };
    let shared = SharedState::new(open, tuning, address).map_err(refused)?;
    let mut service = Service::new(listeners, &shared.tuning);
    service.unmute(&shared).map_err(|e| refused(e.into()))?;
    let network = Arc::new(Network {
        shared,
        service: Mutex::new(service),
    });
    let progress = Arc::new(Progress {
        issuers: Issuers::default(),
        network,
    });
    let thread = ServiceThread::start("rushmem-tcp", &progress)?;
    Ok(Box::new(Tcp { progress, thread }))
}

impl Transport for Tcp {
    fn caps(&self) -> Caps {
        Caps {
            amos_compose_with_cpu: true,
            wakes_waits: true,
            ..Caps::default()
        }
    }

    unsafe fn register(
        &mut self,
        segment: Segment,
        base: *mut u8,
        nbytes: usize,
    ) -> Result<Key, Error> {
        // SAFETY: the memory is valid by contract until this transport is dropped, which then
        // serves no peer.
        unsafe {
            self.shared()
                .local()
                .segments
                .register(segment, LocalBuf { base, nbytes }, ())
        }?;
        Ok(Key((nbytes as u64).to_le_bytes().to_vec()))
    }

    fn address(&self) -> Vec<u8> {
        self.shared().address.encode()
    }

    fn connect(&mut self, directory: Arc<Directory>) -> Result<(), Error> {
        let shared = self.shared();
        for pe in (0..shared.peers.n_pes() as u32).map(Pe) {
            let record = directory.of(pe).ok_or(Error::Unreachable(pe))?;
            address_of(pe, record)?;
            Peer::new(pe, record)?;
        }
        shared.peers.connect(directory, Peer::new)
    }

    fn endpoint(&self) -> Result<Box<dyn Endpoint>, Error> {
        self.new_endpoint(false)
    }

    fn internal_endpoint(&self) -> Result<Box<dyn Endpoint>, Error> {
        self.new_endpoint(true)
    }

    fn progress(&self) -> Result<bool, Error> {
        self.progress.poll()
    }

    fn wait(
        &self,
        at_most: Duration,
        awaited: &[AwaitedWord],
        is_over: &mut dyn FnMut() -> bool,
    ) -> Result<bool, Error> {
        match is_over() || self.shared().sleep(awaited, at_most) {
            true => self.progress.poll(),
            // Another thread has received the data.
            false => self.shared().local().loss.check().map(|()| false),
        }
    }

    fn activity(&self) -> NetworkActivity {
        self.shared().local().state.activity()
    }

    fn end_wait(&self) {
        self.shared().local().state.stop_watching();
    }

    fn stop_polling(&self) {
        self.shared().local().state.stop_polling();
    }

    fn lose(&self, pe: Pe, why: &str) {
        self.shared().lose(pe, why);
    }
}

impl Tcp {
    fn shared(&self) -> &SharedState {
        &self.progress.network.shared
    }

    /// Returns an endpoint. Words of its long transfers may be torn if `in_parts`.
    fn new_endpoint(&self, in_parts: bool) -> Result<Box<dyn Endpoint>, Error> {
        let network = &self.progress.network;
        let make = || {
            // This runs under the lock of the list of issuers, so the replies get the same number
            // as the origin.
            let wire = TcpWire::new(network, network.shared.receiving.replies.add());
            Ok(Origin::new(wire, Arc::clone(network)))
        };
        let issuer = self
            .progress
            .issuers
            .issuer((MAX_ORIGINS as usize, "streams of requests"), make)?;
        lock(&issuer.origin).wire().in_parts = in_parts;
        Ok(Box::new(WireEndpoint::new(
            Arc::clone(&self.progress),
            issuer,
        )))
    }
}

impl Drop for Tcp {
    fn drop(&mut self) {
        // From now on a connection that ends is no loss: its peer has left the job, too.
        self.shared().local().loss.leave();
        self.thread.end();
        for (_, peer) in self.shared().peers.iter() {
            let mut link = lock(&peer.link);
            if let PeerLink::Open(connection) = &mut *link {
                connection.leave();
            }
            *link = PeerLink::closed("this PE has left the job".to_owned());
        }
        lock(&self.progress.network.service).leave();
    }
}
