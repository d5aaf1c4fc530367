//! In a session the operations on a PE's heap are sent to its proxy. Here the transport of that PE
//! is closed, so that its heap can be reached in no other way.
#![allow(unsafe_code)]

use rushmem_transport::segments::Segments;
use rushmem_transport::{
    AmoOp, AmoRequest, Amos, Buffer, Completion, DestBuf, Directory, Endpoint, EndpointUser, Get,
    Host, LocalBuf, OldValue, Open, Pe, PeRecord, Proxy, Put, RemoteAddr, Segment, SignalOrder,
    SourceBuf, StridedBlocks, Transport,
};
use rushmem_transport_tcp::{Tuning, open};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::yield_now;
use std::time::Instant;

const ME: Pe = Pe(0);
const PROXY: Pe = Pe(1);
const BEHIND: Pe = Pe(2);
/// The place of `BEHIND` on its node ([`Proxy::place`]).
const PLACE: u8 = 2;
const WORDS: usize = 512;
/// More operations than several batches hold.
const ADDITIONS: u64 = 10_000;

type Heap = &'static [AtomicU64];

/// The host of all PEs, by which `PROXY` is the proxy of `BEHIND`.
struct Nodes {
    proxies: Vec<Proxy>,
    behind: Segments,
    woken: AtomicU64,
}

impl Host for Nodes {
    fn proxies(&self) -> &[Proxy] {
        &self.proxies
    }

    fn node_heap(&self, place: u8) -> Option<&Segments> {
        (place == PLACE).then_some(&self.behind)
    }

    fn arrived(&self, place: u8) {
        if place != 0 {
            assert_eq!(place, PLACE);
            self.woken.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn heap() -> (Heap, LocalBuf) {
    let words: Heap = Vec::leak((0..WORDS).map(|_| AtomicU64::new(0)).collect());
    (
        words,
        LocalBuf {
            base: words.as_ptr().cast_mut().cast(),
            nbytes: 8 * WORDS,
        },
    )
}

/// Returns the transports of `ME` and `PROXY`, the heaps of `PROXY` and `BEHIND`, and their host.
/// The transport of `BEHIND` is closed.
fn job() -> ([Box<dyn Transport>; 2], [Heap; 2], Arc<Nodes>) {
    let heaps = [heap(), heap(), heap()];
    let behind = Segments::default();
    // SAFETY: the heap is never freed.
    unsafe { behind.register(Segment::Heap, heaps[2].1, ()) }.expect("the first");

    let proxy = Proxy {
        pe: PROXY,
        place: PLACE,
    };
    let nodes = Arc::new(Nodes {
        proxies: vec![Proxy::itself(ME), Proxy::itself(PROXY), proxy],
        behind,
        woken: AtomicU64::new(0),
    });

    let mut transports = [ME, PROXY, BEHIND].map(|pe| {
        let host = Arc::<Nodes>::clone(&nodes);
        let with = Open {
            pe,
            n_pes: 3,
            secret: [3; 32],
            one_machine: true,
            cpus_per_pe: 0,
            amos: Amos::Software,
            part: None,
            host,
        };
        open(&with, Tuning::default()).expect("a network")
    });

    let addresses = transports.each_ref().map(|transport| transport.address());
    let keys = [0, 1, 2].map(|i| {
        let LocalBuf { base, nbytes } = heaps[i].1;
        // SAFETY: the heap is never freed.
        let key = unsafe { transports[i].register(Segment::Heap, base, nbytes) };
        key.expect("the first").0
    });

    let records = addresses.iter().zip(&keys);
    let records = records.map(|(address, heap)| PeRecord {
        address,
        keys: [heap, &[], &[]],
    });
    let directory = Arc::new(Directory::new(Directory::encode(records)));
    for transport in &mut transports {
        transport
            .connect(Arc::clone(&directory))
            .expect("addresses");
    }

    let [me, proxy, behind] = transports;
    drop(behind);
    ([me, proxy], [heaps[1].0, heaps[2].0], nodes)
}

fn address(word: usize) -> RemoteAddr {
    RemoteAddr {
        segment: Segment::Heap,
        offset: 8 * word as u64,
    }
}

fn add(end: &mut dyn Endpoint, pe: Pe, word: usize, old: OldValue) {
    let request = AmoRequest::of_word(address(word), AmoOp::Add, 1);
    end.amo(pe, request, old).expect("its proxy is there");
}

/// Returns a put whose source is valid during the call.
fn put(word: usize, source: &[u64]) -> Put {
    Put {
        remote: address(word),
        // SAFETY: the call waits until the source may be reused.
        local: unsafe { SourceBuf::new(source.as_ptr().cast(), size_of_val(source)) },
        completion: Completion::Now,
    }
}

/// Returns every second word from word 8 on, and successive words of local memory.
fn every_second_word<Way>(local: Buffer<Way>) -> StridedBlocks<Way> {
    StridedBlocks {
        remote: address(8),
        local,
        nbytes: 8,
        remote_stride: 16,
        local_stride: 8,
        n: 4,
    }
}

/// Issues operations of each kind on a PE, and completes them. Their results are stored in
/// `fetched`.
fn issue(end: &mut dyn Endpoint, pe: Pe, fetched: &mut [u64; 8]) {
    for i in 0..ADDITIONS {
        add(end, pe, i as usize % 2, OldValue::Ignored);
    }

    let base: *mut u8 = fetched.as_mut_ptr().cast();
    // SAFETY: the range is a part of `fetched`, which is valid until the quiet.
    let dest = |word: usize, n: usize| unsafe { DestBuf::new(base.wrapping_add(8 * word), 8 * n) };
    add(end, pe, 2, OldValue::AtQuiet(dest(0, 1)));
    add(end, pe, 2, OldValue::AtQuiet(dest(1, 1)));

    end.put(pe, put(3, &[7, 8])).expect("its proxy is there");
    let signal = AmoRequest::of_word(address(5), AmoOp::Set, 9);
    end.put_signal(pe, put(6, &[10]), signal, SignalOrder::AfterData)
        .expect("the same");
    end.fence().expect("its proxy is there");

    let get = Get {
        remote: address(3),
        local: dest(2, 2),
        completion: Completion::AtQuiet,
    };
    end.get(pe, get).expect("its proxy is there");

    let put = put(8, &[1, 2, 3, 4]);
    end.put_strided(pe, every_second_word(put.local))
        .expect("its proxy is there");
    end.fence().expect("its proxy is there");

    end.get_strided_nbi(pe, every_second_word(dest(4, 4)))
        .expect("the same");
    end.pe_quiet(pe).expect("its proxy is there");
}

#[test]
fn a_proxy_carries_out_what_a_session_batches() {
    let ([me, proxy], heaps, nodes) = job();
    let mut end = me.endpoint(EndpointUser::Context).expect("an endpoint");
    end.session(true).expect("no loss");

    for (pe, heap) in [PROXY, BEHIND].into_iter().zip(heaps) {
        let mut fetched = [u64::MAX; 8];
        issue(&mut *end, pe, &mut fetched);
        assert_eq!(fetched, [0, 1, 7, 8, 1, 2, 3, 4], "{pe}");

        let words: Vec<u64> = heap
            .iter()
            .map(|word| word.load(Ordering::Acquire))
            .collect();
        let half = ADDITIONS / 2;
        assert_eq!(
            words[..16],
            [half, half, 2, 7, 8, 9, 10, 0, 1, 0, 2, 0, 3, 0, 4, 0],
            "{pe}"
        );
    }

    assert_ne!(nodes.woken.load(Ordering::Relaxed), 0, "it is woken");
    end.session(false).expect("no loss");
    drop((end, me, proxy));
}

/// The service thread sends a batch, and the drop of an endpoint completes its operations.
#[test]
fn what_is_batched_leaves_without_a_call_and_with_the_endpoint() {
    let ([me, proxy], [_, behind], _) = job();
    let mut end = me.endpoint(EndpointUser::Context).expect("an endpoint");
    end.session(true).expect("no loss");
    add(&mut *end, BEHIND, 0, OldValue::Ignored);
    let start = Instant::now();
    while behind[0].load(Ordering::Acquire) == 0 {
        assert!(start.elapsed() < testkit::LIMIT, "nobody has sent it");
        yield_now();
    }

    add(&mut *end, BEHIND, 0, OldValue::Ignored);
    drop(end);
    assert_eq!(behind[0].load(Ordering::Acquire), 2);
    drop((me, proxy));
}
