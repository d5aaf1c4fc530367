//! Unit tests of `message`.

use super::*;

const POSITION: StreamPosition = StreamPosition {
    number: 1 << 31,
    after: 7,
    asks: false,
};
const ACK: Ack = Ack {
    origin: 2,
    count: u32::MAX,
};
const DEST: RemoteAddr = RemoteAddr {
    segment: Segment::Static,
    offset: 3,
};
const NOTHING: Request = Request {
    stream: Stream {
        pe: Pe(9),
        origin: 8,
    },
    position: POSITION,
    ack: None,
    slot: None,
    update: None,
    dest: DEST,
};

/// Requests of every operation, width and segment.
fn updates() -> impl Iterator<Item = Request> {
    let widths = [AmoWidth::Four, AmoWidth::Eight];
    let segments = [Segment::Heap, Segment::Internal, Segment::Static];
    let kinds = AmoOp::ALL
        .into_iter()
        .flat_map(move |op| widths.map(|width| (op, width)));
    kinds.flat_map(move |(op, width)| {
        segments.map(|segment| {
            let dest = RemoteAddr {
                segment,
                offset: 1 << 40,
            };
            let update = Some(AmoRequest {
                op,
                width,
                dest,
                operand: u64::MAX,
                condition: 5,
            });
            Request {
                ack: Some(ACK),
                slot: Some(u32::MAX - 1),
                update,
                ..NOTHING
            }
        })
    })
}

#[test]
fn requests_are_decoded_as_they_were_encoded() {
    let asks = Request {
        position: StreamPosition {
            asks: true,
            ..POSITION
        },
        ..NOTHING
    };
    for request in updates().chain([NOTHING, asks]) {
        assert_eq!(Request::decode(&request.encode()), Ok(request));
    }
}

#[test]
fn replies_are_decoded_as_they_were_encoded() {
    for old in [None, Some((3, 1 << 63))] {
        let reply = Reply {
            pe: Pe(3),
            ack: ACK,
            old,
        };
        assert_eq!(Reply::decode(&reply.encode()), Ok(reply));
    }
}

#[test]
fn what_no_pe_wrote_is_refused() {
    for request in updates() {
        for at in 0..4 {
            let mut damaged = request.encode();
            damaged[at] = 99;
            let refused = Request::decode(&damaged).expect_err("damaged");
            assert_eq!(
                (refused.from, &*refused.why),
                (Some(Pe(9)), "it sent an unknown request")
            );
        }
    }
    let request = NOTHING.encode();
    let sender = |bytes: &[u8]| Request::decode(bytes).expect_err("of another length").from;
    assert_eq!(sender(&request[..REQUEST - 1]), Some(Pe(9)));
    assert_eq!(sender(&[&request[..], &[0]].concat()), Some(Pe(9)));
    assert_eq!((sender(&request[..7]), sender(&[])), (None, None));
    let sender = |bytes: &[u8]| Reply::decode(bytes).expect_err("of another length").from;
    assert_eq!(sender(&[0; REPLY + 1]), Some(Pe(0)));
    assert_eq!(sender(&[]), None);
}

/// A request that was decoded from random bytes is the same after it is encoded and decoded again.
#[test]
fn any_bytes_are_refused_or_mean_one_thing() {
    let (mut random, mut decoded) = (1u64, 0);
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random.to_le_bytes()
    };
    for _ in 0..100_000 {
        let mut bytes = [0; REQUEST];
        bytes
            .as_chunks_mut()
            .0
            .iter_mut()
            .for_each(|word| *word = next());
        // Few random heads are valid, so most of their bits are cleared.
        let head = bytes.iter_mut().zip([0x0F, 0x8C, 0x03, 0x03]);
        head.for_each(|(byte, mask)| *byte &= mask);
        if let Ok(request) = Request::decode(&bytes) {
            decoded += 1;
            assert_eq!(Request::decode(&request.encode()), Ok(request));
        }
    }
    assert!(decoded > 1_000, "{decoded}");
}
