//! Forms a team among PEs that share none yet.
//!
//! The members carry out an all-reduce over mailboxes, by the plan of recursive doubling. The value
//! that is combined is a [`Proposal`]. So an agreement needs no state that the members share,
//! whether they split a whole parent, make a split that only the members of the new team call, or
//! use an active set for the first time.
//!
//! The members agree on a slot of the internal area that is free on all of them, and on a
//! generation that none of them has used. They propose the free slots of one window of 64 slots,
//! which the tag of the agreement selects. While an agreement has not decided, other agreements of
//! the same PE propose no slot of its window. If too few slots are free on all members, they try
//! the next window. After the last window, they try all windows again if some member had proposed
//! no slot of a window for that reason.
//!
//! Where threads may be in several collectives at once, a team also gets a set of receive buffers
//! if one is free on all members. An agreement proposes all free sets of its PE. Until it has
//! decided, other agreements of the same PE propose none of these, and their teams may have to use
//! algorithms without receive buffers. So no agreement waits for a set, whatever the order in which
//! threads call. A PE releases a set with the slot, after it has read all that peers have stored in
//! the set. All members of the next team with the set have released it before, and only they write
//! to it.

use rushmem_collectives::{Buffer, Span, Step, recursive_doubling};
use rushmem_communication::links::Links;
use rushmem_communication::sync::mailbox::{DescribeWait, MailboxMessage};
use rushmem_communication::sync::team_signals::GENERATIONS;
use rushmem_pe::call::{Call, fail};
use rushmem_pe::job::members::Members;
use rushmem_pe::memory::areas::{Areas, TEAM_SLOTS};
use rushmem_system::lock::lock;
use rushmem_transport::Pe;
use std::sync::{Mutex, MutexGuard};

/// Slots in one window.
const WINDOW: usize = 64;
const WINDOWS: usize = TEAM_SLOTS / WINDOW;

/// The proposal of a member, or the combination of the proposals of several members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Proposal {
    /// The free slots of the window, by bits.
    free: u64,
    /// A generation higher than that of any team that these members have had.
    generation: u64,
    /// True if the members can make the team.
    able: bool,
    /// A digest of the arguments, which must be the same on all members.
    arguments: u64,
    /// True if the arguments of all members so far were the same.
    alike: bool,
    /// True if every member has proposed its free slots of the window; false if another agreement
    /// of some member has proposed them and not decided.
    offered: bool,
    /// True if the members can keep the team for later calls.
    keeps: bool,
    /// The free sets of receive buffers, by bits.
    receive_buffers: u64,
}

impl Proposal {
    fn combine(self, other: Proposal) -> Proposal {
        Proposal {
            free: self.free & other.free,
            generation: self.generation.max(other.generation),
            able: self.able && other.able,
            arguments: self.arguments,
            alike: self.alike && other.alike && self.arguments == other.arguments,
            offered: self.offered && other.offered,
            keeps: self.keeps && other.keeps,
            receive_buffers: self.receive_buffers & other.receive_buffers,
        }
    }

    fn message(self, receive_buffer: u64) -> MailboxMessage {
        let flags = u64::from(self.able)
            | u64::from(self.alike) << 1
            | u64::from(self.offered) << 2
            | u64::from(self.keeps) << 3;
        [
            receive_buffer,
            self.free,
            self.generation,
            self.arguments,
            flags,
            self.receive_buffers,
        ]
    }

    fn from_message(message: &MailboxMessage) -> Proposal {
        let [_, free, generation, arguments, flags, receive_buffers] = *message;
        Proposal {
            free,
            generation,
            able: flags & 1 != 0,
            arguments,
            alike: flags & 1 << 1 != 0,
            offered: flags & 1 << 2 != 0,
            keeps: flags & 1 << 3 != 0,
            receive_buffers,
        }
    }
}

/// The contribution of a member to an agreement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AgreementRequest {
    /// The tag of the messages: the same on every member, and different from that of any other
    /// agreement among the same PEs at the same time.
    pub(crate) tag: u64,
    /// A digest of the arguments, which must be the same on all members.
    pub(crate) arguments: u64,
    /// True if this member can make the team.
    pub(crate) able: bool,
    /// True if this member can keep the team for later calls.
    pub(crate) keeps: bool,
    /// The number of slots, one for each new team; the same on every member.
    pub(crate) count: usize,
}

/// The part of the internal areas that belongs to a team, the same on all members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) number: u16,
    /// The team's own set of receive buffers, if it has one.
    pub(crate) receive_buffers: Option<u8>,
}

/// The result of an agreement: the same on every member, except for `Elsewhere`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Agreed {
    /// The members have agreed.
    Slots {
        /// A slot for each team, in ascending order. They are taken: the caller releases those of
        /// which it makes no team.
        slots: Vec<Slot>,
        /// The generation of the teams.
        generation: u64,
        /// True if all members keep the team for later calls.
        all_keep: bool,
    },
    /// A member cannot make the team, or too few slots are free.
    Refused,
    /// The members have passed different arguments.
    Unlike,
    /// This PE is in another agreement, so that it and the caller would wait for each other.
    Elsewhere(Pe),
}

/// The number of predefined teams, which have the first slots.
pub(crate) const PREDEFINED: u32 = 3;
/// The slot of the team for the barrier of finalize.
pub(crate) const FINALIZE: u16 = PREDEFINED as u16;
/// The number of slots that are never free.
const TAKEN: u32 = FINALIZE as u32 + 1;

/// The slots of a PE that teams can get, and its sets of receive buffers.
#[derive(Debug)]
pub(crate) struct Slots(Mutex<SlotState>);

#[derive(Debug)]
struct SlotState {
    free: [u64; WINDOWS],
    /// True for each window whose slots an agreement in progress has proposed.
    offered: [bool; WINDOWS],
    /// No team of this PE has had a higher generation.
    generation: u64,
    /// The free sets of receive buffers, by bits, without those that an agreement has proposed.
    receive_buffers: u64,
}

impl Slots {
    /// Creates the slots of a PE that has the predefined teams.
    pub(crate) fn of_areas(areas: &Areas) -> Slots {
        // The first sets belong to the predefined teams.
        let mut receive_buffers = 0;
        for set in PREDEFINED as usize..areas.receive_buffer_sets() {
            receive_buffers |= 1 << set;
        }
        Slots::new(TAKEN, receive_buffers)
    }

    /// Creates the slots, all of them free but the first `taken`, with these free sets of receive
    /// buffers.
    pub(crate) fn new(taken: u32, receive_buffers: u64) -> Slots {
        let mut free = [u64::MAX; WINDOWS];
        free[0] = u64::MAX << taken;
        Slots(Mutex::new(SlotState {
            free,
            offered: [false; WINDOWS],
            generation: 1,
            receive_buffers,
        }))
    }

    /// Records that counters have reached a generation: new teams have a higher one.
    pub(crate) fn record_generation(&self, generation: u64) {
        let mut state = self.state();
        state.generation = state.generation.max(generation);
    }

    /// Makes a slot and its set of receive buffers free.
    pub(crate) fn release(&self, slot: Slot) {
        let number = slot.number as usize;
        let mut state = self.state();
        state.free[number / WINDOW] |= 1 << (number % WINDOW);
        if let Some(set) = slot.receive_buffers {
            state.receive_buffers |= 1 << set;
        }
    }

    /// Returns the proposal of this PE for a window. Until [`take_slots`](Slots::take_slots) is
    /// called, no other agreement of this PE proposes slots of the window or these sets of receive
    /// buffers.
    fn offer(&self, window: usize, request: AgreementRequest) -> Proposal {
        let mut state = self.state();

        // If another agreement of this PE has offered the window, this one offers no slot of it.
        let offered = !std::mem::replace(&mut state.offered[window], true);
        let free = if offered { state.free[window] } else { 0 };

        let generation = state.generation + 1;
        Proposal {
            free,
            generation,
            able: request.able && generation < GENERATIONS,
            arguments: request.arguments,
            alike: true,
            offered,
            keeps: request.keeps,
            receive_buffers: std::mem::take(&mut state.receive_buffers),
        }
    }

    /// Takes the lowest `count` slots of `window` that are free on all members, if there are that
    /// many and all members can make the team. Other agreements of this PE can then propose the
    /// window and the sets that are left.
    fn take_slots(
        &self,
        window: usize,
        own: Proposal,
        agreed: Proposal,
        count: usize,
    ) -> Option<Vec<Slot>> {
        let mut state = self.state();

        // Takes back what `offer` has withheld from other agreements. If this agreement has not
        // offered the window, another one has, and still withholds it.
        if own.offered {
            state.offered[window] = false;
        }
        state.receive_buffers |= own.receive_buffers;

        // Recorded even if the agreement fails, so that the generation only grows.
        state.generation = state.generation.max(agreed.generation);
        if !(agreed.able && agreed.alike) {
            return None;
        }

        if (agreed.free.count_ones() as usize) < count {
            return None;
        }

        // All members have the same bits, so they choose the same slots and sets.
        let mut sets = bits_of(agreed.receive_buffers);
        let mut slots = Vec::with_capacity(count);
        for bit in bits_of(agreed.free).take(count) {
            state.free[window] &= !(1 << bit);
            let set = sets.next();
            if let Some(set) = set {
                state.receive_buffers &= !(1 << set);
            }
            slots.push(Slot {
                number: (window * WINDOW) as u16 + u16::from(bit),
                receive_buffers: set,
            });
        }
        Some(slots)
    }

    fn state(&self) -> MutexGuard<'_, SlotState> {
        lock(&self.0)
    }
}

/// Returns the numbers of the bits that are set in a word, in ascending order.
fn bits_of(word: u64) -> impl Iterator<Item = u8> {
    (0..u64::BITS as u8).filter(move |bit| word >> bit & 1 == 1)
}

/// Agrees on the slots and the generation of new teams with all `members`, each of which calls
/// this. `describe` describes the waits of the call for a message.
pub(crate) fn agree(
    links: &'static Links,
    slots: &Slots,
    call: Call,
    describe: DescribeWait<'_>,
    members: &Members,
    request: AgreementRequest,
) -> Agreed {
    #[cfg(test)]
    crate::tests::kit::lateness::before_step();
    // Messages about the network name this call.
    links.endpoints.set_call(call);
    let member = AgreeingMember {
        links,
        slots,
        describe,
    };
    member.agree(members, request)
}

/// A PE that makes an agreement.
struct AgreeingMember<'a> {
    links: &'static Links,
    slots: &'a Slots,
    describe: DescribeWait<'a>,
}

impl AgreeingMember<'_> {
    fn agree(&self, members: &Members, request: AgreementRequest) -> Agreed {
        let AgreementRequest { tag, count, .. } = request;
        // The tag is the same on all members, so they propose the same windows in the same order.
        let first = (tag % WINDOWS as u64) as usize;

        loop {
            let mut all_offered = true;
            for distance in 0..WINDOWS {
                let window = (first + distance) % WINDOWS;
                let proposal = self.slots.offer(window, request);

                let agreed = match self.all_reduce(members, tag, proposal) {
                    Ok(agreed) => agreed,
                    Err(peer) => return Agreed::Elsewhere(peer),
                };

                // Called before the result is examined, since it also ends the offer.
                let slots = self.slots.take_slots(window, proposal, agreed, count);
                if !agreed.alike {
                    return Agreed::Unlike;
                }
                if !agreed.able {
                    return Agreed::Refused;
                }
                if let Some(slots) = slots {
                    return Agreed::Slots {
                        slots,
                        generation: agreed.generation,
                        all_keep: agreed.keeps,
                    };
                }
                all_offered &= agreed.offered;
            }

            // No window has enough slots. If every member has offered each of them, the slots are
            // used up; otherwise an agreement that withheld a window may have left slots free.
            if all_offered {
                return Agreed::Refused;
            }
        }
    }

    /// Combines the proposals of all members, by the plan of an all-reduce with messages in place
    /// of puts.
    ///
    /// # Errors
    /// The PE that waits for this one in another agreement.
    fn all_reduce(&self, members: &Members, tag: u64, own: Proposal) -> Result<Proposal, Pe> {
        let AgreeingMember {
            links, describe, ..
        } = *self;
        let me = members.team_pe(links.job.me).expect("only members agree").0;

        // The proposals that this PE has received and not combined yet, by the receive buffer to
        // which the plan puts them.
        let mut received: Vec<Received> = Vec::new();
        let mut accumulator = own;

        for step in recursive_doubling::all_reduce(members.n, me) {
            match step {
                Step::Put { peer, to, .. } => {
                    let message = accumulator.message(u64::from(receive_buffer_of(to)));
                    links.send_message(describe, members.world_pe(peer.index), tag, &message);
                }
                Step::Wait { peer } => {
                    let peer = members.world_pe(peer.index);
                    let message = links.receive_message(describe, peer, tag).ok_or(peer)?;
                    received.push(Received {
                        receive_buffer: message[0],
                        proposal: Proposal::from_message(&message),
                    });
                }
                Step::Reduce { receive_buffer, .. } => {
                    accumulator = accumulator.combine(take(&mut received, receive_buffer));
                }
                Step::Copy { from, .. } => {
                    accumulator = take(&mut received, receive_buffer_of(from));
                }
                step => unreachable!("recursive doubling has no {step:?}"),
            }
        }
        Ok(accumulator)
    }
}

/// A proposal that a PE has received, and the receive buffer to which the plan puts it.
struct Received {
    receive_buffer: u64,
    proposal: Proposal,
}

fn take(received: &mut Vec<Received>, receive_buffer: u8) -> Proposal {
    let index = received
        .iter()
        .position(|received| received.receive_buffer == u64::from(receive_buffer))
        .expect("a plan waits before it reads");
    received.swap_remove(index).proposal
}

fn receive_buffer_of(span: Span) -> u8 {
    match span.buffer {
        Buffer::Receive(receive_buffer) => receive_buffer,
        buffer => unreachable!("an all-reduce sends to receive buffers, not to {buffer:?}"),
    }
}

/// Ends the job: this PE and `peer` wait for each other in agreements on different teams.
pub(crate) fn fail_elsewhere(call: Call, peer: Pe) -> ! {
    fail!(
        call,
        "PE {} is making another team with this PE, so both would wait forever: all members of a team \
         make it by the same call with the same arguments, and several teams in the same order",
        peer.0
    )
}

#[cfg(test)]
mod tests;
