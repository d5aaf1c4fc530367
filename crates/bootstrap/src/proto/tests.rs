//! Unit tests of `proto`.

use super::*;
use proptest::prelude::*;

fn message() -> impl Strategy<Value = FromPe> {
    prop_oneof![
        any::<u32>().prop_map(|pid| FromPe::Hello { pid }),
        (any::<[u32; 3]>(), ".{0,40}", any::<bool>()).prop_map(
            |([pe, n_pes, pid], host, serves)| FromPe::Join {
                pe,
                n_pes,
                pid,
                host,
                serves
            }
        ),
        (
            any::<u32>(),
            any::<bool>(),
            prop::collection::vec(any::<u8>(), 0..300)
        )
            .prop_map(|(round, all, record)| {
                let to = if all {
                    Receivers::All
                } else {
                    Receivers::FirstOfNode
                };
                FromPe::Exchange { round, to, record }
            }),
        Just(FromPe::Finalized),
        Just(FromPe::Resumed),
        any::<[u64; 2]>().prop_map(|[inits, finalizes]| {
            FromPe::Unfinalized(UnmatchedInits { inits, finalizes })
        }),
        ".{0,40}".prop_map(|what| FromPe::Refused { what }),
        ".{0,40}".prop_map(|what| FromPe::Opening { what }),
        (any::<i32>(), ".{0,40}").prop_map(|(status, message)| FromPe::Abort { status, message }),
        any::<i32>().prop_map(|status| FromPe::GlobalExit { status }),
        Just(FromPe::Pong),
    ]
}

/// Pushes `stream` in slices of the given sizes, in turn, and takes whatever is whole after each.
fn decode(stream: &[u8], sizes: &[usize], limit: usize) -> Decoded {
    let mut decoder = Decoder::new(limit);
    let mut decoded = Decoded::default();
    let mut rest = stream;
    for size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }

        let (slice, later) = rest.split_at((*size).min(rest.len()));
        rest = later;
        decoder.push(slice);
        decoded.most_held = decoded.most_held.max(decoder.buffer.len());

        loop {
            match decoder.take() {
                Ok(Some(message)) => decoded.messages.push(message),
                Ok(None) => break,
                Err(error) => {
                    decoded.error = Some(error);
                    return decoded;
                }
            }
        }
    }
    decoded
}

#[derive(Default)]
struct Decoded {
    messages: Vec<FromPe>,
    error: Option<FrameError>,
    /// The maximum number of bytes that the decoder has held.
    most_held: usize,
}

proptest! {
    #[test]
    fn any_split_gives_the_same_messages(
        messages in prop::collection::vec(message(), 0..12),
        sizes in prop::collection::vec(1_usize..50, 1..10),
    ) {
        let stream: Vec<u8> = messages.iter().flat_map(encode).collect();
        let decoded = decode(&stream, &sizes, MAX_FROM_PE);
        prop_assert_eq!(decoded.messages, messages);
        prop_assert_eq!(decoded.error, None);
        let most = decoded.most_held;
        prop_assert!(most < 1000, "{most} bytes held for frames of at most 310");
    }

    #[test]
    fn invalid_input_never_panics_and_memory_is_bounded(
        stream in prop::collection::vec(any::<u8>(), 0..2000),
        versioned in any::<bool>(),
        sizes in prop::collection::vec(1_usize..50, 1..10),
    ) {
        let mut stream = stream;
        if versioned && stream.len() > HEADER {
            stream[1..HEADER].copy_from_slice(&[0, 0, 0, VERSION]);
        }
        let decoded = decode(&stream, &sizes, 100);
        prop_assert!(decoded.most_held <= 100 + HEADER + 50);
    }

    #[test]
    fn a_damaged_stream_never_panics(messages in prop::collection::vec(message(), 1..5), position in any::<usize>(), bit in 0_u32..8) {
        let mut stream: Vec<u8> = messages.iter().flat_map(encode).collect();
        let position = position % stream.len();
        stream[position] ^= 1_u8 << bit;
        decode(&stream, &[7], MAX_FROM_PE);
    }
}

#[test]
fn errors_are_named_and_stay() {
    let mut other = encode(&FromPe::Finalized);
    other[4] = VERSION + 1;
    let mut trailing = encode(&FromPe::Finalized);
    trailing[0] += 1;
    trailing.push(0);
    let huge = [255, 255, 255, 255, VERSION];
    for (stream, expected) in [
        (other.as_slice(), FrameError::Version(VERSION + 1)),
        (&trailing, FrameError::Malformed),
        (&huge, FrameError::TooLarge(u32::MAX as usize)),
    ] {
        let mut decoder = Decoder::new(1000);
        decoder.push(stream);
        assert_eq!(decoder.take::<FromPe>(), Err(expected));

        decoder.push(&encode(&FromPe::Finalized));
        assert_eq!(decoder.take::<FromPe>(), Err(expected));
        assert_eq!(decoder.buffer.len(), 0);
    }
}

#[test]
fn the_largest_record_fits_its_limit() {
    let frame = encode(&FromPe::Exchange {
        round: u32::MAX,
        to: Receivers::FirstOfNode,
        record: vec![255; MAX_RECORD],
    });
    assert!(frame.len() - HEADER <= MAX_FROM_PE);
}
