//! PEs that connect to each other at the same time: each pair ends with one connection, and no data
//! are lost on it while both send at once.
#![allow(unsafe_code)]

use conformance::loss::open_beside;
use conformance::{Case, LIMIT, Member, verbs};
use rushmem_transport::{
    Completion, DestBuf, EndpointUser, Error, Get, Host, Open, Pe, Put, RemoteAddr, Segment,
    SourceBuf, Transport,
};
use rushmem_transport_tcp::PROVIDER;
use std::path::Path;
use std::sync::Arc;

const ROUNDS: usize = 40;

struct Panics;

impl Host for Panics {
    fn lost(&self, error: &Error) {
        panic!("nobody is lost: {error}");
    }
}

fn usual(with: &Open) -> Result<Box<dyn Transport>, Error> {
    (PROVIDER.open)(with)
}

fn open_sockets() -> usize {
    let fds = std::fs::read_dir("/proc/self/fd").expect("Linux has it");
    let is_socket = |path: &Path| {
        std::fs::read_link(path).is_ok_and(|to| to.to_string_lossy().starts_with("socket:"))
    };
    fds.flatten().filter(|fd| is_socket(&fd.path())).count()
}

/// All PEs use all others for the first time, at once.
fn all_at_once(member: &Member) {
    let me = member.me();
    let n_pes = member.n_pes();
    // The word to which this PE adds at each other PE.
    let own_word = RemoteAddr {
        segment: Segment::Heap,
        offset: 64 * me as u64,
    };

    for round in 0..ROUNDS {
        let mut heap = vec![0u64; 512];
        let transport = open_beside(member, &mut heap, Arc::new(Panics), usual);
        let before = open_sockets();
        member.barrier();

        let mut endpoint = transport
            .endpoint(EndpointUser::Context)
            .expect("an endpoint");
        for step in 1..n_pes {
            // The order of the peers is reversed in every second round.
            let peer = if round % 2 == 0 {
                (me + step) % n_pes
            } else {
                (me + n_pes - step) % n_pes
            };
            verbs::add_one(&mut *endpoint, Pe(peer as u32), own_word).expect("a PE that is there");
        }
        endpoint.quiet().expect("PEs that are there");
        // After the barrier all operations of all PEs are complete.
        member.barrier();

        // A second connection that its peer has closed is closed here at the next poll.
        while open_sockets() - before >= n_pes {
            transport.progress().expect("no loss");
        }
        assert_eq!(
            open_sockets() - before,
            n_pes - 1,
            "one connection to each other PE"
        );

        for peer in (0..n_pes).filter(|&peer| peer != me) {
            let mut word = [0; 8];
            verbs::get(&mut *endpoint, Pe(peer as u32), &mut word, own_word).expect("it is there");
            assert_eq!(u64::from_le_bytes(word), 1, "at PE {peer}, round {round}");
        }

        drop(endpoint);
        member.barrier();
        drop(transport);
        drop(heap);
    }
}

#[test]
fn pes_that_connect_at_once_share_a_connection() {
    let name = "establishment::pes_that_connect_at_once_share_a_connection";
    let case = Case {
        sizes: &[2, 3, 4],
        heap_bytes: 1 << 20,
        limit: LIMIT,
        body: all_at_once,
    };
    conformance::run(name, usual, case);
}

/// Each PE gets much data from the other one while it puts much data to it.
fn much_both_ways(member: &Member) {
    const BYTES: usize = 24 << 20;
    let peer = Pe(1 - member.me() as u32);
    let start_of = |half: u64| RemoteAddr {
        segment: Segment::Heap,
        offset: half * BYTES as u64,
    };

    let sent = vec![member.me() as u8 + 1; BYTES];
    let mut got = vec![0u8; BYTES];
    let mut endpoint = member
        .transport()
        .endpoint(EndpointUser::Context)
        .expect("an endpoint");

    verbs::put(&mut *endpoint, peer, start_of(0), &sent).expect("a put");
    endpoint.quiet().expect("no loss");
    member.barrier();

    for _ in 0..5 {
        let put = Put {
            remote: start_of(1),
            // SAFETY: nobody changes the vector before the quiet.
            local: unsafe { SourceBuf::new(sent.as_ptr(), BYTES) },
            completion: Completion::AtQuiet,
        };
        let get = Get {
            remote: start_of(0),
            // SAFETY: nobody else uses the vector before the quiet.
            local: unsafe { DestBuf::new(got.as_mut_ptr(), BYTES) },
            completion: Completion::AtQuiet,
        };
        endpoint.put(peer, put).expect("no loss");
        endpoint.get(peer, get).expect("no loss");
        endpoint.quiet().expect("no loss");

        assert!(got.iter().all(|&byte| byte == member.me() as u8 + 1));
        got.fill(0);
    }
    member.barrier();
}

#[test]
fn who_sends_much_also_receives() {
    let name = "establishment::who_sends_much_also_receives";
    let case = Case {
        sizes: &[2],
        heap_bytes: 48 << 20,
        limit: LIMIT,
        body: much_both_ways,
    };
    conformance::run(name, usual, case);
}
