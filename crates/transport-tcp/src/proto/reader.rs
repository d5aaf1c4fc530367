//! Decodes frames from a stream that arrives in parts of any length.

use super::frame::{Frame, HEAD};
use rushmem_transport::peers::loss::Violation;

/// A body of up to this many bytes is passed on whole, so that no word in it is written in parts.
/// For that, a body that arrives in parts is copied. The number covers messages of one operation
/// and small data; a larger one would mean more copies, and more memory of each connection.
const SMALL: usize = 128;

/// A part of the body of a frame: all of it unless the body is large.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    pub(crate) head: Frame,
    /// The number of bytes of the body before this part.
    pub(crate) done: usize,
    pub(crate) bytes: &'a [u8],
}

/// The state between two reads. It holds at most a head and a small body.
pub(crate) struct Reader {
    carry: [u8; HEAD + SMALL],
    have: usize,
    /// The frame whose large body is being received, and the number of its bytes that were passed
    /// on; `None` before the next such frame.
    body: Option<(Frame, usize)>,
}

impl Reader {
    /// Returns a reader at the start of a stream.
    pub(crate) fn new() -> Reader {
        Reader {
            carry: [0; HEAD + SMALL],
            have: 0,
            body: None,
        }
    }

    /// Adds bytes, and passes on the pieces that they complete.
    pub(crate) fn feed(
        &mut self,
        mut input: &[u8],
        mut sink: impl FnMut(Piece<'_>) -> Result<(), Violation>,
    ) -> Result<(), Violation> {
        while !input.is_empty() {
            if let Some((head, done)) = self.body {
                let bytes = &input[..input.len().min(head.body() - done)];
                sink(Piece { head, done, bytes })?;
                self.advance(bytes.len());
                input = &input[bytes.len()..];
                continue;
            }

            if self.have == 0
                && let Some((bytes, rest)) = input.split_first_chunk()
            {
                let head = Frame::decode(bytes)?;
                if head.body() > SMALL {
                    self.body = Some((head, 0));
                    input = rest;
                    continue;
                }
                if let Some((body, rest)) = rest.split_at_checked(head.body()) {
                    sink(Piece {
                        head,
                        done: 0,
                        bytes: body,
                    })?;
                    input = rest;
                    continue;
                }
            }

            input = self.carry_on(input, &mut sink)?;
        }
        Ok(())
    }

    /// Collects a head, and a small body, that arrive in parts. Passes the frame to `sink` once it
    /// is complete. Returns the rest of the input.
    fn carry_on<'a>(
        &mut self,
        input: &'a [u8],
        sink: &mut impl FnMut(Piece<'_>) -> Result<(), Violation>,
    ) -> Result<&'a [u8], Violation> {
        let input = self.fill(input, HEAD);

        let Some(bytes) = self.carry[..self.have].first_chunk() else {
            return Ok(input);
        };

        let head = Frame::decode(bytes)?;
        if head.body() > SMALL {
            self.body = Some((head, 0));
            self.have = 0;
            return Ok(input);
        }

        let whole = HEAD + head.body();
        let input = self.fill(input, whole);

        if self.have == whole {
            self.have = 0;
            sink(Piece {
                head,
                done: 0,
                bytes: &self.carry[HEAD..whole],
            })?;
        }
        Ok(input)
    }

    /// Carries bytes of the input until there are `upto`. Returns the rest of the input.
    fn fill<'a>(&mut self, input: &'a [u8], upto: usize) -> &'a [u8] {
        let take = input.len().min(upto.saturating_sub(self.have));
        self.carry[self.have..self.have + take].copy_from_slice(&input[..take]);
        self.have += take;
        &input[take..]
    }

    /// Returns the frame whose large body is next in the stream, and the number of its bytes that
    /// were passed on; `None` if a head or a small body is next. The caller may receive the rest
    /// directly to its destination, and then calls [`advance`](Reader::advance).
    pub(crate) fn body(&self) -> Option<(Frame, usize)> {
        self.body
    }

    /// Skips `nbytes` bytes of the body, which were received to their destination.
    pub(crate) fn advance(&mut self, nbytes: usize) {
        if let Some((head, done)) = &mut self.body {
            *done += nbytes;
            if *done >= head.body() {
                self.body = None;
            }
        }
    }
}
