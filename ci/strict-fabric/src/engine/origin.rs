//! Starts accepted operations, and completes them.
#![allow(unsafe_code)]

use super::{CHOICE, Engine, Pending, Sent};
use crate::atomic::AtomicOp;
use crate::memory::{self, is_running};
use crate::operation::{AcceptedOp, Completions, OpKind};
use crate::order::must_wait;
use crate::profile::RmaMode;
use crate::remote::{RemotePeer, RemoteRange};
use crate::segment::{DONE, INLINE, POSTED, RequestRef};
use crate::slot::{gather, write_request};
use libfabric_sys as fi;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Consecutive polls in which no submitted request was completed, after which the peers are
/// checked.
const MAX_IDLE_POLLS: u32 = 4096;

impl Engine {
    /// Starts a random operation among those that may start, or completes it early, before it
    /// starts.
    pub(super) fn start_one(&mut self, completions: &mut Completions) {
        let n_candidates = self.pending.len().min(CHOICE);
        let ready: Vec<usize> = (0..n_candidates).filter(|&i| self.may_start(i)).collect();
        if ready.is_empty() {
            return;
        }

        let chosen = ready[self.random.usize(..ready.len())];
        let completes_early = self.random.bool();

        let pending = &self.pending[chosen];
        if completes_early
            && pending.may_complete_early
            && pending.operation.completes
            && pending.operation.nbytes <= INLINE
        {
            self.complete_early(chosen, completions);
            return;
        }

        if let Some(pending) = self.pending.remove(chosen)
            && let Some(pending) = self.start(pending, completions)
        {
            // The inbox has no room. The operation keeps its place, which decides about its order.
            self.pending.insert(chosen, pending);
        }
    }

    /// Returns true if no earlier pending operation must start before this one.
    fn may_start(&self, index: usize) -> bool {
        let later = &self.pending[index].operation;
        !self.pending.range(..index).any(|pending| {
            let earlier = &pending.operation;
            earlier.peer == later.peer
                && must_wait(self.profile, later.ordered(), earlier.ordered())
        })
    }

    /// Completes a pending operation when its data have been copied, before it starts.
    fn complete_early(&mut self, index: usize, completions: &mut Completions) {
        let Pending {
            operation,
            reuse,
            bytes,
            ..
        } = &mut self.pending[index];

        reuse.check_source(&self.domain, operation.pieces());
        if bytes.is_none() {
            *bytes = Some(copy_source(operation));
        }
        reuse.release(&self.domain, &mut self.contexts);

        completions.push(operation.completion());
        operation.completes = false;
    }

    /// Performs or submits an operation. Returns it if there is no room.
    pub(super) fn start(
        &mut self,
        mut pending: Pending,
        completions: &mut Completions,
    ) -> Option<Pending> {
        let is_copied = pending.bytes.is_some();
        if !is_copied {
            pending
                .reuse
                .check_source(&self.domain, pending.operation.pieces());
        }

        if self.profile.rma == RmaMode::Software || pending.operation.kind == OpKind::Send {
            // Copied data are inline in the slot, since at most `INLINE` bytes are copied. So the
            // copy may be freed here.
            let Some(slot) = self.submit(&pending.operation, is_copied) else {
                return Some(pending);
            };
            self.sent.push(Sent {
                slot,
                operation: pending.operation,
                reuse: pending.reuse,
            });
            return None;
        }

        let operation = &pending.operation;
        let profile = self.profile;
        let remote = self.remote(operation.peer);
        let result = remote
            .target(profile, operation.target_access())
            .and_then(|target| {
                let amo = operation.amo.as_ref();
                transfer(remote, target, operation.kind, operation.pieces(), amo)
            });

        pending.reuse.release(&self.domain, &mut self.contexts);
        match result {
            Err(error) => completions.fail(operation.completion(), error),
            Ok(()) if operation.completes => completions.push(operation.completion()),
            Ok(()) => {}
        }
        None
    }

    /// Submits a request to its target's inbox, with inline data if `inlined` and they fit. Returns
    /// its slot, or `None` if there is no room.
    pub(super) fn submit(&mut self, operation: &AcceptedOp, inlined: bool) -> Option<u32> {
        let &index = self.slots.last()?;
        let domain = Arc::clone(&self.domain);
        let slot = &domain.segment.slots[self.number as usize][index as usize];
        write_request(slot, operation, inlined);
        // Before the push, after which the target may set another state.
        slot.state.store(POSTED, Ordering::Release);

        let reference = RequestRef {
            pid: domain.pid,
            fd: domain.fd(),
            endpoint: self.number,
            slot: index,
        };
        let peer = &self.remote(operation.peer).peer;
        let inbox = &peer.segment.inboxes[peer.endpoint as usize];
        if !inbox.push(reference) {
            // No other process has a reference to the slot.
            slot.state.store(DONE, Ordering::Relaxed);
            return None;
        }
        self.slots.pop()
    }

    /// Completes submitted requests that their targets have performed.
    pub(super) fn complete_sent(&mut self, completions: &mut Completions) {
        let own_slots = &self.domain.segment.slots[self.number as usize];
        let n_before = self.sent.len();

        self.sent.retain_mut(|sent| {
            let slot = &own_slots[sent.slot as usize];
            if slot.state.load(Ordering::Acquire) != DONE {
                return true;
            }
            self.slots.push(sent.slot);
            sent.reuse.release(&self.domain, &mut self.contexts);

            let operation = &sent.operation;
            let error = slot.error.load(Ordering::Relaxed) as i32;
            if error != 0 {
                completions.fail(operation.completion(), error);
                return false;
            }
            if let Some(amo) = &operation.amo {
                store_old(operation.pieces(), amo, slot.old.load(Ordering::Relaxed));
            }
            if operation.completes {
                completions.push(operation.completion());
            }
            false
        });

        if self.sent.len() < n_before {
            self.idle_polls = 0;
        } else {
            self.idle_polls += 1;
        }
        if self.idle_polls >= MAX_IDLE_POLLS {
            self.idle_polls = 0;
            self.fail_lost(completions);
        }
    }

    /// Fails requests to processes that have ended.
    #[cold]
    fn fail_lost(&mut self, completions: &mut Completions) {
        let mut peers = self.remotes.iter().flatten();
        if peers.all(|remote| is_running(remote.peer.pid)) {
            return;
        }

        let domain = Arc::clone(&self.domain);
        for mut sent in std::mem::take(&mut self.sent) {
            let pid = self.remote(sent.operation.peer).peer.pid;
            if is_running(pid) {
                self.sent.push(sent);
                continue;
            }
            sent.reuse.release(&domain, &mut self.contexts);
            self.slots.push(sent.slot);
            completions.fail(sent.operation.completion(), fi::FI_ECONNRESET);
        }
    }
}

/// Copies the data of an operation, and makes it use the copy.
pub(super) fn copy_source(operation: &mut AcceptedOp) -> Box<[u8]> {
    let mut bytes = vec![0u8; operation.nbytes].into_boxed_slice();
    let nbytes = gather(operation, &mut bytes);

    operation.pieces[0] = fi::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: nbytes,
    };
    operation.n_pieces = 1;
    bytes
}

/// Transfers the data of an operation between own memory and the target.
#[inline]
pub(super) fn transfer(
    remote: &RemotePeer,
    mut target: RemoteRange,
    kind: OpKind,
    pieces: &[fi::iovec],
    amo: Option<&AtomicOp>,
) -> Result<(), i32> {
    if let Some(amo) = amo {
        let old = remote.update(target, amo)?;
        store_old(pieces, amo, old);
        return Ok(());
    }

    for piece in pieces {
        let own = piece.iov_base.cast::<u8>();
        let nbytes = piece.iov_len;
        if kind == OpKind::Read {
            // SAFETY: the piece is valid until completion, by the contract of libfabric; the target
            // range includes all pieces.
            unsafe { remote.read(target, own, nbytes) }?;
        } else {
            // SAFETY: the piece is valid until completion, by the contract of libfabric; the target
            // range includes all pieces.
            unsafe { remote.write(target, own, nbytes) }?;
        }

        target.address += nbytes as u64;
        if !target.mapped.is_null() {
            target.mapped = target.mapped.wrapping_add(nbytes);
        }
    }
    Ok(())
}

/// Stores the old value of an atomic operation in its last piece.
#[inline]
fn store_old(pieces: &[fi::iovec], amo: &AtomicOp, old: u64) {
    let Some(piece) = pieces.last() else { return };
    // SAFETY: the last piece is a buffer for a word of this width, which is valid until completion,
    // by the contract of libfabric.
    unsafe { memory::copy(piece.iov_base.cast(), (&raw const old).cast(), amo.width) };
}
