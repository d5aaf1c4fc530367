//! Unit tests of the wire format: frames are decoded as they were encoded, and small bodies are
//! passed on whole, however the stream is cut.

use crate::addresses::Address;
use crate::proto::frame::HEAD;
use crate::proto::{Frame, MAX_BODY, MAX_DATA, Piece, Reader, ReplyFrame, RequestFrame};
use proptest::prelude::*;
use rushmem_transport::engine::message::REQUEST;
use rushmem_transport::peers::loss::Violation;
use rushmem_transport::{RemoteAddr, Segment};
use std::net::{IpAddr, SocketAddr};

fn remote() -> impl Strategy<Value = RemoteAddr> {
    let segment = prop_oneof![
        Just(Segment::Heap),
        Just(Segment::Internal),
        Just(Segment::Static)
    ];
    (segment, any::<u64>()).prop_map(|(segment, offset)| RemoteAddr { segment, offset })
}

/// Returns a request and its body.
fn request() -> impl Strategy<Value = (RequestFrame, Vec<u8>)> {
    let body = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..70),
        prop::collection::vec(any::<u8>(), 0..3_000),
    ];
    prop_oneof![
        4 => (remote(), body, any::<bool>()).prop_map(|(dest, body, in_parts)| {
            (RequestFrame::Put { dest, nbytes: body.len() as u32, in_parts }, body)
        }),
        2 => (remote(), 0..=MAX_BODY as u32, any::<bool>()).prop_map(
            |(source, nbytes, in_parts)| (RequestFrame::Get { source, nbytes, in_parts }, Vec::new())
        ),
        3 => prop::collection::vec(any::<u8>(), 0..3_000).prop_map(|body| {
            (RequestFrame::Message { nbytes: body.len() as u32 }, body)
        }),
        1 => Just((RequestFrame::Bye, Vec::new())),
    ]
}

fn reply() -> impl Strategy<Value = (ReplyFrame, Vec<u8>)> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..3_000).prop_map(|body| {
            (
                ReplyFrame::Data {
                    nbytes: body.len() as u32,
                },
                body,
            )
        }),
        prop::collection::vec(any::<u8>(), 0..3_000).prop_map(|body| (
            ReplyFrame::Message {
                nbytes: body.len() as u32
            },
            body
        )),
    ]
}

/// Returns a frame and its body.
fn frame() -> impl Strategy<Value = (Frame, Vec<u8>)> {
    prop_oneof![
        request().prop_map(|(request, body)| (Frame::Request(request), body)),
        reply().prop_map(|(reply, body)| (Frame::Reply(reply), body)),
    ]
}

/// Feeds a stream in parts of these lengths, which repeat, and returns its frames.
fn frames(stream: &[u8], cuts: &[usize]) -> Result<Vec<(Frame, Vec<u8>)>, Violation> {
    let mut frames: Vec<(Frame, Vec<u8>)> = Vec::new();
    let mut reader = Reader::new();
    let mut rest = stream;
    for &cut in cuts.iter().cycle() {
        if rest.is_empty() {
            break;
        }

        let (now, later) = rest.split_at(cut.min(rest.len()));
        rest = later;
        reader.feed(now, |Piece { head, done, bytes }| {
            assert!(
                bytes.len() == head.body() || head.body() > 128,
                "small bodies come as a whole"
            );
            if done == 0 {
                frames.push((head, Vec::new()));
            }
            let (last, body) = frames.last_mut().expect("a frame that began");
            assert_eq!((*last, body.len()), (head, done));
            body.extend_from_slice(bytes);
            Ok(())
        })?;
    }

    assert!(reader.body().is_none());
    Ok(frames)
}

proptest! {
    #[test]
    fn frames_survive_any_cut(
        sent in prop::collection::vec(frame(), 1..30),
        cuts in prop::collection::vec(1..200usize, 1..20),
    ) {
        let mut stream = Vec::new();
        for (frame, body) in &sent {
            stream.extend_from_slice(&match frame {
                Frame::Request(request) => request.encode(),
                Frame::Reply(reply) => reply.encode(),
            });
            stream.extend_from_slice(body);
        }

        prop_assert_eq!(frames(&stream, &cuts), Ok(sent.clone()));
        prop_assert_eq!(frames(&stream, &[1]), Ok(sent.clone()));
        prop_assert_eq!(frames(&stream, &[stream.len()]), Ok(sent));
    }

    #[test]
    fn addresses_survive(
        sockets in prop::collection::vec((any::<IpAddr>(), any::<u16>()), 0..16),
    ) {
        let sockets = sockets.into_iter().map(SocketAddr::from).collect();
        let address = Address { sockets };
        prop_assert_eq!(Address::decode(&address.encode()), Ok(address));
    }
}

#[test]
fn a_frame_that_is_too_long_is_refused() {
    let dest = RemoteAddr {
        segment: Segment::Heap,
        offset: 0,
    };

    let too_long = MAX_BODY as u32 + 1;
    let put = RequestFrame::Put {
        dest,
        nbytes: too_long,
        in_parts: false,
    };
    let get = RequestFrame::Get {
        source: dest,
        nbytes: too_long,
        in_parts: true,
    };
    let data = ReplyFrame::Data { nbytes: too_long };

    let too_long_message = (REQUEST + MAX_DATA) as u32 + 1;
    let message = RequestFrame::Message {
        nbytes: too_long_message,
    };

    for (head, nbytes) in [
        (put.encode(), too_long),
        (get.encode(), too_long),
        (data.encode(), too_long),
        (message.encode(), too_long_message),
    ] {
        assert_eq!(Frame::decode(&head), Err(Violation::TooLong(nbytes.into())));
    }
}

#[test]
fn the_format_is_little_endian_and_does_not_change() {
    let dest = RemoteAddr {
        segment: Segment::Internal,
        offset: 0x0102_0304_0506_0708,
    };
    let put = RequestFrame::Put {
        dest,
        nbytes: 0x0A0B,
        in_parts: true,
    }
    .encode();
    assert_eq!(put, [1, 1, 1, 0, 0x0B, 0x0A, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1]);

    let message = RequestFrame::Message { nbytes: 0x0A0B }.encode();
    assert_eq!(
        message,
        [3, 0, 0, 0, 0x0B, 0x0A, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    );

    let reply = ReplyFrame::Message { nbytes: 0x0A0B }.encode();
    assert_eq!(
        reply,
        [0x82, 0, 0, 0, 0x0B, 0x0A, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
    );
    assert_eq!(reply.len(), HEAD);
}
