//! The messages between PEs over libfabric: a head of fixed length, which has a request or a reply,
//! and a body: the entries and the attached data of the request, or long results. The head starts
//! with the tag of the job; messages with another tag are ignored.

use rushmem_transport::Pe;
use rushmem_transport::engine::message::{self, Reply, Request};
use rushmem_transport::peers::loss::{RefusedMessage, Violation};

/// The offset of the kind of a message.
const KIND: usize = 8;
/// The offset of the request or reply in a message.
const START: usize = 16;
/// Bytes of every head.
pub(crate) const HEAD: usize = START + message::REQUEST;

const REQUEST: u8 = 1;
const REPLY: u8 = 2;

/// The head of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Request(Request),
    Reply(Reply),
}

impl Message {
    pub(crate) fn encode(&self, tag: u64) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        bytes[..KIND].copy_from_slice(&tag.to_le_bytes());
        match self {
            Message::Request(request) => {
                bytes[KIND] = REQUEST;
                bytes[START..].copy_from_slice(&request.encode());
            }
            Message::Reply(reply) => {
                bytes[KIND] = REPLY;
                bytes[START..START + message::REPLY].copy_from_slice(&reply.encode());
            }
        }
        bytes
    }

    /// Decodes the head of a message. Returns the head and the body, or `None` if the message does
    /// not have this tag.
    pub(crate) fn decode(
        bytes: &[u8],
        tag: u64,
    ) -> Result<Option<(Message, &[u8])>, RefusedMessage> {
        let (head, body) = bytes.split_at(bytes.len().min(HEAD));
        if head.get(..KIND) != Some(&tag.to_le_bytes()[..]) {
            return Ok(None);
        }

        let content = head.get(START..).unwrap_or_default();
        let message = match head.get(KIND) {
            Some(&REQUEST) => Message::Request(Request::decode(content)?),
            Some(&REPLY) => Message::Reply(Reply::decode(
                content.get(..message::REPLY).unwrap_or(content),
            )?),
            _ => return Err(RefusedMessage::of_nobody(Violation::Unknown("message"))),
        };

        Ok(Some((message, body)))
    }

    /// Returns the PE that the message names as its sender.
    pub(crate) fn sender(&self) -> Pe {
        match self {
            Message::Request(request) => request.stream.pe,
            Message::Reply(reply) => reply.pe,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rushmem_transport::engine::message::{Ack, Answer, Stream, StreamPosition};

    #[test]
    fn what_is_encoded_is_decoded_and_other_bytes_are_refused() {
        let reply = Reply {
            pe: Pe(9),
            ack: Ack {
                origin: 3,
                count: 4,
            },
            answer: Some(Answer {
                slot: 5,
                short: [6; 8],
            }),
        };
        let request = Request {
            stream: Stream {
                pe: Pe(9),
                origin: 4,
            },
            position: StreamPosition {
                number: 7,
                after: 6,
                asks: true,
            },
            ack: None,
            slot: None,
            nbytes: 1 << 10,
        };

        for message in [Message::Reply(reply), Message::Request(request)] {
            for body in [&[][..], &[1, 2, 3]] {
                let bytes = [&message.encode(77), body].concat();
                assert_eq!(Message::decode(&bytes, 77), Ok(Some((message, body))));
                assert_eq!(message.sender(), Pe(9));

                assert_eq!(Message::decode(&bytes, 78), Ok(None), "of another job");
                assert_eq!(
                    Message::decode(&bytes[..KIND - 1], 77),
                    Ok(None),
                    "of nobody"
                );

                let sender = |bytes: &[u8]| Message::decode(bytes, 77).expect_err("damaged").from;
                assert_eq!(sender(&bytes[..START + 8]), Some(Pe(9)));
                assert_eq!(sender(&bytes[..KIND]), None);

                let mut damaged = bytes;
                damaged[KIND] = REPLY + 1;
                assert_eq!(sender(&damaged), None);
            }
        }
    }
}
