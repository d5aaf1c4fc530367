//! What leaves first where much waits.
#![allow(unsafe_code)]

use super::*;
use crate::proto::Piece;
use rushmem_transport::{RemoteAddr, Segment};
use std::io::Read;
use std::net::TcpListener;

const BYTES: usize = 4 << 20;

/// An answer to what the peer asked waits for the data that is being sent at most, not for all that waits.
#[test]
fn an_answer_leaves_between_the_data() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let socket = TcpStream::connect(listener.local_addr().expect("a port")).expect("it listens");
    let (mut peer, _) = listener.accept().expect("it is connected");
    socket.set_nonblocking(true).expect("a socket");
    let mut connection = Connection::new(socket);
    let (data, at) = (vec![1u8; BYTES], RemoteAddr { segment: Segment::Heap, offset: 0 });
    for _ in 0..8 {
        let source = LocalBuf::source(data.as_ptr(), BYTES);
        // SAFETY: the vector is valid until the connection is dropped.
        unsafe { connection.origin.put(at, source, false) };
    }
    connection.flush().expect("it is connected");
    assert!(connection.is_blocked(), "more than the kernel has room for");
    let asked = Piece::Whole(Request::Sync, &[][..]);
    connection.target.take(&Segments::default(), asked).expect("it asks for an answer");
    let (mut reader, mut buffer) = (Reader::<Frame>::new(), vec![0; 1 << 16]);
    let (mut puts, mut answered_after) = (0, None);
    while puts < 8 {
        connection.flush().expect("it is connected");
        let nbytes = peer.read(&mut buffer).expect("it is connected");
        let fed = reader.feed(&buffer[..nbytes], |piece| {
            match piece.addressed() {
                Addressed::Target(Piece::Part { done, bytes, .. }) => {
                    puts += usize::from(done + bytes.len() == BYTES);
                }
                Addressed::Origin(_) => answered_after = Some(puts),
                _ => unreachable!("nothing else was sent"),
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
