//! Two PEs in one process, for tests: one issues and the other serves, when a test polls it.
#![allow(unsafe_code)]

use crate::connect::{encode_address, encode_key};
use crate::service::Service;
use crate::settings::{LIMITS, Tuning, WORKERS};
use crate::shared::SharedState;
use crate::ucp::{ConfigChange, UcpContext, UcpMemory};
use crate::wire::UcxWire;
use rushmem_system::lock::lock;
use rushmem_transport::engine::driver::Progress;
use rushmem_transport::engine::{Issuer, NetworkPe, WireEndpoint, WireLimit};
use rushmem_transport::peers::{PeAddress, Published};
use rushmem_transport::{
    Amos, Completion, DestBuf, Directory, Endpoint, EndpointUser, Error, Get, Host, LocalBuf, Open,
    Pe, PeRecord, RemoteAddr, Segment,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The time for which attempts to connect are repeated.
const CONNECT_LIMIT: Duration = Duration::from_secs(1);
pub(crate) const NBYTES: usize = 4 << 20;
pub(crate) const HEAP: RemoteAddr = RemoteAddr {
    segment: Segment::Heap,
    offset: 0,
};
pub(crate) const ME: Pe = Pe(0);
pub(crate) const PEER: Pe = Pe(1);

/// A host that panics instead of ending the process.
struct Panics;

impl Host for Panics {
    fn cannot_go_on(&self, error: &Error, why: &str) -> ! {
        panic!("{error}; {why}")
    }
}

/// Two PEs in this process. Fields are dropped in this order.
pub(crate) struct TestPair {
    pub(crate) endpoint: WireEndpoint<SharedState>,
    pub(crate) issuer: Arc<Issuer<UcxWire>>,
    pub(crate) progress: Arc<Progress<SharedState>>,
    /// The service of the peer, which serves when it is polled.
    pub(crate) peer: Service,
    /// The peer's heap, which lives as long as the process.
    pub(crate) heap: LocalBuf,
}

/// Returns a pair over some of UCX's transports; `None` if UCX is absent or lacks them.
pub(crate) fn pair(transports: &str, abandon_limit: Duration) -> Option<TestPair> {
    let changes = [
        ConfigChange {
            name: "TLS",
            value: transports.to_owned(),
        },
        ConfigChange {
            name: "NET_DEVICES",
            value: "lo".to_owned(),
        },
    ];
    let context = UcpContext::open(2, &changes).map_err(|why| println!("skipped: {why}"));
    let context = Arc::new(context.ok()?);

    let open = Open {
        pe: ME,
        n_pes: 2,
        secret: [0; 32],
        one_machine: true,
        cpus_per_pe: 1,
        amos: Amos::Software,
        part: None,
        host: Arc::new(Panics),
    };
    let heap = LocalBuf {
        base: vec![7u8; NBYTES].leak().as_mut_ptr(),
        nbytes: NBYTES,
    };

    let local = |pe| {
        let open = Open { pe, ..open.clone() };
        Arc::new(NetworkPe::new(&open, "here".to_owned(), &LIMITS).expect("a timer"))
    };

    let theirs = local(PEER);
    // SAFETY: the heap is never freed.
    unsafe { theirs.segments.register(Segment::Heap, heap, ()) }.expect("a segment");
    // SAFETY: the heap is never freed.
    let memory = unsafe { UcpMemory::register(&context, heap.base, NBYTES) }.expect("memory");
    let packed = memory.key().expect("a key");
    std::mem::forget(memory);

    let key = Published {
        nbytes: NBYTES as u64,
        covered: NBYTES as u64,
        key: encode_key(heap.base, &packed),
    };
    let peer = Service::new(&context, theirs).expect("a worker");

    let ours = local(ME);
    let service = Service::new(&context, Arc::clone(&ours)).expect("a worker");

    let tuning = Tuning {
        abandon_limit,
        connect_limit: CONNECT_LIMIT,
        ..Tuning::default()
    };
    let shared = SharedState::new(&open, tuning, ours, context, service);
    let shared = shared.expect("descriptors");

    let worker = peer.worker.address().expect("an address");
    let address = PeAddress {
        host: "here".to_owned(),
        of_provider: encode_address(&worker),
    };
    let address = address.encode();

    let records = [
        PeRecord::default(),
        PeRecord {
            address: &address,
            keys: [&key.encode(), &[], &[]],
        },
    ];
    let directory = Directory::new(Directory::encode(records.into_iter()));
    shared
        .peers
        .connect(Arc::new(directory))
        .expect("the first time");

    let wire_limit = WireLimit {
        n_wires: tuning.max_workers,
        set_by: WORKERS,
    };
    let progress = Arc::new(Progress::new(shared, wire_limit));
    let endpoint = progress.endpoint(EndpointUser::Context).expect("a worker");
    let issuer = Arc::clone(endpoint.issuer());
    Some(TestPair {
        endpoint,
        issuer,
        progress,
        peer,
        heap,
    })
}

impl TestPair {
    /// Gets a word, which connects the workers and sends no request.
    pub(crate) fn connect(&mut self) {
        let mut word = [0u8; 8];
        let get = Get {
            remote: HEAP,
            // SAFETY: the word lives until the get has ended, with the call.
            local: unsafe { DestBuf::new(word.as_mut_ptr(), word.len()) },
            completion: Completion::Now,
        };

        let endpoint = &mut self.endpoint;
        let peer = &mut self.peer;
        let connected = AtomicBool::new(false);

        thread::scope(|scope| {
            // The get waits for the connection and for the word, for which the peer must be polled,
            // too.
            scope.spawn(|| {
                let peer = peer;
                while !connected.load(Ordering::Acquire) {
                    peer.poll();
                }
            });
            let got = endpoint.get(PEER, get);
            connected.store(true, Ordering::Release);
            got.expect("a peer that serves");
        });
    }

    /// Polls both PEs until neither has had any work for many polls.
    pub(crate) fn poll_until_idle(&self) {
        let mut idle = 0;
        while idle < 10_000 {
            let worked = lock(&self.issuer.origin).wire().worker().progress();
            idle = if worked | self.peer.poll() {
                0
            } else {
                idle + 1
            };
        }
    }
}
