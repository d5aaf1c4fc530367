//! Nodes of threads, which meet over real sockets, also while other users and other programs of
//! this user sit on them.

use std::collections::VecDeque;
use std::os::unix::fs::FileExt;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::{Resource, Rlimit, Uid, getrlimit, setrlimit};

use super::super::node_key::NodeKey;
use super::super::node_socket::BACKLOG;
use super::super::time_left::ANSWER;
use super::*;

/// A key that no other node has.
fn new_key() -> NodeKey {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    NodeKey::new(format!("test-{}-{number}", std::process::id()).as_bytes(), b"")
}

/// Runs `body` as each of the PEs, which all share a node; `together` stands for the manager's
/// fence.
fn node_of(
    key: &NodeKey,
    pes: &[u32],
    n_pes: u32,
    together: &Barrier,
    body: impl Fn(u32, NodePeers) + Sync,
) {
    thread::scope(|scope| {
        for &pe in pes {
            let body = &body;
            scope.spawn(move || {
                let socket = NodeSocket::listen(key.clone(), pe).expect("a name");
                together.wait();
                body(pe, meet(socket, n_pes, ANSWER).expect("node_peers"));
            });
        }
    });
}

fn node(pes: &[u32], n_pes: u32, body: impl Fn(u32, NodePeers) + Sync) {
    node_of(&new_key(), pes, n_pes, &Barrier::new(pes.len()), body);
}

#[test]
fn a_node_gathers_at_its_first_pe() {
    for pes in [&[0_u32][..], &[0, 1], &[5], &[2, 3, 7, 9], &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]] {
        node(pes, 12, |pe, mut node_peers| {
            assert_eq!(node_peers.led().is_some(), pe == pes[0]);
            for round in 0..3_u8 {
                let part = |pe: u32| vec![round; pe as usize * 999];
                let gathered = node_peers.gather(&part(pe)).expect("parts");
                let whole = node_peers.spread(gathered).expect("the whole");
                assert_eq!(whole, pes.iter().map(|&pe| part(pe)).collect());
            }
            if let Some(led) = node_peers.led() {
                assert_eq!(led, pes);
            }
        });
    }
}

#[test]
fn the_nodes_memory_is_one_file() {
    node(&[4, 6, 7], 8, |pe, mut node_peers| {
        let file = std::fs::File::from(node_peers.take_memory().expect("memory"));
        assert!(node_peers.take_memory().is_none());
        if pe == 4 {
            file.write_all_at(b"here", 0).expect("written");
            node_peers.spread_several(Some(true)).expect("sent");
        } else {
            assert!(node_peers.spread_several(None).expect("heard"));
            let mut text = [0; 4];
            file.read_exact_at(&mut text, 0).expect("read");
            assert_eq!(&text, b"here");
        }
    });
}

#[test]
fn all_pes_get_the_files_of_all() {
    let pes = [1, 2, 5, 6];
    let file = |pe: u32| {
        let file = std::fs::File::from(memfd_create("test", MemfdFlags::empty()).expect("a memfd"));
        file.write_all_at(&[pe as u8], 0).expect("written");
        OwnedFd::from(file)
    };
    node(&pes, 7, |pe, node_peers| {
        let own = (pe != 5).then(|| file(pe));
        let files = node_peers.share_files(own.as_ref().map(AsFd::as_fd), pes.len());
        let numbers = files.expect("files").into_iter().map(|file| {
            let mut number = [0];
            std::fs::File::from(file?).read_exact_at(&mut number, 0).expect("read");
            Some(number[0])
        });
        assert_eq!(numbers.collect::<Vec<_>>(), [Some(1), Some(2), None, Some(6)]);
    });
}

#[test]
fn a_pe_that_is_alone_has_no_memory_to_share() {
    node(&[3], 9, |_, mut node_peers| assert!(node_peers.take_memory().is_none()));
}

#[test]
fn a_first_pe_that_dies_is_an_error() {
    node(&[0, 1], 2, |pe, mut node_peers| {
        if pe == 1 {
            let error = node_peers.spread_nodes(None).expect_err("it is gone");
            assert!(error.to_string().contains("PE 0"), "{error}");
        }
    });
}

#[test]
fn two_processes_cannot_have_one_number() {
    let key = new_key();
    let _first = NodeSocket::listen(key.clone(), 1).expect("a name");
    let error = NodeSocket::listen(key, 1).expect_err("the name is taken");
    assert!(error.to_string().contains("PE 1"), "{error}");
}

#[test]
fn a_pe_that_never_comes_is_named() {
    let key = new_key();
    let first = NodeSocket::listen(key.clone(), 0).expect("a name");
    let _silent = NodeSocket::listen(key, 1).expect("a name");
    let error = meet(first, 2, Duration::from_millis(50)).expect_err("PE 1 does nothing");
    let error = error.to_string();
    assert!(error.contains("PE 0 has waited") && error.contains("PE 1"), "{error}");
}

#[test]
fn a_pe_that_ends_before_it_comes_is_named() {
    let key = new_key();
    let first = NodeSocket::listen(key.clone(), 0).expect("a name");
    let other = NodeSocket::listen(key, 1).expect("a name");
    thread::scope(|scope| {
        let meeting = scope.spawn(|| meet(first, 2, ANSWER));
        // It has seen PE 1, and so waits for it.
        while other.accept().is_none() {
            sleep(PAUSE);
        }
        drop(other);
        let error = meeting.join().expect("no panic").expect_err("PE 1 has ended").to_string();
        assert!(error.contains("PE 1"), "{error}");
    });
}

#[test]
fn a_first_pe_that_never_answers_is_named() {
    let key = new_key();
    let _silent = NodeSocket::listen(key.clone(), 0).expect("a name");
    let other = NodeSocket::listen(key, 1).expect("a name");
    let error = meet(other, 2, Duration::from_millis(500)).expect_err("PE 0 does nothing");
    let error = error.to_string();
    assert!(error.contains("PE 1 has waited 1 s") && error.contains("PE 0"), "{error}");
}

#[test]
fn a_first_pe_that_ends_before_it_answers_is_named() {
    let key = new_key();
    let first = NodeSocket::listen(key.clone(), 0).expect("a name");
    let other = NodeSocket::listen(key, 1).expect("a name");
    thread::scope(|scope| {
        let meeting = scope.spawn(|| meet(other, 2, ANSWER));
        let mut admission = Admission::new(&first);
        while admission.admit(SLICE).expect("it listens").is_empty() {}
        drop(admission);
        drop(first);
        let error = meeting.join().expect("no panic").expect_err("PE 0 has ended").to_string();
        assert!(error.contains("PE 0"), "{error}");
    });
}

/// What an attacker does with a connection.
#[derive(Clone, Copy, Debug)]
enum Attack {
    /// It holds it and says nothing.
    Hold,
    /// It sends what is no hello, and holds it.
    Babble,
    /// It sends the beginning of a hello, and holds it.
    Stammer,
}

/// The attacker's connection to PE `pe`, `None` where the queue is full or nobody listens.
fn intrude(key: &NodeKey, pe: u32, attack: Attack, wait: Option<Duration>) -> Option<UnixStream> {
    let flags = if wait.is_some() { SocketFlags::empty() } else { SocketFlags::NONBLOCK };
    let socket =
        rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).ok()?;
    set_socket_timeout(&socket, Timeout::Send, wait).expect("a socket");
    rustix::net::connect(&socket, &key.name(pe).expect("a name")).ok()?;
    let words: &[u8] = match attack {
        Attack::Hold => b"",
        Attack::Babble => &[0xA5; 4096],
        Attack::Stammer => &[0, 0, 0, 0, 1],
    };
    // It may have been sent away already.
    let _ = rustix::net::send(&socket, words, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
    Some(socket.into())
}

/// Becomes another user, where this one may.
fn become_another() {
    if rustix::process::geteuid().is_root() {
        rustix::thread::set_thread_uid(Uid::from_raw(65534)).expect("root may");
    }
}

/// Connects to the socket of PE `pe` as fast as it can, holding `MOST` connections, until `over`.
fn besiege(key: &NodeKey, pe: u32, attack: Attack, over: &AtomicBool) {
    const MOST: usize = 100;
    let mut held = VecDeque::new();
    while !over.load(Ordering::Relaxed) {
        held.extend(intrude(key, pe, attack, Some(Duration::from_millis(20))));
        if held.len() > MOST {
            held.pop_front();
        }
    }
}

/// A node meets although all queues were full before, and attackers go on; as another user if
/// `is_foreign`.
fn meets_under(attack: Attack, is_foreign: bool) {
    // Many of the process's descriptors are the attackers'.
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).expect("a soft limit");
    const PES: [u32; 4] = [1, 2, 4, 5];
    let key = new_key();
    let sockets = PES.map(|pe| NodeSocket::listen(key.clone(), pe).expect("a name"));
    let (full, over) = (Barrier::new(4), AtomicBool::new(false));
    thread::scope(|scope| {
        for attacker in 0..3 {
            let (key, full, over) = (&key, &full, &over);
            scope.spawn(move || {
                if is_foreign {
                    become_another();
                }
                let mut held = Vec::new();
                if attacker == 0 {
                    for pe in PES {
                        held.extend(std::iter::from_fn(|| intrude(key, pe, attack, None)));
                    }
                    assert!(held.len() >= PES.len() * BACKLOG as usize, "{} held", held.len());
                }
                full.wait();
                besiege(key, PES[0], attack, over);
            });
        }
        full.wait();
        let met: Vec<_> = sockets
            .into_iter()
            .map(|socket| {
                scope.spawn(move || {
                    let pe = socket.pe() as u8;
                    let mut node_peers = meet(socket, 6, ANSWER).expect("node_peers");
                    let gathered = node_peers.gather(&[pe]).expect("parts");
                    node_peers.spread(gathered).expect("the whole")
                })
            })
            .collect();
        let met: Vec<_> = met.into_iter().map(|pe| pe.join()).collect();
        over.store(true, Ordering::Relaxed);
        for whole in met {
            assert!(whole.expect("no panic").iter().eq(&PES.map(|pe| vec![pe as u8])));
        }
    });
}

#[test]
fn other_users_keep_nobody_waiting() {
    for attack in [Attack::Hold, Attack::Babble, Attack::Stammer] {
        meets_under(attack, true);
    }
}

#[test]
fn other_programs_of_this_user_keep_nobody_waiting() {
    for attack in [Attack::Hold, Attack::Babble, Attack::Stammer] {
        meets_under(attack, false);
    }
}
