//! Unit tests of `message`.

use super::*;
use rushmem_transport::Segment;

const STREAM: Stream = Stream { pe: Pe(9), origin: 8 };

#[test]
fn requests_survive_the_way() {
    let place = Place { number: 1 << 31, after: 7, asks: false };
    let data = RemoteAddr { segment: Segment::Heap, offset: 3 };
    let nothing = Request { stream: STREAM, place, ack: None, due: None, update: None, data };
    let asks = Request { place: Place { asks: true, ..place }, ..nothing };
    assert_eq!(Request::decode(&asks.encode()), Some(asks));
    for (i, op) in AmoOp::ALL.into_iter().enumerate() {
        for width in [AmoWidth::Four, AmoWidth::Eight] {
            let word = RemoteAddr { segment: Segment::Internal, offset: 1 << 40 };
            let request = Request {
                update: Some(Update { op, width, operand: u64::MAX, condition: 5, dest: word }),
                due: Some(Due { slot: i as u32, turn: 1 << 31 }),
                ack: Some(Ack { origin: 2, count: u32::MAX }),
                ..nothing
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
    let due = Some(Due { slot: 3, turn: 4 });
    for due in [due, None] {
        let reply = Reply { pe: Pe(3), count: 5, due, old: 1 << 63 };
        assert_eq!(Reply::decode(&reply.encode()), Some(reply));
    }
}
