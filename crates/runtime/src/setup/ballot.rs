//! How what PEs tell each other about transports crosses the wire: byte strings, each after its length.

use super::choice::{Ballot, Seen};

/// Byte strings, each after its length.
pub(super) fn encode(parts: &[Vec<u8>]) -> Vec<u8> {
    let length = |part: &Vec<u8>| (part.len() as u32).to_le_bytes();
    parts.iter().flat_map(|part| length(part).into_iter().chain(part.iter().copied())).collect()
}

/// `None` when they are none.
pub(super) fn decode(mut bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut parts = Vec::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let (part, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        parts.push(part.to_vec());
        bytes = rest;
    }
    Some(parts)
}

/// What came of a step: byte strings, or why it failed.
pub(super) type Step = Result<Vec<Vec<u8>>, String>;

const DONE: &[u8] = b"+";
const FAILED: &[u8] = b"-";

pub(super) fn encode_step(step: &Step) -> Vec<u8> {
    match step {
        Ok(parts) => encode(&[&[DONE.to_vec()], &parts[..]].concat()),
        Err(why) => encode(&[FAILED.to_vec(), why.clone().into_bytes()]),
    }
}

pub(super) fn decode_step(bytes: &[u8]) -> Option<Step> {
    let parts = decode(bytes)?;
    match parts.split_first()? {
        (first, rest) if first == DONE => Some(Ok(rest.to_vec())),
        (first, [why]) if first == FAILED => Some(Err(String::from_utf8(why.clone()).ok()?)),
        _ => None,
    }
}

const PLAIN: &[u8] = b"plain";
const RDMA: &[u8] = b"rdma";

impl Ballot {
    pub(super) fn encode(&self) -> Vec<u8> {
        let seen = self.seen.iter().map(|seen| match seen {
            Seen::Plain => encode(&[PLAIN.to_vec()]),
            Seen::Rdma => encode(&[RDMA.to_vec()]),
            Seen::Absent(why) => encode(&[FAILED.to_vec(), why.clone().into_bytes()]),
        });
        let asked = self.asked.clone().into_bytes();
        encode(&std::iter::once(asked).chain(seen).collect::<Vec<_>>())
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Ballot> {
        let parts = decode(bytes)?;
        let (asked, rest) = parts.split_first()?;
        let seen = |part: &Vec<u8>| match &decode(part)?[..] {
            [one] if one == PLAIN => Some(Seen::Plain),
            [one] if one == RDMA => Some(Seen::Rdma),
            [first, why] if first == FAILED => {
                Some(Seen::Absent(String::from_utf8(why.clone()).ok()?))
            }
            _ => None,
        };
        let asked = String::from_utf8(asked.clone()).ok()?;
        Some(Ballot { asked, seen: rest.iter().map(seen).collect::<Option<_>>()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_steps_survive_the_way() {
        let parts = vec![b"tcp".to_vec(), Vec::new(), vec![7; 300]];
        let bytes = encode(&parts);
        assert_eq!(decode(&bytes), Some(parts.clone()));
        assert_eq!(decode(&bytes[..bytes.len() - 1]), None);
        for step in [Ok(parts), Ok(Vec::new()), Err("why".to_owned())] {
            assert_eq!(decode_step(&encode_step(&step)), Some(step));
        }
        assert_eq!(decode_step(&[]), None);
    }

    #[test]
    fn ballots_survive_the_way() {
        let seen = vec![Seen::Rdma, Seen::Absent("no library".to_owned()), Seen::Plain];
        for asked in ["", "tcp"] {
            let ballot = Ballot { asked: asked.to_owned(), seen: seen.clone() };
            assert_eq!(Ballot::decode(&ballot.encode()), Some(ballot));
        }
        assert_eq!(Ballot::decode(&encode(&[Vec::new(), vec![1, 2]])), None);
    }
}
