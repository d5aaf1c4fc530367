//! Connections over a provider that refuses some, either at the call or in its completion queue,
//! and that ends a process which makes too many at once (ci/strict-fabric).
#![allow(unsafe_code)]

use conformance::{Case, LIMIT, Member, TestAmo};
use rushmem_transport::{
    AmoOp, Amos, Completion, Directory, Endpoint, EndpointUser, Error, Host, Open, Pe, PeRecord,
    Put, RemoteAddr, Segment, SourceBuf, Transport,
};
use rushmem_transport_ofi::{PROVIDER, Tuning, open};
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;
use testkit::Test;

/// A host on which the user has set a domain of the provider `strict`, and a host limit of two
/// seconds.
struct Asks(&'static str);

impl Host for Asks {
    fn variable(&self, name: &str) -> Option<String> {
        match name {
            "SHMEM_OFI_PROVIDER" => Some("strict".to_owned()),
            "SHMEM_OFI_DOMAIN" => Some(self.0.to_owned()),
            _ => None,
        }
    }

    fn host_limit(&self) -> Duration {
        Duration::from_secs(2)
    }
}

const FEW: Asks = Asks("few-connections");
const NONE: Asks = Asks("no-connections");

fn over_few(with: &Open) -> Result<Box<dyn Transport>, Error> {
    let over_few = Open {
        host: Arc::new(FEW),
        ..with.clone()
    };
    open(&over_few, Tuning::default())
}

fn needs() {
    if let Err(why) = (PROVIDER.available)(&FEW) {
        testkit::absent(why);
    }
}

/// The number of puts to each PE, each with an atomic operation.
const ROUNDS: u64 = 5;
/// The offset of the word in which a PE counts.
const COUNTER: usize = 0;

/// Each PE connects to all others, and operations after a refusal are carried out once and in
/// order. The provider refuses the first connection of each PE in its completion queue.
fn uses_all(member: &Member) {
    let n = member.n_pes();
    let mut endpoint = member.endpoint();
    let words: Vec<[u8; 8]> = (1..=ROUNDS).map(u64::to_ne_bytes).collect();
    let others = (1..n).map(|distance| (member.me() + distance) % n);

    for to in others {
        for word in &words {
            endpoint.put(to, 8 + 8 * member.me(), word);
            endpoint.update(conformance::word(to, COUNTER), TestAmo::new(AmoOp::Add, 1));
            endpoint.fence();
        }
    }
    endpoint.quiet();
    member.barrier();

    assert_eq!(member.fetch::<u64>(COUNTER), ROUNDS * (n as u64 - 1));
    for from in (0..n).filter(|from| *from != member.me()) {
        assert_eq!(member.fetch::<u64>(8 + 8 * from), ROUNDS, "of PE {from}");
    }
}

/// Threads with an endpoint each connect at the same time, and each PE answers all others.
fn connects_by_many_threads(member: &Member) {
    const THREADS: usize = 8;
    let n = member.n_pes();
    let together = Barrier::new(THREADS);
    thread::scope(|scope| {
        for i in 0..THREADS {
            let together = &together;
            scope.spawn(move || {
                let mut endpoint = member.endpoint();
                together.wait();
                for distance in 0..n - 1 {
                    let to = (member.me() + 1 + (i + distance) % (n - 1)) % n;
                    endpoint.amo(conformance::word(to, COUNTER), TestAmo::new(AmoOp::Add, 1));
                }
            });
        }
    });

    member.barrier();
    assert_eq!(member.fetch::<u64>(COUNTER), (THREADS * (n - 1)) as u64);
}

const HEAP: usize = 4096;
const START: RemoteAddr = RemoteAddr {
    segment: Segment::Heap,
    offset: 0,
};

/// Returns the transports of two PEs in this process, which know each other.
fn pair() -> [Box<dyn Transport>; 2] {
    let mut pair = [Pe(0), Pe(1)].map(|pe| {
        let open_with = Open {
            pe,
            n_pes: 2,
            secret: [7; 32],
            one_machine: true,
            cpus_per_pe: 0,
            amos: Amos::Software,
            part: None,
            host: Arc::new(NONE),
        };
        open(&open_with, Tuning::default()).expect("the provider opens")
    });

    let published = pair.each_mut().map(|transport| {
        let heap = vec![0u64; HEAP / 8].leak();
        // SAFETY: it is never freed.
        let key = unsafe { transport.register(Segment::Heap, heap.as_mut_ptr().cast(), HEAP) };
        let key = key.expect("memory that can be registered");
        (transport.address(), key)
    });

    let records = published.iter().map(|(address, key)| PeRecord {
        address,
        keys: [key.0.as_slice(), &[], &[]],
    });
    let directory = Arc::new(Directory::new(Directory::encode(records)));

    for transport in &mut pair {
        transport
            .connect(Arc::clone(&directory))
            .expect("a way to every PE");
    }
    pair
}

/// The text of the loss names both PEs, the number of attempts, and the settings that may help.
fn a_pe_that_refuses_is_tried_again_before_it_is_lost() {
    needs();

    let [transport, _peer] = pair();
    let mut endpoint: Box<dyn Endpoint> = transport
        .endpoint(EndpointUser::Context)
        .expect("an endpoint");

    let word = 7u64.to_ne_bytes();
    let put = Put {
        remote: START,
        // SAFETY: no write of the word is started, since there is no connection.
        local: unsafe { SourceBuf::new(word.as_ptr(), word.len()) },
        completion: Completion::AtQuiet,
    };

    let tried = endpoint.put(Pe(1), put);
    let Err(Error::Lost(Pe(1), why)) = tried else {
        panic!("{tried:?}")
    };

    let found = why.split_once("(attempt ").expect(&why).1;
    let n: u32 = found
        .split(',')
        .next()
        .and_then(|n| n.parse().ok())
        .expect(&why);
    assert!(n > 1, "{why}");

    for words in [
        "from PE 0 on ",
        " to PE 1 on ",
        "SHMEM_OFI_PROVIDER",
        "SHMEM_HOST_LIMIT",
    ] {
        assert!(why.contains(words), "{words}: {why}");
    }
}

/// Returns a test of a case with this many PEs.
fn test(name: &'static str, sizes: &'static [u32], body: fn(&Member)) -> Test {
    let case = Case {
        sizes,
        heap_bytes: 1 << 20,
        limit: LIMIT,
        body,
    };
    Test::new(name, move || {
        conformance::run_where(needs, name, over_few, case)
    })
}

fn main() -> ExitCode {
    // SAFETY: the process has one thread.
    unsafe { strict_fabric::offer(Path::new(env!("CARGO_TARGET_TMPDIR"))) };
    let refused = a_pe_that_refuses_is_tried_again_before_it_is_lost;
    testkit::run(vec![
        test(
            "what_follows_a_refusal_is_carried_out_once",
            &[2, 5],
            uses_all,
        ),
        test(
            "few_connections_are_made_at_once",
            &[6],
            connects_by_many_threads,
        ),
        Test::new(
            "a_pe_that_refuses_is_tried_again_before_it_is_lost",
            refused,
        ),
    ])
}
