//! Accepts the operations and the receive buffers that the application posts.

use super::origin::{copy_source, transfer};
use super::{AGAIN, Engine, Pending, Receive, Sent};
use crate::connections::Passage;
use crate::info::OP_FLAGS;
use crate::operation::{AcceptedOp, CompletedOp, Completions, OpKind, Posted};
use crate::reuse::{LocalBuffers, ReuseCheck};
use crate::segment::PIECES;
use libfabric_sys as fi;
use std::ffi::c_void;
use std::ptr::null_mut;

impl Engine {
    /// Posts a request. Returns a result of libfabric.
    #[inline]
    pub(crate) fn post(&mut self, request: &Posted<'_>, completions: &mut Completions) -> isize {
        let is_selected = !self.selective || request.flags & fi::FI_COMPLETION != 0;
        let completes = is_selected && !request.silent;

        let in_flight = self.sent.len() + self.pending.len();
        if in_flight >= self.tx_size {
            return AGAIN;
        }
        // Counted only where the queue might have no room for all.
        let room = completions.room();
        if completes && room <= in_flight && room <= self.expected_completions() {
            return self.queue_full();
        }

        let peer = self.av.index(request.to);
        let passage = self
            .connections
            .pass(self.profile, &self.domain.connections, peer);
        match passage {
            Passage::Open => {}
            Passage::Fails(code) => return code,
            Passage::FailsLater => {
                let operation = accept(request, peer, completes);
                self.connections.fail_later(operation.completion());
                return 0;
            }
            Passage::Exceeds(begun) => {
                let most = self.profile.max_begun_connections;
                self.domain.violation(
                    "connections",
                    format!("{begun} are being set up, not {most}"),
                );
            }
        }

        if !self.profile.immediate {
            return self.post_deferred(request, peer, completes);
        }
        if request.kind == OpKind::Send {
            return self.send_now(request, peer, completes);
        }
        self.perform_now(request, peer, completes, completions);
        0
    }

    /// Returns the number of operations in flight that will each take an entry of the completion
    /// queue: those that have not completed early.
    #[cold]
    fn expected_completions(&self) -> usize {
        let sent = self.sent.iter().map(|sent| &sent.operation);
        let pending = self.pending.iter().map(|pending| &pending.operation);
        sent.chain(pending)
            .filter(|operation| operation.completes)
            .count()
    }

    /// Returns the result if the completion queue has no room, which is a violation in profiles
    /// whose queues may overrun.
    #[cold]
    fn queue_full(&self) -> isize {
        if self.profile.resource_mgmt == fi::FI_RM_DISABLED {
            self.domain
                .violation("FI_RM_DISABLED", "the completion queue may overrun");
        }
        AGAIN
    }

    /// Submits a message immediately. Returns 0, or `AGAIN` if there is no room for it.
    fn send_now(&mut self, request: &Posted<'_>, peer: usize, completes: bool) -> isize {
        let operation = accept(request, peer, completes);
        let inlined = request.flags & fi::FI_INJECT != 0;
        let Some(slot) = self.submit(&operation, inlined) else {
            return AGAIN;
        };

        self.sent.push(Sent {
            slot,
            operation,
            reuse: ReuseCheck::default(),
        });
        0
    }

    /// Performs an RMA or atomic operation immediately, and adds its completion.
    #[inline]
    fn perform_now(
        &mut self,
        request: &Posted<'_>,
        peer: usize,
        completes: bool,
        completions: &mut Completions,
    ) {
        let profile = self.profile;
        let remote = self.remote(peer);
        let result = remote
            .target(profile, request.target_access())
            .and_then(|target| {
                let amo = request.amo.as_ref();
                transfer(remote, target, request.kind, request.pieces, amo)
            });

        let entry = CompletedOp {
            context: request.context.expose_provenance(),
            flags: request.kind.completion_flags(),
            nbytes: request.nbytes(),
        };
        match result {
            Ok(()) if completes => completions.push(entry),
            Ok(()) => {}
            Err(error) => completions.fail(entry, error),
        }
    }

    /// Checks a request and queues it for a later poll, which starts it. Returns 0, or `AGAIN` if
    /// the application must post it again.
    fn post_deferred(&mut self, request: &Posted<'_>, peer: usize, completes: bool) -> isize {
        self.check(request);
        if self.refuses() {
            return AGAIN;
        }

        let kind = request.kind;
        let mut operation = accept(request, peer, completes);
        if self.profile.requires(fi::FI_MR_RAW) && kind != OpKind::Send {
            let Some(key) = self.domain.mapped.key(request.key) else {
                self.domain
                    .violation("FI_MR_RAW", "an operation names a key that is not mapped")
            };
            operation.key = key;
        }

        let mut bytes = None;
        let mut reuse = ReuseCheck::default();
        if request.flags & fi::FI_INJECT != 0 {
            // The application may change the source after this call, so nothing is checked later.
            bytes = Some(copy_source(&mut operation));
        } else {
            let buffers = LocalBuffers {
                pieces: operation.pieces(),
                descs: request.descs,
                access: kind.own_access(),
            };
            reuse = ReuseCheck::new(&self.domain, self.number, buffers);
            if kind.is_source() {
                reuse = reuse.with_source(operation.pieces());
            }
        }
        if completes {
            reuse = reuse.with_context(&self.domain, &mut self.contexts, operation.context);
        }

        self.pending.push_back(Pending {
            operation,
            reuse,
            bytes,
            may_complete_early: kind.is_source() && request.flags & fi::FI_DELIVERY_COMPLETE == 0,
        });
        0
    }

    /// Checks that the profile permits a request.
    fn check(&self, request: &Posted<'_>) {
        let domain = &self.domain;
        let profile = self.profile;
        let nbytes = request.nbytes();

        if request.flags & !OP_FLAGS != 0 {
            domain.violation(
                "flags",
                format!("an operation has unknown flags {:#x}", request.flags),
            );
        }
        if request.flags & fi::FI_INJECT != 0 && nbytes > profile.inject {
            let most = profile.inject;
            domain.violation(
                "inject_size",
                format!("{nbytes} bytes are injected, not {most}"),
            );
        }
        if nbytes > profile.max_message {
            let most = profile.max_message;
            domain.violation(
                "max_msg_size",
                format!("an operation has {nbytes} bytes, not {most}"),
            );
        }
        // The pieces of an atomic operation are its words, which this limit does not concern.
        if request.amo.is_none() && request.pieces.len() > profile.iov_limit {
            let n = request.pieces.len();
            domain.violation("iov_limit", format!("an operation has {n} pieces"));
        }
    }

    /// Posts a receive buffer. Returns a result of libfabric.
    pub(crate) fn receive(
        &mut self,
        piece: fi::iovec,
        desc: *mut c_void,
        context: *mut c_void,
    ) -> isize {
        if self.receives.len() >= self.profile.rx_size {
            return AGAIN;
        }

        let context = context.expose_provenance();
        let mut reuse = ReuseCheck::default();
        if !self.profile.immediate {
            if self.refuses() {
                return AGAIN;
            }
            let buffers = LocalBuffers {
                pieces: &[piece],
                descs: &[desc],
                access: fi::FI_RECV,
            };
            reuse = ReuseCheck::new(&self.domain, self.number, buffers).with_context(
                &self.domain,
                &mut self.contexts,
                context,
            );
        }

        self.receives.push_back(Receive {
            piece,
            context,
            reuse,
        });
        0
    }
}

/// Returns a request in the form in which an endpoint stores it.
fn accept(request: &Posted<'_>, peer: usize, completes: bool) -> AcceptedOp {
    let n_pieces = request.pieces.len();
    let mut pieces = [fi::iovec {
        iov_base: null_mut(),
        iov_len: 0,
    }; PIECES];
    pieces[..n_pieces].copy_from_slice(request.pieces);

    AcceptedOp {
        kind: request.kind,
        pieces,
        n_pieces,
        peer,
        address: request.address,
        key: request.key,
        nbytes: request.nbytes(),
        context: request.context.expose_provenance(),
        amo: request.amo,
        completes,
    }
}
