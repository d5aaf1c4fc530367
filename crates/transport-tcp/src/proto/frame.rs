//! The encoding of the heads of frames.

use rushmem_transport::engine::entries::MAX_RESULTS;
use rushmem_transport::engine::message::{REPLY, REQUEST};
use rushmem_transport::peers::loss::Violation;
use rushmem_transport::{RemoteAddr, Segment};

/// Bytes of every head.
pub(crate) const HEAD: usize = 16;
/// Maximum number of bytes of a body. Longer transfers are divided, so that messages to the same
/// peer do not wait behind all of one. At 10 Gbit/s such a body takes 13 ms.
pub(crate) const MAX_BODY: usize = 16 << 20;
/// Maximum number of bytes of a message after its head: the entries and the data that they attach.
/// It bounds what a target keeps of a message that arrives in parts.
pub(crate) const MAX_DATA: usize = 32 << 10;

/// A request of an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestFrame {
    /// Write the body to `dest`. If `in_parts`, the target may write it in any parts as it arrives:
    /// no thread reads the words of `dest` before the put is done.
    Put {
        dest: RemoteAddr,
        nbytes: u32,
        in_parts: bool,
    },
    /// Reply with `nbytes` bytes from `source`. If `in_parts`, the target may read them in any
    /// parts: no thread writes to the words of `source` before the get is done.
    Get {
        source: RemoteAddr,
        nbytes: u32,
        in_parts: bool,
    },
    /// Carry out the request at the start of the body (`engine::message`), whose entries and
    /// attached data are the rest of the body. Reply if it asks for an acknowledgment or returns
    /// anything.
    Message { nbytes: u32 },
    /// The PE leaves the job.
    Bye,
}

/// An answer of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyFrame {
    /// The body is the data that a get requests.
    Data { nbytes: u32 },
    /// The body is a reply (`engine::message`), followed by long results.
    Message { nbytes: u32 },
}

/// A frame that either end of a connection sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    Request(RequestFrame),
    Reply(ReplyFrame),
}

const PUT: u8 = 1;
const GET: u8 = 2;
const MESSAGE: u8 = 3;
const BYE: u8 = 4;
/// The bit that is set in the kind of a reply.
const IS_REPLY: u8 = 0x80;
const DATA: u8 = IS_REPLY | 1;
const REPLIED: u8 = IS_REPLY | 2;

/// The fields of a head, in their order. Those that a kind of frame does not use are 0.
#[derive(Default)]
struct Fields {
    kind: u8,
    segment: u8,
    in_parts: bool,
    /// The number of bytes of the body, or of the data that are requested.
    nbytes: u32,
    /// An offset in the segment.
    long: u64,
}

impl Fields {
    fn encode(&self) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        bytes[0] = self.kind;
        bytes[1] = self.segment;
        bytes[2] = self.in_parts.into();
        bytes[4..8].copy_from_slice(&self.nbytes.to_le_bytes());
        bytes[8..].copy_from_slice(&self.long.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; HEAD]) -> Fields {
        let [kind, segment, in_parts, _, n0, n1, n2, n3, long @ ..] = *bytes;
        Fields {
            kind,
            segment,
            in_parts: in_parts != 0,
            nbytes: u32::from_le_bytes([n0, n1, n2, n3]),
            long: u64::from_le_bytes(long),
        }
    }

    /// Returns the address that `segment` and `long` stand for.
    fn address(&self) -> Result<RemoteAddr, Violation> {
        let segment = Segment::from_number(self.segment).ok_or(Violation::Unknown("segment"))?;
        Ok(RemoteAddr {
            segment,
            offset: self.long,
        })
    }
}

/// Returns a length, unless it is longer than frames of its kind may be.
fn bounded(nbytes: u32, most: usize) -> Result<u32, Violation> {
    if nbytes as usize > most {
        return Err(Violation::TooLong(nbytes.into()));
    }
    Ok(nbytes)
}

impl RequestFrame {
    /// Encodes the head.
    pub(crate) fn encode(&self) -> [u8; HEAD] {
        let fields = match *self {
            RequestFrame::Put {
                dest,
                nbytes,
                in_parts,
            } => Fields {
                kind: PUT,
                segment: dest.segment as u8,
                in_parts,
                nbytes,
                long: dest.offset,
            },
            RequestFrame::Get {
                source,
                nbytes,
                in_parts,
            } => Fields {
                kind: GET,
                segment: source.segment as u8,
                in_parts,
                nbytes,
                long: source.offset,
            },
            RequestFrame::Message { nbytes } => Fields {
                kind: MESSAGE,
                nbytes,
                ..Fields::default()
            },
            RequestFrame::Bye => Fields {
                kind: BYE,
                ..Fields::default()
            },
        };
        fields.encode()
    }

    fn decode(bytes: &[u8; HEAD]) -> Result<RequestFrame, Violation> {
        let fields = Fields::decode(bytes);
        Ok(match fields.kind {
            PUT => RequestFrame::Put {
                dest: fields.address()?,
                nbytes: bounded(fields.nbytes, MAX_BODY)?,
                in_parts: fields.in_parts,
            },
            GET => RequestFrame::Get {
                source: fields.address()?,
                nbytes: bounded(fields.nbytes, MAX_BODY)?,
                in_parts: fields.in_parts,
            },
            MESSAGE => RequestFrame::Message {
                nbytes: bounded(fields.nbytes, REQUEST + MAX_DATA)?,
            },
            BYE => RequestFrame::Bye,
            _ => return Err(Violation::Unknown("request")),
        })
    }

    fn body(&self) -> usize {
        match *self {
            RequestFrame::Put { nbytes, .. } | RequestFrame::Message { nbytes } => nbytes as usize,
            RequestFrame::Get { .. } | RequestFrame::Bye => 0,
        }
    }
}

impl ReplyFrame {
    /// Encodes the head.
    pub(crate) fn encode(&self) -> [u8; HEAD] {
        let fields = match *self {
            ReplyFrame::Data { nbytes } => Fields {
                kind: DATA,
                nbytes,
                ..Fields::default()
            },
            ReplyFrame::Message { nbytes } => Fields {
                kind: REPLIED,
                nbytes,
                ..Fields::default()
            },
        };
        fields.encode()
    }

    fn decode(bytes: &[u8; HEAD]) -> Result<ReplyFrame, Violation> {
        let fields = Fields::decode(bytes);
        Ok(match fields.kind {
            DATA => ReplyFrame::Data {
                nbytes: bounded(fields.nbytes, MAX_BODY)?,
            },
            REPLIED => ReplyFrame::Message {
                nbytes: bounded(fields.nbytes, REPLY + MAX_RESULTS)?,
            },
            _ => return Err(Violation::Unknown("reply")),
        })
    }

    fn body(&self) -> usize {
        match *self {
            ReplyFrame::Data { nbytes } | ReplyFrame::Message { nbytes } => nbytes as usize,
        }
    }
}

impl Frame {
    /// Decodes a head.
    pub(crate) fn decode(bytes: &[u8; HEAD]) -> Result<Frame, Violation> {
        if bytes[0] & IS_REPLY == 0 {
            RequestFrame::decode(bytes).map(Frame::Request)
        } else {
            ReplyFrame::decode(bytes).map(Frame::Reply)
        }
    }

    /// Returns the number of bytes of the body that follows.
    pub(crate) fn body(&self) -> usize {
        match self {
            Frame::Request(request) => request.body(),
            Frame::Reply(reply) => reply.body(),
        }
    }
}
