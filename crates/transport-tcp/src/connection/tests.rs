//! Unit tests of a connection: the order in which queued data are sent, whole words, and violations
//! of the protocol.
#![allow(unsafe_code)]

use super::*;
use crate::proto::MAX_DATA;
use rushmem_system::thread::spawn_service;
use rushmem_transport::engine::entries::append_amo;
use rushmem_transport::engine::message::{REQUEST, Request, Stream, StreamPosition};
use rushmem_transport::progress::timer::sleep_on;
use rushmem_transport::{AmoOp, AmoRequest, AmoWidth, DestBuf, RemoteAddr, Segment, SourceBuf};
use rustix::event::{PollFd, PollFlags};
use rustix::net::sockopt;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};

const ME: Pe = Pe(0);
const PEER: Pe = Pe(1);
const BYTES: usize = 4 << 20;
/// Bytes of the head of a frame.
const HEAD: usize = 16;

/// An answer to a request of the peer waits at most for the range that is being sent, not for all
/// queued data.
#[test]
fn an_answer_leaves_between_the_data() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let socket = TcpStream::connect(listener.local_addr().expect("a port")).expect("it listens");
    let (mut peer, _) = listener.accept().expect("it is connected");
    socket.set_nonblocking(true).expect("a socket");
    let mut heap = [0u64; 1];
    let memory = LocalBuf {
        base: heap.as_mut_ptr().cast(),
        nbytes: 8,
    };
    let receiving = ReceivingPe::for_tests();
    let segments = &receiving.local.segments;
    // SAFETY: the array outlives the segments.
    unsafe { segments.register(Segment::Heap, memory, ()) }.expect("the first");
    let mut connection = Connection::new(socket, PEER);

    let data = vec![1u8; BYTES];
    let at = RemoteAddr {
        segment: Segment::Heap,
        offset: 0,
    };

    for _ in 0..8 {
        // SAFETY: the vector is valid until the connection is dropped.
        let mut source = unsafe { SourceBuf::new(data.as_ptr(), BYTES) };
        let put = connection.put(
            &Tuning::default(),
            at,
            &mut source,
            false,
            WriteSent::WithNext,
        );
        assert!(put.expect("it is connected").is_some(), "room for it");
    }

    connection.flush().expect("it is connected");
    assert!(connection.is_blocked(), "more than the kernel has room for");

    let get = RequestFrame::Get {
        source: at,
        nbytes: 8,
        in_parts: false,
    };
    let requested = connection.target.take(&receiving.local, get, 0, &[]);
    requested.expect("it asks for an answer");

    let mut reader = Reader::new();
    let mut buffer = vec![0; 1 << 16];
    let mut puts = 0;
    let mut answered_after = None;
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
    // The kernel's buffers had room for some of the puts before the answer was queued.
    assert!(
        (1..8).contains(&answered_after),
        "after {answered_after} of 8"
    );

    drop(connection);
    drop(data);
}

/// Returns a connection, and the peer's socket, which the test uses.
fn connected() -> (Connection, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let socket = TcpStream::connect(listener.local_addr().expect("a port")).expect("it listens");
    let (peer, _) = listener.accept().expect("it is connected");
    socket.set_nonblocking(true).expect("a socket");
    (Connection::new(socket, PEER), peer)
}

/// Memory that changes while the kernel has no room for the rest of it is sent in whole words.
#[test]
fn a_get_reads_whole_words() {
    const WORDS: usize = 1 << 16;
    let mut heap = vec![0u64; WORDS];
    let base = heap.as_mut_ptr();
    let receiving = ReceivingPe::for_tests();
    let segments = &receiving.local.segments;
    let memory = LocalBuf {
        base: base.cast(),
        nbytes: 8 * WORDS,
    };
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

        let source = RemoteAddr {
            segment: Segment::Heap,
            offset: 0,
        };

        // An answer of a few bytes is first, so that the kernel's buffers end within words.
        let odd = RequestFrame::Get {
            source,
            nbytes: 1 + round % 7,
            in_parts: false,
        };
        connection
            .target
            .take(&receiving.local, odd, 0, &[])
            .expect("within the segment");

        // The get begins within the first word and ends within the last one.
        let nbytes = 8 * (WORDS - 1) - round as usize % 5;
        let source = RemoteAddr {
            offset: u64::from(round),
            ..source
        };
        let get = RequestFrame::Get {
            source,
            nbytes: nbytes as u32,
            in_parts: false,
        };
        connection
            .target
            .take(&receiving.local, get, 0, &[])
            .expect("within the segment");

        let before = 2 * HEAD + 1 + round as usize % 7;
        let mut received = Vec::new();
        let mut buffer = vec![0; 10_003];
        while received.len() < before + nbytes {
            connection.flush().expect("it is connected");
            fill(received.len() as u8);
            let nbytes = peer.read(&mut buffer).expect("it is connected");
            received.extend_from_slice(&buffer[..nbytes]);
        }

        let first = (8 - round as usize) % 8;
        let mut bytes = received[before + first..].chunks_exact(8);
        assert!(
            bytes.all(|word| word.iter().all(|byte| *byte == word[0])),
            "round {round}"
        );
    }

    drop((connection, receiving, heap));
}

/// A request is sent before a long answer that was queued earlier.
#[test]
fn a_long_answer_leaves_after_the_next_request() {
    let mut heap = vec![0u8; BYTES];
    let memory = LocalBuf {
        base: heap.as_mut_ptr(),
        nbytes: BYTES,
    };
    let receiving = ReceivingPe::for_tests();
    let segments = &receiving.local.segments;
    // SAFETY: the vector outlives the segments.
    unsafe { segments.register(Segment::Heap, memory, ()) }.expect("the first");

    let source = RemoteAddr {
        segment: Segment::Heap,
        offset: 0,
    };
    let mut private = vec![0u8; BYTES];

    for (nbytes, answer_is_first) in [(8, true), (BYTES as u32, false)] {
        let (mut connection, mut peer) = connected();
        // As after an earlier answer: replies would be sent next.
        connection.replies_turn = true;

        let request = RequestFrame::Get {
            source,
            nbytes,
            in_parts: false,
        };
        peer.write_all(&request.encode()).expect("room for it");
        while !connection.receive(&receiving).expect("it is connected") {}

        // SAFETY: the vector is valid until the connection is dropped.
        let mut dest = unsafe { DestBuf::new(private.as_mut_ptr(), BYTES) };
        let get = connection.get(&Tuning::default(), source, &mut dest, false, false, true);
        assert!(get.expect("it is connected").is_some(), "room for it");

        let mut head = [0; HEAD];
        peer.read_exact(&mut head).expect("it is connected");
        let is_answer = matches!(Frame::decode(&head), Ok(Frame::Reply(_)));
        assert_eq!(is_answer, answer_is_first, "{nbytes} bytes");
    }

    drop((receiving, heap, private));
}

/// A service thread that sleeps whenever no data have arrived receives a long body to its end,
/// although it is not woken for each part, and then the next body.
#[test]
fn a_thread_that_sleeps_is_woken_for_the_end_of_a_body() {
    const NBYTES: usize = 1 << 20;
    let mut heap = vec![0u8; NBYTES];
    let memory = LocalBuf {
        base: heap.as_mut_ptr(),
        nbytes: NBYTES,
    };
    let receiving = ReceivingPe::for_tests();
    let segments = &receiving.local.segments;
    // SAFETY: the vector outlives the segments.
    unsafe { segments.register(Segment::Heap, memory, ()) }.expect("the first");

    let (mut connection, mut peer) = connected();
    let receiver = move || {
        while !connection.has_said_bye {
            let mut fds = [PollFd::new(&connection.socket, PollFlags::IN)];
            sleep_on(&mut fds, Duration::from_secs(20));
            assert!(
                !fds[0].revents().is_empty(),
                "what has come is not reported"
            );
            connection.receive(&receiving).expect("it is connected");
        }
    };
    let receiver = spawn_service("receiver", receiver).expect("a thread");

    let dest = RemoteAddr {
        segment: Segment::Heap,
        offset: 0,
    };

    for nbytes in [NBYTES - 8, 8] {
        let put = RequestFrame::Put {
            dest,
            nbytes: nbytes as u32,
            in_parts: false,
        };
        peer.write_all(&put.encode()).expect("it is connected");
        // Each part ends within a word.
        vec![1u8; nbytes]
            .chunks(1009)
            .for_each(|part| peer.write_all(part).expect("it is connected"));
    }
    let bye = RequestFrame::Bye.encode();
    peer.write_all(&bye).expect("it is connected");

    assert!(receiver.join().is_ok());
    assert_eq!(heap[..NBYTES - 8], vec![1; NBYTES - 8]);
}

/// After a peer's goodbye, none of its requests is carried out, however long it is.
#[test]
fn a_request_after_the_farewell_is_refused() {
    const NBYTES: usize = 1 << 16;
    let put = |nbytes, in_parts| {
        let dest = RemoteAddr {
            segment: Segment::Heap,
            offset: 0,
        };
        RequestFrame::Put {
            dest,
            nbytes: nbytes as u32,
            in_parts,
        }
        .encode()
    };

    for (nbytes, head) in [
        (8, put(8, false)),
        (NBYTES, put(NBYTES, false)),
        (NBYTES, put(NBYTES, true)),
        (8, RequestFrame::Message { nbytes: 8 }.encode()),
        (
            MAX_DATA,
            RequestFrame::Message {
                nbytes: MAX_DATA as u32,
            }
            .encode(),
        ),
    ] {
        let mut heap = vec![0u8; NBYTES];
        let memory = LocalBuf {
            base: heap.as_mut_ptr(),
            nbytes: NBYTES,
        };
        let receiving = ReceivingPe::for_tests();
        let segments = &receiving.local.segments;
        // SAFETY: the vector outlives the segments.
        unsafe { segments.register(Segment::Heap, memory, ()) }.expect("the first");

        let (mut connection, mut peer) = connected();
        peer.write_all(&RequestFrame::Bye.encode())
            .expect("room for it");
        peer.write_all(&head).expect("room for it");

        let mut body = vec![1u8; nbytes].into_iter();
        let end = loop {
            match connection.receive(&receiving) {
                Ok(_) => match body.next() {
                    Some(byte) => peer.write_all(&[byte]).expect("room for it"),
                    None => peer.shutdown(Shutdown::Write).expect("a socket"),
                },
                Err(end) => break end,
            }
        };

        assert!(
            end.to_string().contains("request after its farewell"),
            "{end}"
        );

        drop((connection, receiving));
        assert_eq!(heap, vec![0; NBYTES]);
    }
}

/// Returns a message with these entries, of the first stream of PE `pe`.
fn message(pe: Pe, number: u32, after: u32, entries: &[u8]) -> Vec<u8> {
    let request = Request {
        stream: Stream { pe, origin: 0 },
        position: StreamPosition {
            number,
            after,
            asks: false,
        },
        ack: None,
        slot: None,
        nbytes: entries.len() as u16,
    };
    [&request.encode(), entries].concat()
}

/// Messages that no PE would send, such as one whose entries end early, one for a PE of another
/// node, one with data that no entry attaches, a message of another PE's stream, and one whose
/// number is too high. Operations before the damage may be carried out. The last case is a valid
/// message.
#[test]
fn a_damaged_message_ends_the_connection() {
    let mut heap = vec![0u64; 8];
    let memory = LocalBuf {
        base: heap.as_mut_ptr().cast(),
        nbytes: 64,
    };
    let receiving = ReceivingPe::for_tests();
    // SAFETY: the vector outlives the segments.
    unsafe { receiving.local.segments.register(Segment::Heap, memory, ()) }.expect("the first");

    let add = |offset, place| {
        let dest = RemoteAddr {
            segment: Segment::Heap,
            offset,
        };
        let request = AmoRequest {
            op: AmoOp::Add,
            width: AmoWidth::Eight,
            dest,
            operand: 1,
            condition: 0,
        };
        let mut entries = Vec::new();
        append_amo(&mut entries, &request, place, false);
        entries
    };

    let first = |entries: &[u8]| message(PEER, 1, 0, entries);
    let long = [&add(0, 0)[..], &[0; 50], &add(0, 0)].concat();
    let whole = first(&add(8, 0));

    let cases = [
        (first(&add(0, 0)[..19]), Some("damaged batch")),
        (first(&add(64, 0)), Some("invalid offset 64")),
        (first(&add(0, 1)), Some("damaged batch")),
        (first(&long), Some("damaged batch")),
        (whole[..whole.len() - 1].to_vec(), Some("damaged batch")),
        ([&whole[..], &[0]].concat(), Some("damaged batch")),
        (
            vec![0; REQUEST + MAX_DATA + 1],
            Some("a message of 32801 bytes"),
        ),
        (vec![0; REQUEST - 1], Some("unknown request")),
        (
            message(ME, 1, 0, &add(0, 0)),
            Some("unknown stream of requests"),
        ),
        (
            message(PEER, 2, 1, &add(0, 0)),
            Some("request 2 twice or out of its order"),
        ),
        (first(&add(8, 0).repeat(100)), None),
    ];

    for (body, why) in cases {
        let (mut connection, mut peer) = connected();
        let head = RequestFrame::Message {
            nbytes: body.len() as u32,
        };
        peer.write_all(&head.encode()).expect("room for it");
        peer.write_all(&body).expect("room for it");
        peer.shutdown(Shutdown::Write).expect("a socket");

        let end = loop {
            match connection.receive(&receiving) {
                Ok(_) => {}
                Err(end) => break end.to_string(),
            }
        };

        assert!(
            end.contains(why.unwrap_or("its connection was closed")),
            "{end}"
        );
    }

    drop(receiving);
    assert_eq!(heap, [1, 100, 0, 0, 0, 0, 0, 0]);
}

const ACCESSIBLE: usize = 1 << 20;
const PAGE: usize = 4096;

/// Returns memory whose last page cannot be accessed. The mapping is never undone.
fn with_a_bad_page() -> LocalBuf {
    let none = std::ptr::null_mut();
    let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let nbytes = ACCESSIBLE + PAGE;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping.
    let base = unsafe { libc::mmap(none, nbytes, access, private, -1, 0) };
    assert_ne!(base, libc::MAP_FAILED);

    // SAFETY: the last page of the mapping.
    let code = unsafe { libc::mprotect(base.wrapping_byte_add(ACCESSIBLE), PAGE, libc::PROT_NONE) };
    assert_eq!(code, 0);

    LocalBuf {
        base: base.cast(),
        nbytes,
    }
}

/// The kernel sends the pages before the one that it cannot read.
#[test]
fn a_source_that_cannot_be_read_is_not_the_loss_of_the_peer() {
    let source = with_a_bad_page();
    let (mut connection, mut peer) = connected();
    let at = RemoteAddr {
        segment: Segment::Heap,
        offset: 0,
    };
    // SAFETY: the mapping is never undone, and the kernel finds what it cannot read.
    let mut source = unsafe { SourceBuf::new(source.base, source.nbytes) };

    let put = connection.put(
        &Tuning::default(),
        at,
        &mut source,
        false,
        WriteSent::WithNext,
    );
    assert!(put.expect("it is connected").is_some(), "room for it");

    let mut buffer = vec![0; ACCESSIBLE];
    let end = loop {
        match connection.flush() {
            Ok(()) => peer.read(&mut buffer).expect("it is connected"),
            Err(end) => break end,
        };
    };

    assert!(connection.requests.sent() > PAGE as u64, "a part has left");
    assert!(
        matches!(&end, ConnectionEnd::Own(why) if why.contains("local memory")),
        "{end}"
    );
}

/// The kernel stores the data for the pages before the one that it cannot write.
#[test]
fn a_destination_that_cannot_be_written_is_not_the_loss_of_the_peer() {
    let dest = with_a_bad_page();
    let (mut connection, mut peer) = connected();
    let source = RemoteAddr {
        segment: Segment::Heap,
        offset: 0,
    };
    // SAFETY: the mapping is never undone, and the kernel finds what it cannot write.
    let mut to = unsafe { DestBuf::new(dest.base, dest.nbytes) };

    let get = connection.get(&Tuning::default(), source, &mut to, false, false, true);
    get.expect("it is connected").expect("room for it");

    let answer = ReplyFrame::Data {
        nbytes: dest.nbytes as u32,
    };
    peer.write_all(&answer.encode()).expect("room for it");
    let receiving = ReceivingPe::for_tests();
    let part = [1; PAGE];

    let end = loop {
        match connection.receive(&receiving) {
            Ok(_) => peer.write_all(&part).expect("room for it"),
            Err(end) => break end,
        }
    };

    // SAFETY: its first byte can be read, and nobody writes it any more.
    assert_eq!(unsafe { dest.base.read() }, 1, "a part has come");
    assert!(
        matches!(&end, ConnectionEnd::Own(why) if why.contains("local memory")),
        "{end}"
    );
}

#[test]
fn only_silence_that_was_seen_counts() {
    let second = Duration::from_secs(1);
    let mut heartbeat = PeerHeartbeat::default();
    let start = Instant::now();

    assert_eq!(
        heartbeat.add_sample(Some(60 * second), start),
        Duration::ZERO,
        "idle, then probed"
    );
    assert_eq!(heartbeat.add_sample(None, start + second), Duration::ZERO);
    assert_eq!(
        heartbeat.add_sample(Some(60 * second), start + 2 * second),
        Duration::ZERO
    );
    assert_eq!(
        heartbeat.add_sample(Some(80 * second), start + 22 * second),
        20 * second
    );
    assert_eq!(
        heartbeat.add_sample(Some(second), start + 23 * second),
        second,
        "it answers"
    );
}
