//! The answers that an origin's requests await, and their destinations.
#![allow(unsafe_code)]

use crate::kit::batching::ReplyDestinations;
use crate::kit::violation::Violation;
use crate::{AmoWidth, Pe};
use std::ptr::null_mut;

/// The answers awaited, by the slots that requests name.
#[derive(Default)]
pub(super) struct AnswerSlots {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

/// One answer.
struct Slot {
    /// Counts the uses of the slot.
    generation: u32,
    /// The PE that answers; `None` if the slot is free.
    pe: Option<Pe>,
    /// The address for an old value, or null.
    word: *mut u8,
    width: AmoWidth,
    /// The destinations of the answers to a batch.
    answers: ReplyDestinations,
}

// SAFETY: addresses of memory that callers keep valid, which any thread may write.
unsafe impl Send for Slot {}

/// One use of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    slot: u32,
    generation: u32,
}

impl Ticket {
    /// Returns the number by which a request names the slot.
    pub(super) fn number(self) -> u32 {
        self.slot
    }
}

impl AnswerSlots {
    /// Returns the number of requests without an answer.
    #[inline]
    pub(super) fn n_unanswered(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    fn take(&mut self, pe: Pe) -> (Ticket, &mut Slot) {
        let slot = self.free.pop().unwrap_or_else(|| {
            let (answers, width) = (ReplyDestinations::default(), AmoWidth::Eight);
            self.slots.push(Slot { generation: 0, pe: None, word: null_mut(), width, answers });
            self.slots.len() as u32 - 1
        });
        let taken = &mut self.slots[slot as usize];
        taken.pe = Some(pe);
        (Ticket { slot, generation: taken.generation }, taken)
    }

    /// Takes a slot for an old value of a PE, which goes to `word`.
    pub(super) fn for_word(&mut self, pe: Pe, word: *mut u8, width: AmoWidth) -> Ticket {
        let (ticket, slot) = self.take(pe);
        (slot.word, slot.width) = (word, width);
        ticket
    }

    /// Takes a slot for the answers to a batch, which `fill` adds; `None` if there are none.
    pub(super) fn for_batch(
        &mut self,
        pe: Pe,
        fill: impl FnOnce(&mut ReplyDestinations),
    ) -> Option<Ticket> {
        let (ticket, slot) = self.take(pe);
        fill(&mut slot.answers);
        if slot.answers.is_empty() {
            self.release(ticket.slot);
            return None;
        }
        Some(ticket)
    }

    fn release(&mut self, number: u32) {
        let slot = &mut self.slots[number as usize];
        slot.generation = slot.generation.wrapping_add(1);
        (slot.pe, slot.word) = (None, null_mut());
        self.free.push(number);
    }

    /// Returns true if the answer has arrived.
    pub(super) fn is_past(&self, Ticket { slot, generation }: Ticket) -> bool {
        self.slots[slot as usize].generation != generation
    }

    /// Stores an answer that has arrived: an old value, or the results of a batch. Returns the PE
    /// that sent it.
    ///
    /// # Errors
    /// If that slot awaits no answer, or one of another length.
    pub(super) fn answer(&mut self, number: u32, old: u64, bytes: &[u8]) -> Result<Pe, Violation> {
        let slot = self.slots.get_mut(number as usize).ok_or(Violation::Unrequested)?;
        let pe = slot.pe.ok_or(Violation::Unrequested)?;
        if !slot.word.is_null() {
            // SAFETY: valid for a word of this width until now, by the contract of the operation.
            unsafe { slot.width.write(slot.word, old) };
        }
        // SAFETY: the destinations are valid until now, by the contract of the operation.
        let stored = unsafe { slot.answers.store(bytes) };
        self.release(number);
        stored.map(|()| pe)
    }

    /// Drops all destinations after a loss, so that no answer is stored any more.
    pub(super) fn forget(&mut self) {
        for slot in &mut self.slots {
            slot.word = null_mut();
            slot.answers.forget();
        }
    }
}
