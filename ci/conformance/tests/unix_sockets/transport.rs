//! The service of peers, and the transport.
#![allow(unsafe_code)]

use super::frames::{BATCH, DONE, FrameStream, HELLO, LONGEST, READ, REPLIED, REQUEST, WRITE};
use super::wire::SocketWire;
use rushmem_transport::kit::backoff::{FLUSH_DELAY, WaitLimits};
use rushmem_transport::kit::engine::{Driver, Served, ServiceThread, Sleeper};
use rushmem_transport::kit::host_name;
use rushmem_transport::kit::lock::try_lock;
use rushmem_transport::kit::message::{self, Body, Reply, Request};
use rushmem_transport::kit::network_pe::NetworkPe;
use rushmem_transport::kit::peers::Peers;
use rushmem_transport::kit::progress_state::ProgressState;
use rushmem_transport::kit::target::{Incoming, IncomingData, RequestTarget, Serving};
use rushmem_transport::kit::violation::{RefusedMessage, Violation};
use rushmem_transport::origin::{
    Issuers, Issuing, Origin, PollingThread, WireEndpoint, WireNetwork,
};
use rushmem_transport::{
    Caps, Directory, Endpoint, Error, Key, LocalBuf, Open, Pe, PeRecord, RemoteAddr, Segment,
    Transport,
};
use std::cell::RefCell;
use std::convert::Infallible;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

static LIMITS: WaitLimits = WaitLimits {
    spins: 200,
    sleep: FLUSH_DELAY,
    often: Duration::from_micros(25),
    often_oversubscribed: Duration::from_millis(1),
    min_polls: 1,
    max_unpolled: 4,
    longest_sleeping: WaitLimits::LONGEST,
    flushes_beside_sleepers: true,
};

/// The network of this PE and its peers.
pub(super) struct Network {
    local: NetworkPe,
    /// The address of a PE and the bytes of its segments.
    peers: Peers<(Vec<u8>, [u64; Segment::COUNT])>,
    service: Mutex<Service>,
}

struct Service {
    listener: UnixListener,
    streams: RefCell<Vec<(Option<Pe>, FrameStream)>>,
    target: RequestTarget<usize, Infallible>,
}

fn find(pe: Pe, record: PeRecord<'_>) -> Result<(Vec<u8>, [u64; Segment::COUNT]), Error> {
    let nbytes = record.keys.map(|key| key.first_chunk().map_or(0, |n| u64::from_le_bytes(*n)));
    if record.address.is_empty() {
        Err(Error::Unreachable(pe))
    } else {
        Ok((record.address.into(), nbytes))
    }
}

impl Network {
    pub(super) fn connect(&self, pe: Pe) -> io::Result<FrameStream> {
        let (name, _) = self.peers.get(pe).map_err(io::Error::other)?;
        let socket = UnixStream::connect_addr(&SocketAddr::from_abstract_name(name)?)?;
        let mut stream = FrameStream::new(socket)?;
        stream.push(HELLO, &self.local.me.0.to_le_bytes(), &[]);
        Ok(stream)
    }

    /// Serves peers, unless another thread does. Returns whether there was work.
    pub(super) fn serve(&self) -> Result<Option<bool>, Error> {
        let Some(service) = try_lock(&self.service) else { return Ok(None) };
        let worked = service.poll(&self.local).map_err(|message| self.refuse(&message))?;
        if worked {
            self.local.host.arrived();
        }
        Ok(Some(worked))
    }
}

impl WireNetwork for Network {
    type Extra = ();

    fn local(&self) -> &NetworkPe {
        &self.local
    }

    fn nbytes(&self, pe: Pe, segment: Segment) -> Result<u64, Error> {
        Ok(self.peers.get(pe)?.1[segment as usize])
    }

    fn host_of(&self, _: Pe) -> Option<String> {
        Some(host_name())
    }
}

/// A request is served with the streams, to one of which the reply goes.
struct Replying<'a>(&'a NetworkPe, &'a Service);

impl Serving for Replying<'_> {
    type ReplyTo = usize;
    type Remote = Infallible;
    type Extra = ();

    fn local(&self) -> &NetworkPe {
        self.0
    }

    fn reply(&self, to: Incoming<usize>, reply: Reply, answers: Vec<u8>) -> Result<(), Violation> {
        self.1.streams.borrow_mut()[to.reply_to].1.push(REPLIED, &reply.encode(), &answers);
        Ok(())
    }

    fn fetch(&self, _: Incoming<usize>, data: Infallible, _: LocalBuf) {
        match data {}
    }
}

impl Service {
    fn poll(&self, local: &NetworkPe) -> Result<bool, RefusedMessage> {
        let mut worked = false;
        while let Ok((socket, _)) = self.listener.accept() {
            // A socket that cannot be used is closed, which its PE notices.
            let stream = FrameStream::new(socket).ok();
            self.streams.borrow_mut().extend(stream.map(|stream| (None, stream)));
        }
        let n = self.streams.borrow().len();
        for i in (0..n).rev() {
            let came = self.streams.borrow_mut()[i].1.exchange();
            worked |= matches!(came, Ok(true));
            let taken = self.take(local, i);
            taken.map_err(|why| RefusedMessage {
                from: self.streams.borrow()[i].0,
                why: why.to_string(),
            })?;
            if came.is_err() {
                // Its PE has left, or is lost, which those who use it notice.
                self.streams.borrow_mut().swap_remove(i);
            }
        }
        Ok(worked)
    }

    /// Takes the frames of a stream that have come whole.
    fn take(&self, local: &NetworkPe, i: usize) -> Result<(), Violation> {
        loop {
            let Some((kind, body)) = self.streams.borrow_mut()[i].1.next()? else { return Ok(()) };
            let unknown = Violation::Unknown("frame");
            if let (REQUEST | BATCH, Some((head, data))) =
                (kind, body.split_at_checked(message::REQUEST))
            {
                let request = Request::decode(head).map_err(|_| unknown)?;
                let data = if kind == BATCH { Body::Batch(data) } else { Body::Data(data) };
                let incoming = Incoming { request, reply_to: i };
                self.target.take(&Replying(local, self), incoming, IncomingData::Here(data))?;
                continue;
            }
            let mut streams = self.streams.borrow_mut();
            if let (HELLO, Some(pe)) = (kind, body.first_chunk()) {
                streams[i].0 = Some(Pe(u32::from_le_bytes(*pe)));
                continue;
            }
            let Some(([segment, offset @ ..], rest)) = body.split_first_chunk::<9>() else {
                return Err(unknown);
            };
            let segment = Segment::from_number(*segment).ok_or(Violation::Unknown("segment"))?;
            let at = RemoteAddr { segment, offset: u64::from_le_bytes(*offset) };
            let mut data = Vec::new();
            let is_within = match (kind, rest.first_chunk()) {
                (WRITE, _) => local.segments.write(at, rest),
                (READ, Some(nbytes)) => {
                    let nbytes = u32::from_le_bytes(*nbytes) as usize;
                    if nbytes > LONGEST {
                        return Err(Violation::TooLong(nbytes as u64));
                    }
                    data.resize(nbytes, 0);
                    let to = LocalBuf { base: data.as_mut_ptr(), nbytes: data.len() };
                    // SAFETY: as many bytes.
                    unsafe { local.segments.read_into(at, to) }
                }
                _ => return Err(unknown),
            };
            if !is_within {
                return Err(Violation::Address(at.offset));
            }
            streams[i].1.push(DONE, &[], &data);
        }
    }
}

struct Progress {
    issuers: Issuers<SocketWire>,
    network: Network,
}

impl Issuing for Progress {
    type Wire = SocketWire;

    fn issuers(&self) -> &Issuers<SocketWire> {
        &self.issuers
    }

    fn network(&self) -> &Network {
        &self.network
    }

    fn poll(&self) -> Result<bool, Error> {
        self.network.local.state.polled();
        self.issuers.finish(&self.network, PollingThread::Waiter);
        let worked = self.network.serve()?;
        self.network.local.loss.check().map(|()| worked == Some(true))
    }
}

impl Driver for Progress {
    fn state(&self) -> &ProgressState {
        &self.network.local.state
    }

    fn flush(&self) -> bool {
        self.issuers.finish(&self.network, PollingThread::Service)
    }

    fn serve(&self) -> Served {
        match self.network.serve() {
            Ok(Some(true)) => Served::Worked,
            Ok(None) => Served::Contended,
            Ok(Some(false)) | Err(_) => Served::Idle,
        }
    }

    fn sleep(&self, _: bool, sleeper: &mut Sleeper<'_>) {
        sleeper.briefly(&[], FLUSH_DELAY);
    }
}

/// Fields are dropped in this order.
struct UnixSockets {
    thread: ServiceThread<Progress>,
    progress: Arc<Progress>,
    name: Vec<u8>,
    most_unsent: usize,
}

pub(super) fn open(with: &Open, most_unsent: usize) -> Result<Box<dyn Transport>, Error> {
    static OPENED: AtomicU32 = AtomicU32::new(0);
    let opened = OPENED.fetch_add(1, Ordering::Relaxed);
    let name = format!("rushmem-test-{}-{opened}", std::process::id()).into_bytes();
    let refused = |error: io::Error| Error::Unavailable(error.to_string());
    let address = SocketAddr::from_abstract_name(&name).map_err(refused)?;
    let listener = UnixListener::bind_addr(&address).map_err(refused)?;
    listener.set_nonblocking(true).map_err(refused)?;
    let local = NetworkPe::new(with, host_name(), &LIMITS).map_err(refused)?;
    let (streams, target) = (RefCell::default(), RequestTarget::new(with.pe));
    let service = Mutex::new(Service { listener, streams, target });
    let network = Network { local, peers: Peers::new(with.n_pes), service };
    let progress = Arc::new(Progress { issuers: Issuers::default(), network });
    let thread = ServiceThread::start("unix-sockets", &progress)?;
    Ok(Box::new(UnixSockets { thread, progress, name, most_unsent }))
}

impl Transport for UnixSockets {
    fn caps(&self) -> Caps {
        Caps { amos_compose_with_cpu: true, ..Caps::default() }
    }

    unsafe fn register(
        &mut self,
        segment: Segment,
        base: *mut u8,
        nbytes: usize,
    ) -> Result<Key, Error> {
        let segments = &self.progress.network.local.segments;
        // SAFETY: valid until this transport is dropped, by contract.
        unsafe { segments.register(segment, LocalBuf { base, nbytes }, ()) }?;
        Ok(Key((nbytes as u64).to_le_bytes().to_vec()))
    }

    fn address(&self) -> Vec<u8> {
        self.name.clone()
    }

    fn connect(&mut self, directory: Arc<Directory>) -> Result<(), Error> {
        self.progress.network.peers.connect(directory, find)
    }

    fn endpoint(&self) -> Result<Box<dyn Endpoint>, Error> {
        let network = &self.progress.network;
        let wire = SocketWire::new(self.most_unsent);
        let make = || Ok((Origin::new(wire, network), ()));
        let issuer = self.progress.issuers.issuer((16, "none"), make)?;
        Ok(Box::new(WireEndpoint::new(Arc::clone(&self.progress), issuer)))
    }

    fn progress(&self) -> Result<bool, Error> {
        self.progress.poll()
    }

    fn stop_polling(&self) {
        self.progress.network.local.state.stop_polling();
    }

    fn lose(&self, pe: Pe, why: &str) {
        self.progress.network.lose(pe, why);
    }
}

impl Drop for UnixSockets {
    fn drop(&mut self) {
        self.progress.network.local.loss.leave();
        self.thread.end();
    }
}
