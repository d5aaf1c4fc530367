//! A loss while operations are in flight to a PE that serves nobody: when a call has returned it, nothing uses the call's
//! memory any more.
#![allow(unsafe_code)]

use crate::connect::Peer;
use crate::endpoint::UcxEndpoint;
use crate::issuer::Issuer;
use crate::progress::Progress;
use crate::proto::{Address, MemoryKey};
use crate::service::Service;
use crate::settings::Tuning;
use crate::shared::Shared;
use crate::ucp::{Context, Memory};
use rushmem_transport::kit::lock::lock;
use rushmem_transport::kit::segments::Segments;
use rushmem_transport::{
    AmoOp, Amos, Completion, Directory, Endpoint, Error, Get, Host, LocalBuf, Open, Pe, Put,
    RemoteAddr, Segment, Signal, Told,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

const NBYTES: usize = 4 << 20;
const HEAP: RemoteAddr = RemoteAddr { segment: Segment::Heap, offset: 0 };
const ME: Pe = Pe(0);
const PEER: Pe = Pe(1);
/// A call that has polled so often waits; it does not sleep so far.
const POLLS: u64 = 100;

/// A host whose process ends by a panic.
struct Panics;

impl Host for Panics {
    fn cannot_go_on(&self, why: &str) -> ! {
        panic!("{why}")
    }
}

/// Two PEs in this process. Fields are dropped in this order.
struct Pair {
    endpoint: UcxEndpoint,
    issuer: Arc<Issuer>,
    progress: Arc<Progress>,
    /// What serves for the peer, when it is polled.
    peer: Service,
    /// The peer's heap, which lives as long as the process.
    heap: LocalBuf,
}

/// Over some of UCX's transports; `None` where UCX does not have them.
fn pair(transports: &str, abandon_limit: Duration) -> Option<Pair> {
    let changes = [("TLS", transports.to_owned()), ("NET_DEVICES", "lo".to_owned())];
    let context = Context::open(2, &changes).map_err(|why| println!("skipped: {why}"));
    let context = Arc::new(context.ok()?);
    let open = Open {
        pe: ME,
        n_pes: 2,
        secret: [0; 32],
        one_machine: true,
        oversubscribed: false,
        amos: Amos::Software,
        host: Arc::new(Panics),
    };
    let heap = LocalBuf { base: vec![7u8; NBYTES].leak().as_mut_ptr(), nbytes: NBYTES };
    let theirs = Arc::new(Segments::default());
    // SAFETY: never freed.
    unsafe { theirs.register(Segment::Heap, heap, ()) }.expect("a segment");
    // SAFETY: as above.
    let memory = unsafe { Memory::register(&context, heap.base, NBYTES) }.expect("memory");
    let packed = memory.key().expect("a key");
    std::mem::forget(memory);
    let key = MemoryKey { base: heap.base.addr() as u64, nbytes: NBYTES as u64, packed };
    let peer = Service::new(&context, theirs).expect("a worker");

    let host = "here".to_owned();
    let segments = Arc::new(Segments::default());
    let service = Service::new(&context, Arc::clone(&segments)).expect("a worker");
    let tuning = Tuning { abandon_limit, ..Tuning::default() };
    let shared = Shared::new(&open, tuning, host.clone(), context, service, segments);
    let shared = shared.expect("descriptors");
    let worker = peer.worker().address().expect("an address");
    let address = Address { host, worker }.encode();
    let told = [Told::default(), Told { address: &address, keys: [&key.encode(), &[], &[]] }];
    let directory = Directory::new(Directory::encode(told.into_iter()));
    shared.peers.connect(Arc::new(directory), Peer::new).expect("the first time");
    let progress = Arc::new(Progress::new(shared));
    let issuer = progress.issuer().expect("a worker");
    let endpoint = UcxEndpoint::new(Arc::clone(&progress), Arc::clone(&issuer));
    Some(Pair { endpoint, issuer, progress, peer, heap })
}

impl Pair {
    /// Puts a word, which connects the workers.
    fn connect(&mut self) {
        let word = 7u64.to_ne_bytes();
        let source = LocalBuf::source(word.as_ptr(), word.len());
        let put = Put { dest: HEAP, source, completion: Completion::AtQuiet };
        // SAFETY: the word lives until the put is complete.
        unsafe { self.endpoint.put(PEER, put) }.expect("a peer that serves");
        while !self.endpoint.is_quiet().expect("a peer that serves") {
            self.peer.poll();
        }
    }

    /// Works while the peer serves nobody and, once the work waits, is lost.
    fn lose(&mut self, work: impl FnOnce(&mut UcxEndpoint) -> Result<(), Error>) -> Error {
        let Pair { endpoint, progress, .. } = self;
        let shared = &progress.shared;
        let seen = shared.attendance.polls();
        thread::scope(|scope| {
            scope.spawn(|| {
                while shared.attendance.polls() < seen + POLLS {
                    thread::yield_now();
                }
                shared.lose(PEER, "it serves nobody");
            });
            work(endpoint).expect_err("nobody serves")
        })
    }

    /// Lets both work until neither has had anything to do for long.
    fn settle(&self) {
        let mut idle = 0;
        while idle < 10_000 {
            let worked = lock(&self.issuer.origin).worker().progress();
            idle = if worked | self.peer.poll() { 0 } else { idle + 1 };
        }
    }
}

fn loses(work: impl Fn(&mut UcxEndpoint, LocalBuf) -> Result<(), Error>) {
    for connected in [true, false] {
        let Some(mut pair) = pair("tcp,self", Duration::from_secs(30)) else { return };
        let mut memory = vec![1u8; NBYTES];
        let local = LocalBuf { base: memory.as_mut_ptr(), nbytes: NBYTES };
        if connected {
            pair.connect();
        }
        let error = pair.lose(|endpoint| work(endpoint, local));
        let text = "the connection from PE 0 on here to PE 1 on here broke: it serves nobody";
        assert_eq!(error, Error::Lost(PEER, text.to_owned()));
        assert_eq!(lock(&pair.issuer.origin).unended(), 0);
        memory.fill(2);
        pair.settle();
        assert!(memory.iter().all(|&byte| byte == 2), "memory was written after the loss was told");
        // SAFETY: never freed, and nobody puts there any more.
        let heap = unsafe { std::slice::from_raw_parts(pair.heap.base, NBYTES) };
        assert!(!heap.contains(&2), "memory was read after the loss was told");
        // Whatever is called from now on says so, and there is nothing left to end.
        assert_eq!(pair.endpoint.is_quiet(), Err(error));
        let Pair { endpoint, issuer, progress, peer, .. } = pair;
        drop((endpoint, issuer));
        progress.leave();
        // UCX 1.13.1 aborts by an assertion when a worker ends whose fetch of data was broken off.
        std::mem::forget(peer);
    }
}

/// SAFETY of the verbs below: [`loses`] keeps the memory longer than any operation.
fn put(completion: Completion) {
    loses(|endpoint, source| {
        // SAFETY: see above.
        unsafe { endpoint.put(PEER, Put { dest: HEAP, source, completion }) }?;
        endpoint.quiet()
    });
}

fn get(completion: Completion) {
    loses(|endpoint, dest| {
        // SAFETY: see above.
        unsafe { endpoint.get(PEER, Get { dest, source: HEAP, completion }) }?;
        endpoint.quiet()
    });
}

fn put_signal(completion: Completion) {
    loses(|endpoint, source| {
        let signal = Signal { dest: HEAP, op: AmoOp::Add, value: 1 };
        // SAFETY: see above.
        unsafe { endpoint.put_signal(PEER, Put { dest: HEAP, source, completion }, signal) }?;
        endpoint.quiet()
    });
}

#[test]
fn a_put_ends_with_a_loss() {
    put(Completion::Now);
}

#[test]
fn a_put_that_nobody_waits_for_ends_with_a_loss() {
    put(Completion::AtQuiet);
}

#[test]
fn a_get_ends_with_a_loss() {
    get(Completion::Now);
}

#[test]
fn a_get_that_nobody_waits_for_ends_with_a_loss() {
    get(Completion::AtQuiet);
}

#[test]
fn a_put_with_a_signal_ends_with_a_loss() {
    put_signal(Completion::Now);
}

#[test]
fn a_put_with_a_signal_that_nobody_waits_for_ends_with_a_loss() {
    put_signal(Completion::AtQuiet);
}

#[test]
fn a_test_for_completion_ends_with_a_loss() {
    loses(|endpoint, dest| {
        let get = Get { dest, source: HEAP, completion: Completion::AtQuiet };
        // SAFETY: see above.
        unsafe { endpoint.get(PEER, get) }?;
        while !endpoint.is_quiet()? {}
        Ok(())
    });
}

#[test]
fn what_cannot_be_ended_ends_the_process() {
    // No endpoint of shared memory alone is closed by force.
    let Some(mut pair) = pair("posix,self", Duration::ZERO) else { return };
    let dest = LocalBuf { base: vec![1u8; NBYTES].leak().as_mut_ptr(), nbytes: NBYTES };
    let get = Get { dest, source: HEAP, completion: Completion::Now };
    let lose = || {
        // SAFETY: never freed.
        pair.lose(|endpoint| unsafe { endpoint.get(PEER, get) })
    };
    let ended = catch_unwind(AssertUnwindSafe(lose)).expect_err("the process ends");
    let text = ended.downcast_ref::<String>().expect("a message");
    for word in ["PE 0", "PE 1", "it serves nobody", "in flight: 1", "SHMEM_UCX_TLS"] {
        assert!(text.contains(word), "{text}");
    }
    // What is in flight would end no worker in order.
    std::mem::forget(pair);
}
