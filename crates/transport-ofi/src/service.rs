//! The service endpoint, to which peers send: it receives their requests, which this CPU carries
//! out, and the replies to this PE's requests. Polling it also lets a software provider carry out
//! reads and writes of peers.
//!
//! One thread at a time polls; `progress` decides which one.

use crate::ep::{EpFailure, FiEndpoint, PostStatus, ReceiveOutcome};
use crate::message::Message;
use crate::settings::Tuning;
use libfabric_sys as fi;
use rushmem_transport::engine::message::Reply;
use rushmem_transport::engine::target::{Contents, Incoming, RequestTarget, Serving};
use rushmem_transport::engine::{NetworkPe, ReplyTable};
use rushmem_transport::peers::loss::{RefusedMessage, Violation};
use rushmem_transport::{LocalBuf, Pe, SourceBuf};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

/// Number of sends for which the ep has cells besides those of receives.
pub(crate) const SENDS: usize = 64;

/// The service endpoint of this PE and its state.
pub(crate) struct Service {
    pub(crate) ep: FiEndpoint,
    /// Maximum number of receives that are posted at once.
    receives: usize,
    /// The tag in every message of this job, except the empty ones that connect.
    pub(crate) tag: u64,
    /// Maximum number of bytes of a batch, and of its results.
    longest_batch: usize,
    pub(crate) replies: Arc<ReplyTable>,
    /// The target of the peers' requests.
    target: RequestTarget<(), Infallible>,
    backlog: Backlog,
}

/// Replies that were not sent yet.
type Backlog = VecDeque<WaitingReply>;

/// A reply that waits to be sent.
pub(crate) struct WaitingReply {
    pub(crate) to: Pe,
    reply: Reply,
    /// The results that follow the reply.
    results: Vec<u8>,
}

/// The reason why peers cannot be served any more.
pub(crate) enum ServiceFailure {
    /// An operation of libfabric has failed.
    Ep(EpFailure),
    /// A message violates the protocol.
    Message(RefusedMessage),
}

impl From<EpFailure> for ServiceFailure {
    fn from(failure: EpFailure) -> ServiceFailure {
        ServiceFailure::Ep(failure)
    }
}

/// The parts of the service that handle a message while the ep is polled.
struct OfiServing<'a> {
    local: &'a NetworkPe<usize>,
    tag: u64,
    longest_batch: usize,
    replies: &'a ReplyTable,
    backlog: RefCell<&'a mut Backlog>,
}

impl Service {
    /// Returns the service of PE `me`. `ep` has room for the receives of `tuning` and for
    /// [`SENDS`].
    pub(crate) fn new(me: Pe, ep: FiEndpoint, tuning: &Tuning, tag: u64) -> Service {
        Service {
            ep,
            receives: tuning.receives,
            tag,
            longest_batch: tuning.longest_batch(),
            replies: Arc::default(),
            target: RequestTarget::new(me),
            backlog: VecDeque::new(),
        }
    }

    /// Posts receives until the maximum number is posted, or libfabric has no room at present.
    pub(crate) fn post_receives(&mut self) -> Result<(), i32> {
        while self.ep.receiving < self.receives && self.ep.post_receive()? != PostStatus::Again {}
        Ok(())
    }

    /// Polls the endpoint and serves what has arrived, then posts receives. The replies wait for
    /// [`send`](Self::send). Returns true if there was work.
    pub(crate) fn poll(&mut self, local: &NetworkPe<usize>) -> Result<bool, ServiceFailure> {
        let target = &self.target;
        let serving = OfiServing {
            local,
            tag: self.tag,
            longest_batch: self.longest_batch,
            replies: &self.replies,
            backlog: RefCell::new(&mut self.backlog),
        };

        // The poll hands on all that it has taken from the completion queue, also after a failure:
        // each completion returns a buffer.
        let mut failure = None;
        let worked = self.ep.poll(|end| {
            if let Err(first) = serving.take(target, end) {
                failure.get_or_insert(first);
            }
        })? > 0;
        if let Some(failure) = failure {
            return Err(failure);
        }

        self.post_receives().map_err(|code| {
            let why = format!(
                "a buffer for messages was refused: {}",
                self.ep.strerror(code)
            );
            EpFailure { pe: None, why }
        })?;
        Ok(worked)
    }

    /// Returns the number of replies that wait to be sent.
    pub(crate) fn n_waiting(&self) -> usize {
        self.backlog.len()
    }

    /// Takes the reply that has waited longest.
    pub(crate) fn next_reply(&mut self) -> Option<WaitingReply> {
        self.backlog.pop_front()
    }

    /// Sends a reply to the PE with this address, or lets it wait if there is no room.
    pub(crate) fn send(
        &mut self,
        waiting: WaitingReply,
        fi_addr: fi::fi_addr_t,
    ) -> Result<(), EpFailure> {
        let WaitingReply { to, reply, results } = &waiting;
        let head = Message::Reply(*reply).encode(self.tag);
        match self
            .ep
            .send(to.0, fi_addr, &head, results, &SourceBuf::EMPTY)
        {
            Ok(PostStatus::Started) => Ok(()),
            Ok(PostStatus::Again) => {
                self.defer(waiting);
                Ok(())
            }
            Err(code) => Err(EpFailure {
                pe: Some(to.0),
                why: self.ep.why_refused(to.0, code),
            }),
        }
    }

    /// Lets a reply wait, behind the others.
    pub(crate) fn defer(&mut self, waiting: WaitingReply) {
        self.backlog.push_back(waiting);
    }

    /// Returns true if replies wait to be sent or are in flight, so that the ep must be polled.
    pub(crate) fn has_backlog(&self) -> bool {
        !self.backlog.is_empty() || self.ep.in_flight() > 0
    }
}

impl OfiServing<'_> {
    /// Handles the outcome of a receive.
    fn take(
        &self,
        target: &RequestTarget<(), Infallible>,
        end: ReceiveOutcome<'_>,
    ) -> Result<(), ServiceFailure> {
        let handled = match end {
            // An empty message, which only connects.
            ReceiveOutcome::Whole([]) => Ok(()),
            ReceiveOutcome::Whole(bytes) => self.take_whole(target, bytes),
            ReceiveOutcome::Truncated { start, nbytes } => {
                handle_truncated(start, nbytes, self.tag)
            }
            ReceiveOutcome::Failed { start, why } => {
                let pe = sender(start, self.tag).unwrap_or_else(|message| message.from);
                let pe = pe.map(|pe| pe.0);
                return Err(ServiceFailure::Ep(EpFailure { pe, why }));
            }
        };
        handled.map_err(ServiceFailure::Message)
    }

    /// Handles a message: a request of a peer, or a reply.
    fn take_whole(
        &self,
        target: &RequestTarget<(), Infallible>,
        bytes: &[u8],
    ) -> Result<(), RefusedMessage> {
        let Some((message, body)) = Message::decode(bytes, self.tag)? else {
            return ignore(bytes.len());
        };

        let handled = match message {
            Message::Request(request) => Contents::of(&request, body).and_then(|contents| {
                let incoming = Incoming {
                    request,
                    reply_to: (),
                };
                target.take(self, incoming, contents)
            }),
            Message::Reply(reply) => self.replies.deliver(&self.local.acks, reply, body),
        };
        handled.map_err(|violation| RefusedMessage::of(message.sender(), violation))
    }
}

impl Serving for OfiServing<'_> {
    type ReplyTo = ();
    type Remote = Infallible;
    type Extra = usize;

    fn local(&self) -> &NetworkPe<usize> {
        self.local
    }

    fn reply(
        &self,
        Incoming { request, .. }: Incoming<()>,
        reply: Reply,
        results: &mut Vec<u8>,
    ) -> Result<(), Violation> {
        if results.len() > self.longest_batch {
            return Err(Violation::TooMany);
        }

        // An empty buffer stays with the caller, with its capacity.
        let results = if results.is_empty() {
            Vec::new()
        } else {
            std::mem::take(results)
        };
        // Replies are sent after the poll, since the poll uses the ep.
        self.backlog.borrow_mut().push_back(WaitingReply {
            to: request.stream.pe,
            reply,
            results,
        });
        Ok(())
    }

    fn fetch(&self, _: Incoming<()>, _: Vec<u8>, data: Infallible, _: LocalBuf) {
        match data {}
    }
}

/// Ignores a message without the job's tag: no PE of the job has sent it, so none waits for its
/// effects.
fn ignore(nbytes: usize) -> Result<(), RefusedMessage> {
    rushmem_system::log::debug!("a message of {nbytes} bytes is not of this job");
    Ok(())
}

/// Handles a truncated message of `nbytes` bytes, which is longer than any that a PE of the job
/// sends.
fn handle_truncated(start: &[u8], nbytes: usize, tag: u64) -> Result<(), RefusedMessage> {
    match sender(start, tag)? {
        Some(pe) => Err(RefusedMessage::of(pe, Violation::TooLong(nbytes as u64))),
        // The sender is unknown, but may be a PE that waits for the effects of the message: ofi_rxm
        // over sockets stores nothing of most truncated messages.
        None if start.iter().all(|byte| *byte == 0) => Err(RefusedMessage::of_nobody(
            "it is longer than any that a PE sends, and the provider kept nothing of it; give all PEs \
             the same SHMEM_OFI settings",
        )),
        None => ignore(nbytes),
    }
}

/// Returns the sender of a message with this start, if the message has the tag of the job.
fn sender(start: &[u8], tag: u64) -> Result<Option<Pe>, RefusedMessage> {
    let message = Message::decode(start, tag)?;
    Ok(message.map(|(message, _)| message.sender()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rushmem_transport::engine::message::Ack;

    #[test]
    fn a_message_that_is_too_long_is_refused_if_it_is_of_this_job() {
        let reply = Reply {
            pe: Pe(2),
            ack: Ack {
                origin: 0,
                count: 0,
            },
            answer: None,
        };
        let start = Message::Reply(reply).encode(7);

        let too_long = RefusedMessage::of(Pe(2), Violation::TooLong(70_000));
        assert_eq!(handle_truncated(&start, 70_000, 7), Err(too_long));
        assert_eq!(
            handle_truncated(&start, 70_000, 8),
            Ok(()),
            "of another job"
        );

        let unknown = handle_truncated(&[0; 8], 0, 7).expect_err("nothing of it has come");
        assert_eq!(unknown.from, None);
    }
}
