//! Unit tests of the order in which data leave where much waits.
#![allow(unsafe_code)]

use super::*;
use crate::proto::MAX_BATCH;
use crate::target::LoneHost;
use rushmem_transport::kit::batch::append_update;
use rushmem_transport::kit::stream::Update;
use rushmem_transport::kit::timer::sleep_on;
use rushmem_transport::thread::spawn_service;
use rushmem_transport::{AmoOp, AmoWidth, RemoteAddr, Segment};
use rustix::event::{PollFd, PollFlags};
use rustix::net::sockopt;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::time::Duration;

const BYTES: usize = 4 << 20;
/// Bytes of the head of a frame.
const HEAD: usize = 16;

/// An answer to a request of the peer waits at most for the data being sent, not for all that
/// waits.
#[test]
fn an_answer_leaves_between_the_data() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let socket = TcpStream::connect(listener.local_addr().expect("a port")).expect("it listens");
    let (mut peer, _) = listener.accept().expect("it is connected");
    socket.set_nonblocking(true).expect("a socket");
    let mut connection = Connection::new(socket, Arc::new(LoneHost));
    let (data, at) = (vec![1u8; BYTES], RemoteAddr { segment: Segment::Heap, offset: 0 });
    for _ in 0..8 {
        let source = LocalBuf::source(data.as_ptr(), BYTES);
        // SAFETY: the vector is valid until the connection is dropped.
        unsafe { connection.origin.put(at, source, (false, false)) };
    }
    connection.flush().expect("it is connected");
    assert!(connection.is_blocked(), "more than the kernel has room for");
    let requested = connection.target.take(&Segments::default(), RequestFrame::Sync, 0, &[]);
    requested.expect("it asks for an answer");
    let (mut reader, mut buffer) = (Reader::new(), vec![0; 1 << 16]);
    let (mut puts, mut answered_after) = (0, None);
    while puts < 8 {
        connection.flush().expect("it is connected");
        let nbytes = peer.read(&mut buffer).expect("it is connected");
        let fed = reader.feed(&buffer[..nbytes], |piece| {
            match piece.head {
                Frame::Request(_) => puts += usize::from(piece.done + piece.bytes.len() == BYTES),
                Frame::Reply(_) => answered_after = Some(puts),
            }
            Ok(())
        });
        fed.expect("frames");
    }
    let answered_after = answered_after.expect("the answer was sent");
    // The kernel's buffers had room for some of it.
    assert!((1..8).contains(&answered_after), "after {answered_after} of 8");
    drop(connection);
    drop(data);
}

/// Returns a connection to a peer that is a socket of the test's own.
fn connected() -> (Connection, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let socket = TcpStream::connect(listener.local_addr().expect("a port")).expect("it listens");
    let (peer, _) = listener.accept().expect("it is connected");
    socket.set_nonblocking(true).expect("a socket");
    (Connection::new(socket, Arc::new(LoneHost)), peer)
}

/// Memory that changes while the kernel has no room for more of it leaves in whole words.
#[test]
fn a_get_reads_whole_words() {
    const WORDS: usize = 1 << 16;
    let mut heap = vec![0u64; WORDS];
    let base = heap.as_mut_ptr();
    let segments = Segments::default();
    let memory = LocalBuf { base: base.cast(), nbytes: 8 * WORDS };
    // SAFETY: the vector outlives the segments.
    unsafe { segments.register(Segment::Heap, memory, ()) }.expect("the first");
    let (mut connection, mut peer) = connected();
    sockopt::set_socket_send_buffer_size(&connection.socket, 16 << 10).expect("a socket");
    sockopt::set_socket_recv_buffer_size(&peer, 16 << 10).expect("a socket");
    for round in 0..8u32 {
        let fill = |value: u8| {
            // SAFETY: all of the vector, which nobody else uses now.
            unsafe { base.write_bytes(value, WORDS) };
        };
        fill(0);
        let source = RemoteAddr { segment: Segment::Heap, offset: 0 };
        // A byte more than words before it, so that the kernel's buffers end within words.
        let odd = RequestFrame::Get { source, nbytes: 1 + round % 7, in_parts: false };
        connection.target.take(&segments, odd, 0, &[]).expect("within the segment");
        // From and to any place within the first and the last word.
        let nbytes = 8 * (WORDS - 1) - round as usize % 5;
        let source = RemoteAddr { offset: u64::from(round), ..source };
        let get = RequestFrame::Get { source, nbytes: nbytes as u32, in_parts: false };
        connection.target.take(&segments, get, 0, &[]).expect("within the segment");
        let before = 2 * HEAD + 1 + round as usize % 7;
        let (mut received, mut buffer) = (Vec::new(), vec![0; 10_003]);
        while received.len() < before + nbytes {
            connection.flush().expect("it is connected");
            fill(received.len() as u8);
            let nbytes = peer.read(&mut buffer).expect("it is connected");
            received.extend_from_slice(&buffer[..nbytes]);
        }
        let first = (8 - round as usize) % 8;
        let mut bytes = received[before + first..].chunks_exact(8);
        assert!(bytes.all(|word| word.iter().all(|byte| *byte == word[0])), "round {round}");
    }
    drop((connection, segments, heap));
}

/// A request does not wait behind a long answer that this PE owed before.
#[test]
fn a_long_answer_leaves_after_the_next_request() {
    let mut heap = vec![0u8; BYTES];
    let memory = LocalBuf { base: heap.as_mut_ptr(), nbytes: BYTES };
    let segments = Segments::default();
    // SAFETY: the vector outlives the segments.
    unsafe { segments.register(Segment::Heap, memory, ()) }.expect("the first");
    let source = RemoteAddr { segment: Segment::Heap, offset: 0 };
    let mut private = vec![0u8; BYTES];
    let dest = LocalBuf { base: private.as_mut_ptr(), nbytes: BYTES };
    for (nbytes, answer_is_first) in [(8, true), (BYTES as u32, false)] {
        let (mut connection, mut peer) = connected();
        // An answer before may have left the turn to either.
        connection.replies_turn = true;
        let request = RequestFrame::Get { source, nbytes, in_parts: false };
        peer.write_all(&request.encode()).expect("room for it");
        let buffers = BounceBuffers::default();
        while connection.target.done == 0 {
            connection.receive(&segments, &buffers).expect("it is connected");
        }
        // SAFETY: the vector is valid until the connection is dropped.
        unsafe { connection.origin.get(source, dest, (false, false)) };
        connection.flush().expect("it is connected");
        let mut head = [0; HEAD];
        peer.read_exact(&mut head).expect("it is connected");
        let is_answer = matches!(Frame::decode(&head), Ok(Frame::Reply(_)));
        assert_eq!(is_answer, answer_is_first, "{nbytes} bytes");
    }
    drop((segments, heap, private));
}

/// A thread of the library that sleeps whenever nothing has come receives a long body to its end,
/// though it is not woken for each part, and then what follows.
#[test]
fn a_thread_that_sleeps_is_woken_for_the_end_of_a_body() {
    const NBYTES: usize = 1 << 20;
    let mut heap = vec![0u8; NBYTES];
    let memory = LocalBuf { base: heap.as_mut_ptr(), nbytes: NBYTES };
    let segments = Segments::default();
    // SAFETY: the vector outlives the segments.
    unsafe { segments.register(Segment::Heap, memory, ()) }.expect("the first");
    let (mut connection, mut peer) = connected();
    let receiver = move || {
        let buffers = BounceBuffers::default();
        while connection.target.done < 2 {
            let mut fds = [PollFd::new(&connection.socket, PollFlags::IN)];
            sleep_on(&mut fds, Duration::from_secs(20));
            assert!(!fds[0].revents().is_empty(), "what has come is not reported");
            connection.receive(&segments, &buffers).expect("it is connected");
        }
    };
    let receiver = spawn_service("receiver", receiver).expect("a thread");
    let dest = RemoteAddr { segment: Segment::Heap, offset: 0 };
    for nbytes in [NBYTES - 8, 8] {
        let put = RequestFrame::Put { dest, nbytes: nbytes as u32, in_parts: false };
        peer.write_all(&put.encode()).expect("it is connected");
        // Parts that end anywhere.
        vec![1u8; nbytes]
            .chunks(1009)
            .for_each(|part| peer.write_all(part).expect("it is connected"));
    }
    assert!(receiver.join().is_ok());
    assert_eq!(heap[..NBYTES - 8], vec![1; NBYTES - 8]);
}

/// Nothing is written for a peer that has said that it leaves, however long its request is.
#[test]
fn a_request_after_the_farewell_is_refused() {
    const NBYTES: usize = 1 << 16;
    let put = |nbytes, in_parts| {
        let dest = RemoteAddr { segment: Segment::Heap, offset: 0 };
        RequestFrame::Put { dest, nbytes: nbytes as u32, in_parts }.encode()
    };
    for (nbytes, head) in [
        (8, put(8, false)),
        (NBYTES, put(NBYTES, false)),
        (NBYTES, put(NBYTES, true)),
        (8, RequestFrame::Batch { nbytes: 8 }.encode()),
        (MAX_BATCH, RequestFrame::Batch { nbytes: MAX_BATCH as u32 }.encode()),
    ] {
        let mut heap = vec![0u8; NBYTES];
        let memory = LocalBuf { base: heap.as_mut_ptr(), nbytes: NBYTES };
        let segments = Segments::default();
        // SAFETY: the vector outlives the segments.
        unsafe { segments.register(Segment::Heap, memory, ()) }.expect("the first");
        let (mut connection, mut peer) = connected();
        peer.write_all(&RequestFrame::Bye.encode()).expect("room for it");
        peer.write_all(&head).expect("room for it");
        let buffers = BounceBuffers::default();
        let mut body = vec![1u8; nbytes].into_iter();
        let end = loop {
            match connection.receive(&segments, &buffers) {
                Ok(_) => match body.next() {
                    Some(byte) => peer.write_all(&[byte]).expect("room for it"),
                    None => peer.shutdown(Shutdown::Write).expect("a socket"),
                },
                Err(end) => break end,
            }
        };
        assert!(end.to_string().contains("request after its farewell"), "{end}");
        drop((connection, segments));
        assert_eq!(heap, vec![0; NBYTES]);
    }
}

/// Batches that no PE would send: one that ends early, one for a PE that is not of this node, one
/// that is too long. What is before the damage may be carried out.
#[test]
fn a_damaged_batch_ends_the_connection() {
    let mut heap = vec![0u64; 8];
    let memory = LocalBuf { base: heap.as_mut_ptr().cast(), nbytes: 64 };
    let segments = Segments::default();
    // SAFETY: the vector outlives the segments.
    unsafe { segments.register(Segment::Heap, memory, ()) }.expect("the first");
    let batch = |offset, place| {
        let dest = RemoteAddr { segment: Segment::Heap, offset };
        let (op, width) = (AmoOp::Add, AmoWidth::Eight);
        let update = Update { op, width, dest, operand: 1, condition: 0 };
        let mut batch = Vec::new();
        append_update(&mut batch, (&update, place), false);
        batch
    };
    let long = [&batch(0, 0)[..], &[0; 50], &batch(0, 0)].concat();
    let right = batch(8, 0).repeat(100);
    let cases = [
        (&batch(0, 0)[..19], Some("damaged batch")),
        (&batch(64, 0), Some("damaged batch")),
        (&batch(0, 1), Some("damaged batch")),
        (&long, Some("damaged batch")),
        (&[0; MAX_BATCH + 1], Some("a message of 32769 bytes")),
        (&right, None),
    ];
    for (body, why) in cases {
        let (mut connection, mut peer) = connected();
        let head = RequestFrame::Batch { nbytes: body.len() as u32 };
        peer.write_all(&head.encode()).expect("room for it");
        peer.write_all(body).expect("room for it");
        peer.shutdown(Shutdown::Write).expect("a socket");
        let buffers = BounceBuffers::default();
        let end = loop {
            match connection.receive(&segments, &buffers) {
                Ok(_) => {}
                Err(end) => break end.to_string(),
            }
        };
        assert!(end.contains(why.unwrap_or("its connection was closed")), "{end}");
    }
    drop(segments);
    assert_eq!(heap, [1, 100, 0, 0, 0, 0, 0, 0]);
}

const ACCESSIBLE: usize = 1 << 20;
const PAGE: usize = 4096;

/// Returns memory whose last page cannot be accessed. The mapping is never undone.
fn with_a_bad_page() -> LocalBuf {
    let (none, private) = (std::ptr::null_mut(), libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    let (nbytes, access) = (ACCESSIBLE + PAGE, libc::PROT_READ | libc::PROT_WRITE);
    // SAFETY: a new mapping.
    let base = unsafe { libc::mmap(none, nbytes, access, private, -1, 0) };
    assert_ne!(base, libc::MAP_FAILED);
    // SAFETY: the last page of the mapping.
    let code = unsafe { libc::mprotect(base.wrapping_byte_add(ACCESSIBLE), PAGE, libc::PROT_NONE) };
    assert_eq!(code, 0);
    LocalBuf { base: base.cast(), nbytes }
}

/// The kernel takes what comes before the page that it cannot read.
#[test]
fn a_fault_names_the_whole_source_though_a_part_has_left() {
    let source = with_a_bad_page();
    let (mut connection, mut peer) = connected();
    let at = RemoteAddr { segment: Segment::Heap, offset: 0 };
    // SAFETY: the mapping is never undone, and the kernel finds what it cannot read.
    unsafe { connection.origin.put(at, source, (false, false)) };
    let mut buffer = vec![0; ACCESSIBLE];
    let end = loop {
        match connection.flush() {
            Ok(()) => peer.read(&mut buffer).expect("it is connected"),
            Err(end) => break end,
        };
    };
    assert!(connection.origin.positions().1 > PAGE as u64, "a part has left");
    let fault = Fault::new(LocalAccess::Read, source);
    assert!(matches!(end, ConnectionEnd::Fault(found) if found == fault), "{end}");
}

/// The kernel stores what comes before the page that it cannot write.
#[test]
fn a_fault_names_the_whole_destination_though_a_part_has_come() {
    let dest = with_a_bad_page();
    let (mut connection, mut peer) = connected();
    let source = RemoteAddr { segment: Segment::Heap, offset: 0 };
    // SAFETY: the mapping is never undone, and the kernel finds what it cannot write.
    let seq = unsafe { connection.origin.get(source, dest, (false, false)) };
    let answer = ReplyFrame::Data { seq, nbytes: dest.nbytes as u32 };
    peer.write_all(&answer.encode()).expect("room for it");
    let (segments, buffers) = (Segments::default(), BounceBuffers::default());
    let part = [1; PAGE];
    let end = loop {
        match connection.receive(&segments, &buffers) {
            Ok(_) => peer.write_all(&part).expect("room for it"),
            Err(end) => break end,
        }
    };
    // SAFETY: its first byte can be read, and nobody writes it any more.
    assert_eq!(unsafe { dest.base.read() }, 1, "a part has come");
    let fault = Fault::new(LocalAccess::Write, dest);
    assert!(matches!(end, ConnectionEnd::Fault(found) if found == fault), "{end}");
}
