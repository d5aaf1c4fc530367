//! A PE that refuses each attempt to connect, and an attempt that is not finished.
#![allow(unsafe_code)]

use super::pair::{HEAP, PEER, TestPair, pair};
use crate::shared::SharedState;
use rushmem_system::lock::lock;
use rushmem_transport::engine::Wire;
use rushmem_transport::engine::driver::Driver;
use rushmem_transport::{Completion, Endpoint, Error, Put, SourceBuf};
use rustix::net::{AddressFamily, SocketAddrAny, SocketType, bind, getsockname, socket, sockopt};
use std::collections::HashSet;
use std::fs::read_dir;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

/// Returns the addresses at which this process listens.
fn listens_at() -> HashSet<SocketAddrAny> {
    let fds = read_dir("/proc/self/fd")
        .expect("a process has one")
        .flatten();
    let fds = fds.filter_map(|entry| entry.file_name().to_str()?.parse().ok());

    let mut addresses = HashSet::new();
    for fd in fds {
        // SAFETY: for a descriptor that was closed meanwhile the kernel only returns an error.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        if sockopt::socket_acceptconn(fd) == Ok(true)
            && let Ok(address) = getsockname(fd)
        {
            addresses.insert(address);
        }
    }
    addresses
}

/// Binds a socket to an address, without listening, so that nobody can listen there. Returns `None`
/// if the address is taken.
fn taken(address: &SocketAddrAny) -> Option<OwnedFd> {
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).ok()?;
    bind(&socket, address).ok().map(|()| socket)
}

#[test]
fn a_peer_that_refuses_is_tried_again_and_the_message_says_how_often() {
    let Some(pair) = pair("tcp,self", Duration::from_secs(30)) else {
        return;
    };
    let TestPair {
        mut endpoint,
        issuer: _issuer,
        progress: _progress,
        peer,
        ..
    } = pair;

    let before = listens_at();
    drop(peer);
    // Nobody can listen at its addresses from now on, not even a process to which the kernel gives
    // a free port.
    let _taken: Vec<_> = before.difference(&listens_at()).map(taken).collect();

    let word = 7u64.to_ne_bytes();
    let put = Put {
        remote: HEAP,
        // SAFETY: no write of the word is started, since there is no connection.
        local: unsafe { SourceBuf::new(word.as_ptr(), word.len()) },
        completion: Completion::AtQuiet,
    };

    let tried = endpoint.put(PEER, put);
    let Err(Error::Lost(PEER, why)) = tried else {
        panic!("{tried:?}")
    };

    let found = why.split_once("PE 0 has tried ").expect(&why).1;
    let n: u32 = found
        .split(' ')
        .next()
        .and_then(|n| n.parse().ok())
        .expect(&why);
    assert!(n > 1, "{why}");

    for words in [
        "from PE 0 on here to PE 1 on here",
        " times within 1.",
        "(UCX with tcp on lo",
        "name other interfaces, devices or transports (SHMEM_TCP_INTERFACE, ",
        "SHMEM_HOST_LIMIT",
    ] {
        assert!(why.contains(words), "{words}: {why}");
    }
}

/// The flush of an attempt to connect is freed, and UCX may call back until the worker is gone.
#[test]
fn a_connection_that_is_being_made_is_given_up_at_the_end() {
    let Some(pair) = pair("tcp,self", Duration::from_secs(30)) else {
        return;
    };
    let TestPair {
        endpoint,
        issuer,
        progress,
        peer,
        ..
    } = pair;

    // The peer is not polled, so the attempt stays pending.
    let reached = lock(&issuer.origin).wire().reach(progress.network(), PEER);
    assert_eq!(reached, Ok(false));

    drop(endpoint);
    SharedState::leave(&progress);
    drop((issuer, progress, peer));
}
