//! Forms a team among PEs that share none yet.
//!
//! An explicit set of PEs carries out an all-reduce (recursive doubling, as a plan) over mailboxes;
//! the value that is reduced is a [`Proposal`]. So splits that only their members call, splits of a
//! whole parent, and the first use of an active set need no state that the members already share.
//!
//! The members agree on a slot of the internal area that is free on all of them, and on a
//! generation that none of them has used. Slots are offered in windows of 64, the same on all
//! members, chosen by the tag of the agreement; a window that another agreement of the same PE
//! currently offers is left out. If no slot in the window is free, all members see that and try the
//! next window, and again those that some member had left out.
//!
//! Where threads may be in several collectives at once, a slot comes with a set of receive buffers
//! if one is free on all members. An agreement offers all sets that its PE has; what another one of
//! the PE offers meanwhile is left out, and its team has none: it uses algorithms that need none.
//! So no collective waits for a set, whatever order threads call in. A PE gives a set back with its
//! slot, when it has read everything that was put there: a member of the next team that has the set
//! writes only to members of that team, all of which had given it back.

use crate::call::{Call, fail};
use crate::job::Job;
use crate::job::members::Members;
use crate::memory::areas::TEAM_SLOTS;
use crate::net::endpoints;
use crate::net::flags;
use crate::sync::mailbox::{self, DescribeWait, MailboxMessage, mailboxes};
use crate::sync::team_signals::GENERATIONS;
use rushmem_collectives::{Buffer, Span, Step, recursive_doubling};
use rushmem_transport::Pe;
use std::sync::{LazyLock, Mutex};

/// Slots in one window.
const WINDOW: usize = 64;
const WINDOWS: usize = TEAM_SLOTS / WINDOW;

/// The data that each member contributes and all members get combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Proposal {
    /// Slots of the window that are free here.
    free: u64,
    /// One more than the highest generation known here.
    generation: u64,
    /// True if this member can make the team at all.
    able: bool,
    /// A digest of the arguments, which must be the same for all.
    arguments: u64,
    /// True if they were.
    alike: bool,
    /// True if no member left the window out.
    offered: bool,
    /// True if this member can keep the team for later calls.
    keeps: bool,
    /// Sets of receive buffers that are free here, by bits.
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
        let flags = [self.able, self.alike, self.offered, self.keeps];
        let flags = flags.iter().rev().fold(0, |bits, &flag| bits << 1 | u64::from(flag));
        [receive_buffer, self.free, self.generation, self.arguments, flags, self.receive_buffers]
    }

    fn from_message(message: &MailboxMessage) -> Proposal {
        let [_, free, generation, arguments, flags, receive_buffers] = *message;
        let [able, alike, offered, keeps] = [1, 2, 4, 8].map(|flag| flags & flag != 0);
        Proposal { free, generation, able, arguments, alike, offered, keeps, receive_buffers }
    }
}

/// The request of a member.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AgreementRequest {
    /// A number that is the same on every member; no other agreement among the same PEs uses it at
    /// the same time.
    pub(crate) tag: u64,
    /// A digest of the arguments, which must be the same for all.
    pub(crate) arguments: u64,
    /// True if this member can make the team at all.
    pub(crate) able: bool,
    /// True if it can keep the team for later calls.
    pub(crate) keeps: bool,
    /// The number of slots that are wanted: the same on every member.
    pub(crate) count: usize,
}

/// The part of the members' internal areas that a team has: the same on all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) number: u16,
    /// Its own set of receive buffers, if there was one.
    pub(crate) receive_buffers: Option<u8>,
}

/// The result of an agreement: the same on every member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Agreed {
    /// These slots, in ascending order, with this generation. They are taken on this PE, too: the
    /// caller releases those of which it makes no team. The last field says whether all members
    /// keep the team.
    Slots(Vec<Slot>, u64, bool),
    /// Some member was not able to, or no slots are left.
    Refused,
    /// The members called with different arguments.
    Unlike,
    /// This PE is in another agreement with the caller.
    Elsewhere(Pe),
}

/// Slots of the predefined teams: those of the lowest numbers.
pub(crate) const PREDEFINED: u32 = 3;
/// The slot of the team that meets in finalize alone.
pub(crate) const FINALIZE: u16 = PREDEFINED as u16;
/// Slots that no agreement gives.
const TAKEN: u32 = FINALIZE as u32 + 1;

static SLOTS: LazyLock<Slots> = LazyLock::new(|| {
    let n_sets = flags::area().areas().receive_buffer_sets();
    Slots::new(TAKEN, (PREDEFINED as usize..n_sets).fold(0, |sets, set| sets | 1 << set))
});

/// Returns the slots of this PE.
pub(crate) fn slots() -> &'static Slots {
    &SLOTS
}

/// The slots of a PE.
pub(crate) struct Slots(Mutex<SlotState>);

struct SlotState {
    free: [u64; WINDOWS],
    /// Windows that an agreement in progress has on offer.
    offered: [bool; WINDOWS],
    generation: u64,
    /// Sets of receive buffers that are free, by bits, without those that an agreement offers.
    receive_buffers: u64,
}

impl Slots {
    /// Returns all slots free but the first `taken`, and these sets of receive buffers.
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

    /// Records a generation: teams made from now on have a higher one.
    pub(crate) fn reached(&self, generation: u64) {
        let mut state = self.state();
        state.generation = state.generation.max(generation);
    }

    /// Gives a slot back.
    pub(crate) fn release(&self, Slot { number, receive_buffers }: Slot) {
        let number = number as usize;
        let mut state = self.state();
        state.free[number / WINDOW] |= 1 << (number % WINDOW);
        state.receive_buffers |= receive_buffers.map_or(0, |set| 1 << set);
    }

    fn offer(&self, window: usize, request: AgreementRequest) -> Proposal {
        let AgreementRequest { arguments, able, keeps, .. } = request;
        let mut state = self.state();
        let offered = !std::mem::replace(&mut state.offered[window], true);
        let free = if offered { state.free[window] } else { 0 };
        let generation = state.generation + 1;
        let able = able && generation < GENERATIONS;
        let receive_buffers = std::mem::take(&mut state.receive_buffers);
        Proposal { free, generation, able, arguments, alike: true, offered, keeps, receive_buffers }
    }

    /// Takes the lowest `count` slots that all members have free in `window`, if that many exist
    /// and a team is made at all. Taken before the window can be offered again, so that no two
    /// agreements of this PE get the same.
    fn take_slots(
        &self,
        window: usize,
        own: Proposal,
        agreed: Proposal,
        count: usize,
    ) -> Option<Vec<Slot>> {
        let mut state = self.state();
        if own.offered {
            state.offered[window] = false;
        }
        state.receive_buffers |= own.receive_buffers;
        state.generation = state.generation.max(agreed.generation);
        if !(agreed.able && agreed.alike) {
            return None;
        }
        let bits = |of: u64| (0..u64::BITS).filter(move |bit| of >> bit & 1 == 1);
        let mut sets = bits(agreed.receive_buffers).map(|set| set as u8);
        let slot = |bit| Slot {
            number: (window * WINDOW) as u16 + bit as u16,
            receive_buffers: sets.next(),
        };
        let slots: Vec<Slot> = bits(agreed.free).take(count).map(slot).collect();
        if slots.len() < count {
            return None;
        }
        for slot in &slots {
            state.free[window] &= !(1 << (slot.number as usize % WINDOW));
            state.receive_buffers &= !slot.receive_buffers.map_or(0, |set| 1 << set);
        }
        Some(slots)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, SlotState> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// Agrees with all `members`, every one of which calls this.
pub(crate) fn agree(call: Call, job: &Job, members: &Members, request: AgreementRequest) -> Agreed {
    agree_in(call, &mailbox::message_wait(call), job, members, request)
}

/// Works as [`agree`], in a call whose waits are described.
pub(crate) fn agree_in(
    call: Call,
    describe: DescribeWait<'_>,
    job: &Job,
    members: &Members,
    request: AgreementRequest,
) -> Agreed {
    let AgreementRequest { tag, count, .. } = request;
    let first = (tag % WINDOWS as u64) as usize;
    let mut all_offered = true;
    for attempt in 0.. {
        let window = (first + attempt) % WINDOWS;
        let proposal = slots().offer(window, request);
        let agreed = match all_reduce(call, describe, job, members, tag, proposal) {
            Ok(agreed) => agreed,
            Err(peer) => return Agreed::Elsewhere(peer),
        };
        let slots = slots().take_slots(window, proposal, agreed, count);
        if !agreed.alike {
            return Agreed::Unlike;
        }
        if !agreed.able {
            return Agreed::Refused;
        }
        if let Some(slots) = slots {
            return Agreed::Slots(slots, agreed.generation, agreed.keeps);
        }
        all_offered &= agreed.offered;
        if attempt % WINDOWS == WINDOWS - 1 {
            if all_offered {
                break;
            }
            all_offered = true;
        }
    }
    Agreed::Refused
}

/// Carries out the plan of an all-reduce with messages for its puts. The error is a peer that is in
/// another agreement.
fn all_reduce(
    call: Call,
    describe: DescribeWait<'_>,
    job: &Job,
    members: &Members,
    tag: u64,
    own: Proposal,
) -> Result<Proposal, Pe> {
    endpoints::set_call(call);
    let me = members.team_pe(job.me()).expect("only members agree").0;
    let mut accumulator = own;
    let mut landed: Vec<(u64, Proposal)> = Vec::new();
    let take = |landed: &mut Vec<(u64, Proposal)>, receive_buffer: u8| {
        let i = landed.iter().position(|(l, _)| *l == u64::from(receive_buffer));
        landed.swap_remove(i.expect("a plan waits before it reads")).1
    };
    for step in recursive_doubling::all_reduce(members.n, me) {
        match step {
            Step::Put { peer, to, .. } => {
                let message = accumulator.message(u64::from(receive_buffer_of(to)));
                mailboxes().send(describe, job, members.world_pe(peer.index), tag, &message);
            }
            Step::Wait { peer } => {
                let peer = members.world_pe(peer.index);
                let message = mailboxes().receive(describe, job, peer, tag).ok_or(peer)?;
                landed.push((message[0], Proposal::from_message(&message)));
            }
            Step::Reduce { receive_buffer, .. } => {
                accumulator = accumulator.combine(take(&mut landed, receive_buffer));
            }
            Step::Copy { from, .. } => {
                accumulator = take(&mut landed, receive_buffer_of(from));
            }
            step => unreachable!("recursive doubling has no {step:?}"),
        }
    }
    Ok(accumulator)
}

fn receive_buffer_of(span: Span) -> u8 {
    match span.buffer {
        Buffer::Receive(receive_buffer) => receive_buffer,
        buffer => unreachable!("an all-reduce sends to receive buffers, not to {buffer:?}"),
    }
}

/// Ends the job: the calling PE and `peer` make different teams of each other.
pub(crate) fn elsewhere(call: Call, peer: Pe) -> ! {
    fail!(
        call,
        "PE {} is making another team with this PE, so both would wait forever: all members of a team \
         make it by the same call with the same arguments, and several teams in the same order",
        peer.0
    )
}

#[cfg(test)]
mod tests;
