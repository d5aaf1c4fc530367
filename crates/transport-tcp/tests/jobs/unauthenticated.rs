//! Unauthenticated processes connect to the ports of a running job: they send random bytes, keep
//! half-open connections, or have another secret. The job's results stay right.

use conformance::{Case, LIMIT, Member, Random, verbs};
use rushmem_transport::peers::{PeAddress, Published};
use rushmem_transport::{
    Amos, Directory, EndpointUser, Error, Host, Open, Pe, PeRecord, RemoteAddr, Segment, Transport,
};
use rushmem_transport_tcp::{Tuning, open};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const UNAUTHENTICATED: usize = 16;

fn few_unauthenticated(with: &Open) -> Result<Box<dyn Transport>, Error> {
    let tuning = Tuning {
        max_unauthenticated: UNAUTHENTICATED,
        handshake_limit: Duration::from_millis(500),
        ..Tuning::default()
    };
    open(with, tuning)
}

/// Returns the port at which a PE listens.
fn port(address: &[u8]) -> u16 {
    let record = PeRecord {
        address,
        ..PeRecord::default()
    };
    let address = record.address(Pe(0)).expect("an address");
    let sockets: Vec<SocketAddr> =
        rushmem_system::codec::decode(&address.of_provider).expect("addresses");
    sockets.last().expect("a socket").port()
}

fn visit(port: u16) -> TcpStream {
    let socket = TcpStream::connect(("127.0.0.1", port)).expect("the port is open");
    socket.set_read_timeout(Some(LIMIT)).expect("a socket");
    socket
}

/// Returns true if the connection was dropped, after a greeting and a refusal at most.
fn is_dropped(mut socket: TcpStream) -> bool {
    match socket.read_to_end(&mut Vec::new()) {
        Ok(nbytes) => nbytes <= 72,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

/// Connects and sends random numbers of random bytes.
fn babble(port: u16, seed: u64) {
    let mut random = Random::new(seed);
    let mut socket = visit(port);
    for _ in 0..random.below(20) {
        let nbytes = 1 + random.below(300);
        // The other end may have hung up.
        let _ = socket.write_all(&random.bytes(nbytes));
    }
    drop(socket);
}

struct Nobody;

impl Host for Nobody {}

/// Returns the transport of a program that claims to be PE 1, with another secret. The address is
/// that of its PE 0.
fn outsider(address: &[u8]) -> Box<dyn Transport> {
    let with = Open {
        pe: Pe(1),
        n_pes: 2,
        secret: [0x42; 32],
        one_machine: true,
        cpus_per_pe: 1,
        amos: Amos::Software,
        part: None,
        host: Arc::new(Nobody),
    };
    let impatient = Tuning {
        connect_limit: Duration::from_secs(2),
        ..Tuning::default()
    };
    let mut transport = open(&with, impatient).expect("sockets");

    let heap = Published {
        nbytes: 1 << 20,
        covered: 1 << 20,
        key: Vec::new(),
    };
    let heap = heap.encode();
    let records = [PeRecord {
        address,
        keys: [&heap, &[], &[]],
    }; 2];
    let directory = Directory::new(Directory::encode(records.into_iter()));
    transport.connect(Arc::new(directory)).expect("an address");
    transport
}

/// Puts to PE 0, which fails. Returns the error as text.
fn failed_put(transport: &dyn Transport) -> String {
    let mut endpoint = transport
        .endpoint(EndpointUser::Context)
        .expect("an endpoint");
    let start = RemoteAddr {
        segment: Segment::Heap,
        offset: 0,
    };
    let put = verbs::put(&mut *endpoint, Pe(0), start, &[0xFF; 8]);
    let error = put.expect_err("nobody lets it in");
    assert!(matches!(error, Error::Lost(Pe(0), _)), "{error}");
    error.to_string()
}

/// Checks that a program that is no part of the job cannot connect.
fn impostor(address: &[u8]) {
    let why = failed_put(&*outsider(address));
    // Among many strangers, it may be dropped before it is refused.
    let words = [
        "it does not know the secret",
        "it hung up during the handshake",
    ];
    assert!(words.iter().any(|words| why.contains(words)), "{why}");
}

/// A PE whose host accepts the connection, but that sends nothing, is waited for without a
/// deadline.
#[test]
fn a_wait_for_a_silent_peer_ends_with_a_loss() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let sockets = vec![silent.local_addr().expect("its address")];
    let address = PeAddress {
        host: "here".to_owned(),
        of_provider: rushmem_system::codec::encode(&sockets),
    };

    let transport = outsider(&address.encode());
    thread::scope(|scope| {
        let waits = scope.spawn(|| failed_put(&*transport));
        let _taken = silent.accept().expect("it connects");
        transport.lose(Pe(0), "the test says so");

        let why = waits.join().expect("no panic");
        assert!(why.contains("the test says so"), "{why}");
    });
}

fn besieged(member: &Member) {
    let addresses = member.exchange(&member.transport().address());
    let peer = &addresses[1 - member.me()];
    // More connections than may be unauthenticated at once stay half-open, and are made before the
    // job has opened any of its own.
    let half_open: Vec<TcpStream> = (0..3 * UNAUTHENTICATED)
        .map(|_| visit(port(peer)))
        .collect();
    member.barrier();

    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut seed = 0;
            while !over.load(Ordering::Relaxed) {
                babble(port(peer), seed);
                seed += 1;
            }
        });

        if member.me() == 1 {
            scope.spawn(|| impostor(peer));
        }

        conformance::soak(member, Duration::from_secs(3), |_| {});
        over.store(true, Ordering::Relaxed);
    });

    for socket in half_open {
        assert!(is_dropped(socket), "none may stay half-open");
    }
}

#[test]
fn unauthenticated_connections_change_nothing() {
    let case = Case {
        sizes: &[2],
        heap_bytes: 8 << 20,
        limit: LIMIT,
        body: besieged,
    };
    conformance::run(
        "unauthenticated::unauthenticated_connections_change_nothing",
        few_unauthenticated,
        case,
    );
}
