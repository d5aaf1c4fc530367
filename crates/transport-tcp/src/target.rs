//! The target of the requests of one peer: this CPU carries them out and answers them, in order.
#![allow(unsafe_code)]

use crate::proto::{ReplyFrame, RequestFrame};
use crate::receiving::{WholeBody, WholeWords};
use crate::send_queue::SendQueue;
use rushmem_transport::engine::message::{MAX_ORIGINS, REPLY, REQUEST, Request};
use rushmem_transport::engine::{NetworkPe, entries};
use rushmem_transport::mem::{AtomicLoads, VolatileLoads, copy_bytes};
use rushmem_transport::peers::loss::Violation;
use rushmem_transport::segments::Segments;
use rushmem_transport::{LocalBuf, Pe, RemoteAddr, SourceBuf};
use std::sync::atomic::{Ordering, fence};

/// Maximum number of bytes that a reply copies while less than [`MAX_COPIED`] copied bytes are
/// queued. Copying that many takes less time than a system call.
const COPY_UP_TO: usize = 4 << 10;
/// Maximum number of copied bytes that are queued before replies refer to the memory instead, so
/// that a peer which does not receive takes little memory of this PE.
const MAX_COPIED: usize = 64 << 10;
/// Maximum number of bytes that a reply always copies. A range that is sent by reference may take a
/// system call of its own.
const COPY_ALWAYS: usize = 64;

/// Maximum number of copied bytes of queued replies: more than a peer can request without a
/// violation of its own limits.
const MAX_WAITING: usize = 1 << 20;

/// The state of the peer's requests to this PE.
pub(crate) struct Target {
    peer: Pe,
    /// Writes the put whose body is being received.
    words: WholeWords,
    /// The message that is being received.
    message: WholeBody,
    /// The number of the last message of each origin of the peer. An origin's messages arrive in
    /// the order of their numbers.
    carried_out: Vec<u32>,
    /// An unused buffer for the results of a request.
    results: Vec<u8>,
    pub(crate) replies: SendQueue,
    /// The peer has changed this PE's memory since the connection last reported that.
    pub(crate) has_changed_memory: bool,
}

impl Target {
    pub(crate) fn new(peer: Pe) -> Target {
        Target {
            peer,
            words: WholeWords::default(),
            message: WholeBody::default(),
            carried_out: Vec::new(),
            results: Vec::new(),
            replies: SendQueue::new(),
            has_changed_memory: false,
        }
    }

    /// Fails if too many bytes of replies are queued: the peer sends requests without receiving the
    /// replies, which would fill this PE's memory.
    pub(crate) fn check_waiting(&self) -> Result<(), Violation> {
        if self.replies.own_bytes() > MAX_WAITING {
            return Err(Violation::TooMany);
        }
        Ok(())
    }

    /// Executes the next bytes of a request, which are at offset `done` of its body. Validates the
    /// addresses.
    pub(crate) fn take(
        &mut self,
        local: &NetworkPe,
        request: RequestFrame,
        done: usize,
        bytes: &[u8],
    ) -> Result<(), Violation> {
        match request {
            RequestFrame::Put {
                dest,
                nbytes,
                in_parts,
            } => {
                let rest = range(&local.segments, dest, nbytes as usize)?.skip(done);
                if in_parts {
                    // SAFETY: `bytes` is a slice, so valid for reads. `rest` is a range of a
                    // segment, valid for writes, with room for the rest of the body, of which
                    // `bytes` are a part.
                    unsafe { copy_bytes::<VolatileLoads>(rest.base, bytes.as_ptr(), bytes.len()) };
                } else {
                    self.write(rest, bytes);
                }

                self.has_changed_memory = true;
            }
            RequestFrame::Message { nbytes } => {
                return self.take_message(local, nbytes as usize, bytes);
            }
            RequestFrame::Get {
                source,
                nbytes,
                in_parts,
            } => {
                let from = local
                    .segments
                    .source(source, nbytes as usize)
                    .ok_or(Violation::Address(source.offset))?;

                self.push_data(from, in_parts);
            }
            RequestFrame::Bye => {}
        }
        Ok(())
    }

    /// Writes the next bytes of a put to the rest of its destination, which is a range of a
    /// segment.
    fn write(&mut self, rest: LocalBuf, bytes: &[u8]) {
        // Data that have arrived earlier become visible before these: the bytes may be a flag for
        // which a thread waits with an acquire load, and the stores below are relaxed.
        fence(Ordering::Release);
        // SAFETY: `rest` is a part of a segment, as `Segments` has checked when the put began. The
        // memory of segments is valid for writes as long as the transport lives.
        unsafe { self.words.write(rest, bytes) };
    }

    /// Queues the reply to a get.
    fn push_data(&mut self, from: SourceBuf, in_parts: bool) {
        let nbytes = from.nbytes();
        self.replies.push(
            &ReplyFrame::Data {
                nbytes: nbytes as u32,
            }
            .encode(),
        );

        let copies_more = self.replies.own_bytes() < MAX_COPIED;
        if nbytes <= COPY_ALWAYS || nbytes <= COPY_UP_TO && copies_more {
            self.replies.push_copy::<AtomicLoads>(&from);
        } else if in_parts {
            self.replies.push_memory(from);
        } else {
            self.replies.push_shared(from);
        }
    }

    /// Collects the next bytes of a message, and carries it out when all have arrived.
    #[inline(never)]
    fn take_message(
        &mut self,
        local: &NetworkPe,
        nbytes: usize,
        bytes: &[u8],
    ) -> Result<(), Violation> {
        let mut message = std::mem::take(&mut self.message);
        let done = message.take(nbytes, bytes, |message| self.carry_out(local, message));

        self.message = message;
        done.unwrap_or(Ok(()))
    }

    /// Carries out a message. Replies if it asks for an acknowledgment or returns anything.
    fn carry_out(&mut self, local: &NetworkPe, message: &[u8]) -> Result<(), Violation> {
        let unknown = Violation::Unknown("request");
        let (head, body) = message.split_at_checked(REQUEST).ok_or(unknown)?;
        let request = Request::decode(head).map_err(|_| unknown)?;

        let (entries, attached) = body
            .split_at_checked(request.nbytes.into())
            .ok_or(Violation::Entries)?;

        let Request {
            stream, position, ..
        } = request;
        if stream.pe != self.peer || stream.origin >= MAX_ORIGINS {
            return Err(Violation::Unknown("stream of requests"));
        }

        // `MAX_ORIGINS` bounds the memory that a peer makes this PE allocate here.
        let origin = stream.origin as usize;
        if origin >= self.carried_out.len() {
            self.carried_out.resize(origin + 1, 0);
        }
        if position.number != self.carried_out[origin].wrapping_add(1) {
            return Err(Violation::Number(position.number));
        }
        self.carried_out[origin] = position.number;

        if let Some(ack) = request.ack {
            local.acks.acknowledge(self.peer, ack)?;
        }

        self.has_changed_memory |= !entries.is_empty();

        let NetworkPe { segments, host, .. } = local;
        entries::carry_out(entries, attached, segments, &**host, &mut self.results)?;

        match request.reply(local.me, position.number, &mut self.results) {
            Some(reply) => {
                let nbytes = (REPLY + self.results.len()) as u32;
                self.replies.push(&ReplyFrame::Message { nbytes }.encode());
                self.replies.push(&reply.encode());
                self.replies.push_all(&self.results);
                self.results.clear();
            }
            None => local.acks.mark_carried_out(stream, position.number),
        }
        self.check_waiting()
    }
}

/// Returns a range of a segment. Fails if the segment does not contain all of it.
pub(crate) fn range(
    segments: &Segments,
    start: RemoteAddr,
    nbytes: usize,
) -> Result<LocalBuf, Violation> {
    segments
        .bytes(start, nbytes)
        .ok_or(Violation::Address(start.offset))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::receiving::ReceivingPe;
    use rushmem_transport::Segment;

    #[test]
    fn words_are_copied_however_many_answers_wait() {
        let mut words = vec![0u64; 512];
        let local = ReceivingPe::for_tests().local;
        let memory = LocalBuf {
            base: words.as_mut_ptr().cast(),
            nbytes: 4096,
        };

        assert_eq!(
            // SAFETY: `memory` is the vector's, which outlives the segments.
            unsafe { local.segments.register(Segment::Heap, memory, ()) },
            Ok(())
        );

        let get = |nbytes| RequestFrame::Get {
            source: RemoteAddr {
                segment: Segment::Heap,
                offset: 0,
            },
            nbytes,
            in_parts: false,
        };

        let mut target = Target::new(Pe(1));
        for _ in 0..10_000 {
            target
                .take(&local, get(8), 0, &[])
                .expect("within the segment");
        }

        assert_eq!(
            (target.replies.n_unsent(), target.replies.own_bytes()),
            (1, 10_000 * 24)
        );

        target
            .take(&local, get(4096), 0, &[])
            .expect("within the segment");
        assert_eq!(
            target.replies.n_unsent(),
            2,
            "a large answer goes by reference then"
        );
    }
}
