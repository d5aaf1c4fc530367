//! The messages between PEs over libfabric: a request, which may bring a few bytes of data, or a
//! reply. Every message carries the job's tag; one without it is not meant for this job.
#![allow(unsafe_code)]

use rushmem_transport::kit::message::{self, Reply, Request};
use rushmem_transport::{LocalBuf, RemoteAddr, Segment, mem};

/// Bytes of data that a request has room for.
const DATA: usize = 8;
/// Where a message says how many bytes of data it brings, or that it is a reply.
const KIND: usize = 8;
/// Where the request or reply is, and the data.
const BODY: usize = 16;
const BYTES: usize = BODY + message::REQUEST;
/// Bytes of every message.
pub(crate) const NBYTES: usize = BYTES + DATA;

/// In place of the number of bytes of data.
const REPLY: u8 = u8::MAX;

/// A few bytes that are stored before the update of their request is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Data {
    bytes: [u8; DATA],
    nbytes: u8,
}

/// Where no data go, and none.
pub(crate) const NO_DATA: (RemoteAddr, Data) =
    (RemoteAddr { segment: Segment::Heap, offset: 0 }, Data { bytes: [0; DATA], nbytes: 0 });

impl Data {
    /// A copy of the source, if a message has room for it.
    ///
    /// # Safety
    /// The source is valid for reads.
    pub(crate) unsafe fn copy(source: LocalBuf) -> Option<Data> {
        let mut bytes = [0; DATA];
        (source.nbytes <= DATA).then(|| {
            // SAFETY: valid by contract; there is room for as many bytes.
            unsafe {
                mem::copy_bytes::<mem::VolatileLoads>(
                    bytes.as_mut_ptr(),
                    source.base,
                    source.nbytes,
                )
            };
            Data { bytes, nbytes: source.nbytes as u8 }
        })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.nbytes)]
    }
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    Request(Request, Data),
    Reply(Reply),
}

impl Message {
    pub(crate) fn encode(&self, tag: u64) -> [u8; NBYTES] {
        let mut bytes = [0; NBYTES];
        bytes[..KIND].copy_from_slice(&tag.to_le_bytes());
        match self {
            Message::Request(request, data) => {
                bytes[KIND] = data.nbytes;
                bytes[BODY..BYTES].copy_from_slice(&request.encode());
                bytes[BYTES..].copy_from_slice(&data.bytes);
            }
            Message::Reply(reply) => {
                bytes[KIND] = REPLY;
                bytes[BODY..BODY + message::REPLY].copy_from_slice(&reply.encode());
            }
        }
        bytes
    }

    /// `None` when it is not of this job, or means nothing.
    pub(crate) fn decode(bytes: &[u8; NBYTES], tag: u64) -> Option<Message> {
        if bytes[..KIND] != tag.to_le_bytes() {
            return None;
        }
        match bytes[KIND] {
            REPLY => Reply::decode(&bytes[BODY..BODY + message::REPLY]).map(Message::Reply),
            nbytes if usize::from(nbytes) <= DATA => {
                let data = Data { bytes: bytes[BYTES..].try_into().ok()?, nbytes };
                Some(Message::Request(Request::decode(&bytes[BODY..BYTES])?, data))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rushmem_transport::Pe;
    use rushmem_transport::kit::acks::Ack;
    use rushmem_transport::kit::stream::{Stream, StreamPosition};

    #[test]
    fn what_is_encoded_is_decoded_and_other_bytes_are_refused() {
        let reply = Reply { pe: Pe(9), ack: Ack { origin: 3, count: 4 }, old: Some((5, 6)) };
        let request = Request {
            stream: Stream { pe: Pe(9), origin: 4 },
            place: StreamPosition { number: 7, after: 6, asks: true },
            ack: None,
            slot: None,
            update: None,
            dest: RemoteAddr { segment: Segment::Static, offset: 1 << 40 },
        };
        let mut all = vec![Message::Reply(reply)];
        for nbytes in 0..=DATA {
            let mut bytes = [0xFF; DATA];
            // SAFETY: a local array.
            let data = unsafe { Data::copy(LocalBuf { base: bytes.as_mut_ptr(), nbytes }) };
            let data = data.expect("there is room");
            assert_eq!(data.bytes(), &bytes[..nbytes]);
            all.push(Message::Request(request, data));
        }
        for message in all {
            let bytes = message.encode(77);
            assert_eq!(Message::decode(&bytes, 77), Some(message));
            assert_eq!(Message::decode(&bytes, 78), None);
            let mut damaged = bytes;
            damaged[KIND] = DATA as u8 + 1;
            assert_eq!(Message::decode(&damaged, 77), None);
        }
        let long = [0; DATA + 1];
        // SAFETY: a local array.
        let copied = unsafe { Data::copy(LocalBuf::source(long.as_ptr(), long.len())) };
        assert_eq!(copied, None);
    }
}
