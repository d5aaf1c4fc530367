//! From a stream of bytes, however it was cut, to frames.

use super::frame::{Frame, HEAD, Head, ReplyFrame, RequestFrame};
use rushmem_transport::kit::violation::Violation;

/// A body up to this size is handed over whole, so that a word in it is never seen half-written.
const SMALL: usize = 64;

/// A part of the stream.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece<'a, H> {
    /// A frame with its whole body.
    Whole(H, &'a [u8]),
    /// Bytes of a larger frame's body, from its byte `done`; the last when they fill it.
    Part { head: H, done: usize, bytes: &'a [u8] },
}

/// Whom a part of the stream is for.
pub(crate) enum Addressed<'a> {
    Target(Piece<'a, RequestFrame>),
    TcpOrigin(Piece<'a, ReplyFrame>),
    /// For the target: the next bytes of a batch that has this many.
    Batch(usize, &'a [u8]),
    /// The peer leaves.
    Bye,
}

impl<'a> Piece<'a, Frame> {
    /// Separates requests from replies.
    pub(crate) fn addressed(self) -> Addressed<'a> {
        match self {
            Piece::Whole(Frame::Request(head), body) => Addressed::Target(Piece::Whole(head, body)),
            Piece::Whole(Frame::Reply(head), body) => {
                Addressed::TcpOrigin(Piece::Whole(head, body))
            }
            Piece::Part { head: Frame::Request(head), done, bytes } => {
                Addressed::Target(Piece::Part { head, done, bytes })
            }
            Piece::Part { head: Frame::Reply(head), done, bytes } => {
                Addressed::TcpOrigin(Piece::Part { head, done, bytes })
            }
            Piece::Whole(Frame::Batch { nbytes }, bytes)
            | Piece::Part { head: Frame::Batch { nbytes }, bytes, .. } => {
                Addressed::Batch(nbytes as usize, bytes)
            }
            Piece::Whole(Frame::Bye, _) | Piece::Part { head: Frame::Bye, .. } => Addressed::Bye,
        }
    }
}

/// The state between two reads: never more than a head and a small body.
pub(crate) struct Reader<H> {
    carry: [u8; HEAD + SMALL],
    have: usize,
    /// The large frame whose body is being received and how much of it is done.
    body: Option<(H, usize)>,
}

impl<H: Head> Reader<H> {
    /// Returns a reader at the start of a stream.
    pub(crate) fn new() -> Reader<H> {
        Reader { carry: [0; HEAD + SMALL], have: 0, body: None }
    }

    /// Takes in bytes and hands over what they complete.
    pub(crate) fn feed(
        &mut self,
        mut input: &[u8],
        mut sink: impl FnMut(Piece<'_, H>) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        while !input.is_empty() {
            if let Some((head, done)) = self.body {
                let bytes = &input[..input.len().min(head.body() - done)];
                sink(Piece::Part { head, done, bytes })?;
                self.advance(bytes.len());
                input = &input[bytes.len()..];
                continue;
            }
            if self.have == 0
                && let Some((bytes, rest)) = input.split_first_chunk()
            {
                let head = H::decode(bytes)?;
                if head.body() > SMALL {
                    self.body = Some((head, 0));
                    input = rest;
                    continue;
                }
                if let Some((body, rest)) = rest.split_at_checked(head.body()) {
                    sink(Piece::Whole(head, body))?;
                    input = rest;
                    continue;
                }
            }
            input = self.carry_on(input, &mut sink)?;
        }
        Ok(())
    }

    /// Completes a frame of which only a part is here.
    fn carry_on<'a>(
        &mut self,
        input: &'a [u8],
        sink: &mut impl FnMut(Piece<'_, H>) -> Result<(), Violation>,
    ) -> Result<&'a [u8], Violation> {
        let input = self.fill(input, HEAD);
        let Some(bytes) = self.carry[..self.have].first_chunk() else {
            return Ok(input);
        };
        let head = H::decode(bytes)?;
        if head.body() > SMALL {
            self.body = Some((head, 0));
            self.have = 0;
            return Ok(input);
        }
        let whole = HEAD + head.body();
        let input = self.fill(input, whole);
        if self.have == whole {
            self.have = 0;
            sink(Piece::Whole(head, &self.carry[HEAD..whole]))?;
        }
        Ok(input)
    }

    fn fill<'a>(&mut self, input: &'a [u8], upto: usize) -> &'a [u8] {
        let take = input.len().min(upto.saturating_sub(self.have));
        self.carry[self.have..self.have + take].copy_from_slice(&input[..take]);
        self.have += take;
        &input[take..]
    }

    /// Returns the large frame whose body comes next in the stream, and how much of it is done: who
    /// can may read the rest straight to where it belongs, and then [`advance`](Reader::advance).
    pub(crate) fn body(&self) -> Option<(H, usize)> {
        self.body
    }

    /// Skips `nbytes` bytes of the body, which were received at their destination.
    pub(crate) fn advance(&mut self, nbytes: usize) {
        if let Some((head, done)) = &mut self.body {
            *done += nbytes;
            if *done >= head.body() {
                self.body = None;
            }
        }
    }
}
