//! Nodes of threads, which find each other over real sockets, also while other users flood them.

use std::os::unix::fs::FileExt;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use rushmem_connect::Secret;
use rustix::process::Uid;

use super::*;
use crate::time_limit::ANSWER;

/// Returns a key that no other node has.
fn new_key() -> NodeKey {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let secret = format!("test-{}-{number}", std::process::id());
    NodeKey::new(&Secret::new(secret.as_bytes()), b"")
}

/// Runs `body` in a thread for each of these PEs of a node. A PE passes the result of `file` to the
/// others. A barrier replaces the manager's fence.
fn node(
    pes: &[u32],
    n_pes: u32,
    file: impl Fn(u32) -> Option<OwnedFd> + Sync,
    body: impl Fn(u32, NodeConnections) + Sync,
) {
    let key = new_key();
    let fence = Barrier::new(pes.len());
    let run = |pe| {
        let sockets = NodeSockets::open(key.clone(), pe, ANSWER).expect("a name");
        fence.wait();
        let file = file(pe);
        let node = sockets.connect_node(n_pes, file.as_ref().map(AsFd::as_fd));
        body(pe, node.expect("node"));
    };

    thread::scope(|scope| {
        for &pe in pes {
            let run = &run;
            scope.spawn(move || run(pe));
        }
    });
}

fn no_file(_: u32) -> Option<OwnedFd> {
    None
}

#[test]
fn a_node_gathers_at_its_first_pe() {
    for pes in [
        &[0_u32][..],
        &[0, 1],
        &[5],
        &[2, 3, 7, 9],
        &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
    ] {
        node(pes, 12, no_file, |pe, mut node| {
            assert_eq!(node.files.len(), pes.len());
            assert_eq!(node.peers.node_pes(), (pe == pes[0]).then(|| pes.to_vec()));
            for round in 0..3_u8 {
                let part = |pe: u32| vec![round; pe as usize * 999];
                let gathered = node.peers.gather(&part(pe)).expect("parts");
                let whole = node.peers.broadcast(gathered).expect("the whole");
                assert_eq!(whole, pes.iter().map(|&pe| part(pe)).collect());
            }
        });
    }
}

#[test]
fn the_nodes_memory_is_one_file() {
    node(&[4, 6, 7], 8, no_file, |pe, mut node| {
        let file = std::fs::File::from(node.memory.expect("memory"));
        if pe == 4 {
            file.write_all_at(b"here", 0).expect("written");
            node.peers.broadcast(Some(true)).expect("sent");
        } else {
            assert!(node.peers.broadcast(None::<bool>).expect("heard"));
            let mut text = [0; 4];
            file.read_exact_at(&mut text, 0).expect("read");
            assert_eq!(&text, b"here");
        }
    });
}

#[test]
fn all_pes_get_the_files_of_all() {
    let file = |pe: u32| {
        let file = std::fs::File::from(memfd_create("test", MemfdFlags::empty()).expect("a memfd"));
        file.write_all_at(&[pe as u8], 0).expect("written");
        (pe != 5).then(|| OwnedFd::from(file))
    };
    node(&[1, 2, 5, 6], 7, file, |_, node| {
        let numbers = node.files.into_iter().map(|file| {
            let mut number = [0];
            std::fs::File::from(file?)
                .read_exact_at(&mut number, 0)
                .expect("read");
            Some(number[0])
        });
        assert_eq!(
            numbers.collect::<Vec<_>>(),
            [Some(1), Some(2), None, Some(6)]
        );
    });
}

#[test]
fn a_pe_that_is_alone_has_no_memory_to_share() {
    node(&[3], 9, no_file, |_, node| {
        assert!(node.memory.is_none() && node.liveness.is_empty())
    });
}

#[test]
fn a_first_pe_that_dies_is_an_error() {
    node(&[0, 1], 2, no_file, |pe, mut node| {
        if pe == 1 {
            let error = node.peers.broadcast(None::<bool>).expect_err("it is gone");
            assert!(error.to_string().contains("PE 0"), "{error}");
        }
    });
}

#[test]
fn two_processes_cannot_have_one_number() {
    let key = new_key();
    let _first = NodeSockets::open(key.clone(), 1, ANSWER).expect("a name");
    let error = NodeSockets::open(key, 1, ANSWER).expect_err("the name is taken");
    assert!(error.to_string().contains("PE 1"), "{error}");
}

/// Returns PEs 0 and 1 of a node, with this limit for each step.
fn two(limit: Duration) -> (NodeSockets, NodeSockets) {
    let open = |key, pe| NodeSockets::open(key, pe, limit).expect("a name");
    let key = new_key();
    (open(key.clone(), 0), open(key, 1))
}

#[test]
fn a_pe_that_never_comes_is_named() {
    let (first, _silent) = two(Duration::from_millis(50));
    let error = first
        .connect_node(2, None)
        .expect_err("PE 1 does nothing")
        .to_string();
    assert!(
        error.contains("PE 0 has waited") && error.contains("PE 1"),
        "{error}"
    );
}

#[test]
fn a_pe_that_ends_before_it_comes_is_named() {
    let (first, other) = two(ANSWER);
    let awaited = first.awaited(2).expect("a look");
    drop(other);
    let error = first
        .accept_hellos(awaited, &mut BTreeMap::new())
        .expect_err("PE 1 has ended");
    assert!(error.to_string().contains("PE 1"), "{error}");
}

#[test]
fn a_first_pe_that_never_answers_is_named() {
    let (_silent, other) = two(Duration::from_millis(500));
    let error = other
        .connect_node(2, None)
        .expect_err("PE 0 does nothing")
        .to_string();
    assert!(
        error.contains("PE 1 has waited 1 s") && error.contains("PE 0"),
        "{error}"
    );
}

#[test]
fn a_first_pe_that_ends_before_it_answers_is_named() {
    for reads in [false, true] {
        let (first, other) = two(ANSWER);
        thread::scope(|scope| {
            let connecting = scope.spawn(|| other.connect_node(2, None));
            while !time_limit::is_readable(&first.socket, SLICE).expect("a look") {}
            if reads {
                first
                    .next_hello(SLICE)
                    .expect("it listens")
                    .expect("a hello");
            }
            drop(first);

            let error = connecting
                .join()
                .expect("no panic")
                .expect_err("PE 0 has ended")
                .to_string();
            assert!(error.contains("PE 0"), "{error}");
        });
    }
}

#[test]
fn a_first_pe_without_the_secret_is_refused() {
    let (first, other) = two(ANSWER);
    thread::scope(|scope| {
        let connecting = scope.spawn(|| other.connect_node(2, None));
        let (pe, joined) = loop {
            if let Some(hello) = first.next_hello(SLICE).expect("it listens") {
                break hello;
            }
        };

        let without_secret = NodeSockets {
            key: new_key(),
            ..first
        };
        let memory = new_memory().expect("a memfd");
        // PE 1 may refuse and close the stream before all of it is sent.
        let _ = without_secret.answer(pe, &joined.stream, memory.as_fd(), &[None, None]);

        let error = connecting
            .join()
            .expect("no panic")
            .expect_err("another key")
            .to_string();
        assert!(error.contains("does not know the secret"), "{error}");
    });
}

#[test]
fn a_pe_of_another_user_is_not_heard() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let (first, other) = two(Duration::from_millis(300));
    thread::scope(|scope| {
        scope.spawn(|| {
            become_another();
            other.connect_node(2, None).expect_err("no answer");
        });
        let error = first
            .connect_node(2, None)
            .expect_err("PE 1 is another user's")
            .to_string();
        assert!(error.contains("PE 1"), "{error}");
    });
}

/// The messages of an attacker.
#[derive(Clone, Copy, Debug)]
enum Attack {
    /// Nothing, in a datagram.
    Empty,
    /// More than a hello.
    Long,
    /// A hello without a proof, with a descriptor.
    Descriptor,
}

/// Sends a datagram to PE `pe`. Returns false if the queue is full or there is no such PE.
fn intrude(key: &NodeKey, pe: u32, attack: Attack, wait: Option<Duration>) -> bool {
    let flags = if wait.is_some() {
        SocketFlags::empty()
    } else {
        SocketFlags::NONBLOCK
    };
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None);
    let socket = socket.expect("a socket");
    set_socket_timeout(&socket, Timeout::Send, wait).expect("a socket");
    if rustix::net::connect(&socket, &key.name(pe).expect("a name")).is_err() {
        return false;
    }

    let words: &[u8] = match attack {
        Attack::Empty => b"",
        Attack::Long => &[0xA5; 4096],
        Attack::Descriptor => &[1; HANDSHAKE],
    };
    let fds: &[_] = if let Attack::Descriptor = attack {
        &[socket.as_fd()]
    } else {
        &[]
    };
    unix_socket::send(
        &socket,
        words,
        fds,
        &mut TimeLeft::new(Duration::from_millis(20)),
    )
    .is_ok()
}

/// Changes the user of this thread if it is root.
fn become_another() {
    if rustix::process::geteuid().is_root() {
        rustix::thread::set_thread_uid(Uid::from_raw(65534)).expect("root may");
    }
}

/// Checks that the PEs of a node connect although all their queues are full at first, and other
/// users go on to fill them.
#[test]
fn other_users_keep_nobody_waiting() {
    for attack in [Attack::Empty, Attack::Long, Attack::Descriptor] {
        const PES: [u32; 4] = [1, 2, 4, 5];
        let key = new_key();
        let sockets = PES.map(|pe| NodeSockets::open(key.clone(), pe, ANSWER).expect("a name"));
        let full = Barrier::new(4);
        let over = AtomicBool::new(false);
        let attack = |attacker| {
            become_another();
            if attacker == 0 {
                for pe in PES {
                    let n = (0..1 << 16).take_while(|_| intrude(&key, pe, attack, None));
                    assert_ne!(n.count(), 0, "PE {pe} has a queue");
                }
            }
            full.wait();
            while !over.load(Ordering::Relaxed) {
                intrude(&key, PES[0], attack, Some(Duration::from_millis(20)));
            }
        };

        thread::scope(|scope| {
            for attacker in 0..3 {
                let attack = &attack;
                scope.spawn(move || attack(attacker));
            }
            full.wait();

            let node = sockets.map(|sockets| {
                scope.spawn(move || {
                    let pe = sockets.pe as u8;
                    let mut node = sockets.connect_node(6, None).expect("node");
                    let gathered = node.peers.gather(&[pe]).expect("parts");
                    node.peers.broadcast(gathered).expect("the whole")
                })
            });
            // The attackers end before anything can panic, since the scope waits for them.
            let node = node.map(|pe| pe.join());
            over.store(true, Ordering::Relaxed);
            let expected = PES.map(|pe| vec![pe as u8]);
            for whole in node {
                assert!(whole.expect("no panic").iter().eq(&expected));
            }
        });
    }
}
