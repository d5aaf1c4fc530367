//! Unit tests of `message`.

use super::*;
use rushmem_transport::Segment;

#[test]
fn requests_survive_the_way() {
    for (i, op) in AmoOp::ALL.into_iter().enumerate() {
        for width in [AmoWidth::Four, AmoWidth::Eight] {
            let request = Request {
                slot: i as u32,
                turn: 1 << 31,
                op,
                width,
                operand: u64::MAX,
                condition: 5,
                word: RemoteAddr { segment: Segment::Internal, offset: 1 << 40 },
                data: RemoteAddr { segment: Segment::Heap, offset: 3 },
            };
            assert_eq!(Request::decode(&request.encode()), Some(request));
        }
    }
}

#[test]
fn what_no_pe_wrote_is_refused() {
    assert_eq!(Request::decode(&[0; REQUEST]), None, "no width");
    assert_eq!(Request::decode(&[8; REQUEST]), None, "no operation, no segment");
    assert_eq!(Request::decode(&[4; REQUEST - 1]), None);
    assert_eq!(Reply::decode(&[0; REPLY + 1]), None);
}

#[test]
fn replies_survive_the_way() {
    let reply = Reply { slot: 3, turn: 4, old: 1 << 63 };
    assert_eq!(Reply::decode(&reply.encode()), Some(reply));
}
