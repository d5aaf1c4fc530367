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
const NOTHING: Request = Request {
    stream: Stream {
        pe: Pe(9),
        origin: 8,
    },
    position: POSITION,
    ack: None,
    slot: None,
    nbytes: 0,
};

/// Returns requests with each of the parts that a request may have.
fn requests() -> [Request; 5] {
    let slot = |is_long| {
        Some(AwaitedSlot {
            number: u32::MAX - 1,
            is_long,
        })
    };

    [
        NOTHING,
        Request {
            position: StreamPosition {
                asks: true,
                ..POSITION
            },
            ..NOTHING
        },
        Request {
            ack: Some(ACK),
            nbytes: u16::MAX,
            ..NOTHING
        },
        Request {
            slot: slot(false),
            nbytes: 0x0102,
            ..NOTHING
        },
        Request {
            slot: slot(true),
            ..NOTHING
        },
    ]
}

#[test]
fn requests_are_decoded_as_they_were_encoded() {
    for request in requests() {
        assert_eq!(Request::decode(&request.encode()), Ok(request));
    }
}

#[test]
fn a_word_of_results_is_in_the_reply_and_more_follow_it() {
    let [nothing, asks, _, fetches, _] = requests();

    let reply = |request: &Request, results: &[u8]| {
        let mut follow = results.to_vec();
        let reply = request.reply(Pe(3), 7, &mut follow);
        (reply.map(|reply| reply.answer), follow)
    };
    let answer = |short| {
        Some(Answer {
            slot: u32::MAX - 1,
            short,
        })
    };

    assert_eq!(reply(&nothing, &[]), (None, Vec::new()));
    assert_eq!(reply(&asks, &[]), (Some(None), Vec::new()));
    assert_eq!(reply(&asks, &[1; 9]), (Some(None), Vec::new()), "unasked");

    for nbytes in [0, 4, 8] {
        let mut short = [0; SHORT];
        short[..nbytes].fill(1);
        let replied = reply(&fetches, &vec![1; nbytes]);
        assert_eq!(replied, (Some(answer(short)), Vec::new()));
    }

    let replied = reply(&fetches, &[1; 9]);
    assert_eq!(replied, (Some(answer([0; SHORT])), vec![1; 9]));
}

#[test]
fn replies_are_decoded_as_they_were_encoded() {
    let answer = Answer {
        slot: 3,
        short: [1, 2, 3, 4, 5, 6, 7, 8],
    };
    for answer in [None, Some(answer)] {
        let reply = Reply {
            pe: Pe(3),
            ack: ACK,
            answer,
        };
        assert_eq!(Reply::decode(&reply.encode()), Ok(reply));
    }
}

#[test]
fn what_no_pe_wrote_is_refused() {
    for request in requests() {
        // The flags, and the byte after them; and long results without a slot.
        for (index, byte) in [(2, 4), (3, 1), (2, 2)] {
            let mut damaged = request.encode();
            if request.slot.is_some() && byte == 2 {
                continue;
            }

            damaged[index] |= byte;
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
    let mut random = 1u64;
    let mut decoded = 0;
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
        // Few random flags are valid, so most of their bits are cleared.
        let head = bytes.iter_mut().zip([0xFF, 0xFF, 0x07, 0x01]);
        head.for_each(|(byte, mask)| *byte &= mask);

        if let Ok(request) = Request::decode(&bytes) {
            decoded += 1;
            assert_eq!(Request::decode(&request.encode()), Ok(request));
        }
    }

    assert!(decoded > 1_000, "{decoded}");
}
