//! How PEs agree on a team that does not exist yet.
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

use crate::base::call::{Call, fail};
use crate::base::job::Job;
use crate::base::members::Members;
use crate::memory::areas::TEAM_SLOTS;
use crate::net::calling;
use crate::sync::channel::GENERATIONS;
use crate::sync::mailbox::{MailboxMessage, mailboxes};
use rushmem_collectives::{Buffer, Span, Step, recursive_doubling};
use rushmem_transport::Pe;
use std::sync::{LazyLock, Mutex};

/// Slots in one window.
const WINDOW: usize = 64;
const WINDOWS: usize = TEAM_SLOTS / WINDOW;

/// What each member brings and all members get combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Proposal {
    /// Slots of the window that are free here.
    free: u64,
    /// One more than the highest generation known here.
    generation: u64,
    /// Whether this member can make the team at all.
    able: bool,
    /// A digest of the arguments, which must be the same for all.
    arguments: u64,
    /// Whether they were.
    alike: bool,
    /// Whether no member left the window out.
    offered: bool,
    /// Whether this member can keep the team for later calls.
    keeps: bool,
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
        }
    }

    fn message(self, landing: u64) -> MailboxMessage {
        let flags = [self.able, self.alike, self.offered, self.keeps];
        let flags = flags.iter().rev().fold(0, |bits, &flag| bits << 1 | u64::from(flag));
        [landing, self.free, self.generation, self.arguments, flags, 0]
    }

    fn from_message(message: &MailboxMessage) -> Proposal {
        let [_, free, generation, arguments, flags, _] = *message;
        let [able, alike, offered, keeps] = [1, 2, 4, 8].map(|flag| flags & flag != 0);
        Proposal { free, generation, able, arguments, alike, offered, keeps }
    }
}

/// What a member asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AgreementRequest {
    /// The same on every member; no other agreement among the same PEs uses it at the same time.
    pub(crate) tag: u64,
    /// A digest of the arguments, which must be the same for all.
    pub(crate) arguments: u64,
    /// Whether this member can make the team at all.
    pub(crate) able: bool,
    /// Whether it can keep the team for later calls.
    pub(crate) keeps: bool,
    /// How many slots are wanted: the same on every member.
    pub(crate) count: usize,
}

/// What was agreed on: the same on every member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Agreed {
    /// These slots, in ascending order, with this generation. They are taken on this PE, too: the
    /// caller releases those of which it makes no team. The last field says whether all members
    /// keep the team.
    Slots(Vec<u16>, u64, bool),
    /// Some member was not able to, or no slots are left.
    Refused,
    /// The members called with different arguments.
    Unlike,
    /// This PE is in another agreement with the caller.
    Elsewhere(Pe),
}

/// Slots of the predefined teams: those of the lowest numbers.
pub(crate) const PREDEFINED: u32 = 3;
/// The slot of the channels that all active sets share.
pub(crate) const ACTIVE_SETS: u16 = PREDEFINED as u16;
/// Slots that no agreement gives.
const TAKEN: u32 = PREDEFINED + 1;

static SLOTS: LazyLock<Slots> = LazyLock::new(|| Slots::new(TAKEN));

/// The slots of this PE.
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
}

impl Slots {
    /// All slots free but the first `taken`.
    pub(crate) fn new(taken: u32) -> Slots {
        let mut free = [u64::MAX; WINDOWS];
        free[0] = u64::MAX << taken;
        Slots(Mutex::new(SlotState { free, offered: [false; WINDOWS], generation: 1 }))
    }

    /// What is made from now on has a higher generation than this one.
    pub(crate) fn reached(&self, generation: u64) {
        let mut state = self.state();
        state.generation = state.generation.max(generation);
    }

    /// Give a slot back.
    pub(crate) fn release(&self, slot: u16) {
        let slot = slot as usize;
        self.state().free[slot / WINDOW] |= 1 << (slot % WINDOW);
    }

    fn offer(&self, window: usize, request: AgreementRequest) -> (Proposal, bool) {
        let AgreementRequest { arguments, able, keeps, .. } = request;
        let mut state = self.state();
        let mine = !state.offered[window];
        state.offered[window] = true;
        let free = if mine { state.free[window] } else { 0 };
        let generation = state.generation + 1;
        let able = able && generation < GENERATIONS;
        (Proposal { free, generation, able, arguments, alike: true, offered: mine, keeps }, mine)
    }

    /// Take the lowest `count` slots that all members have free in `window`, if that many exist
    /// and a team is made at all. Taken before the window can be offered again, so that no two
    /// agreements of this PE get the same.
    fn settle(
        &self,
        window: usize,
        mine: bool,
        agreed: Proposal,
        count: usize,
    ) -> Option<Vec<u16>> {
        let mut state = self.state();
        if mine {
            state.offered[window] = false;
        }
        state.generation = state.generation.max(agreed.generation);
        if !(agreed.able && agreed.alike) {
            return None;
        }
        let bits = (0..WINDOW).filter(|bit| agreed.free >> bit & 1 == 1).take(count);
        let slots: Vec<u16> = bits.map(|bit| (window * WINDOW + bit) as u16).collect();
        if slots.len() < count {
            return None;
        }
        for &slot in &slots {
            state.free[window] &= !(1 << (slot as usize % WINDOW));
        }
        Some(slots)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, SlotState> {
        self.0.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// Agree with all `members`, every one of which calls this.
pub(crate) fn agree(call: Call, job: &Job, members: &Members, request: AgreementRequest) -> Agreed {
    let AgreementRequest { tag, count, .. } = request;
    let first = (tag % WINDOWS as u64) as usize;
    let mut all_offered = true;
    for attempt in 0.. {
        let window = (first + attempt) % WINDOWS;
        let (proposal, mine) = slots().offer(window, request);
        let agreed = match all_reduce(call, job, members, tag, proposal) {
            Ok(agreed) => agreed,
            Err(peer) => return Agreed::Elsewhere(peer),
        };
        let slots = slots().settle(window, mine, agreed, count);
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

/// Carry out the plan of an all-reduce with messages for its puts. The error is a peer that is in
/// another agreement.
fn all_reduce(
    call: Call,
    job: &Job,
    members: &Members,
    tag: u64,
    own: Proposal,
) -> Result<Proposal, Pe> {
    calling::note(call);
    let me = members.team_pe(job.me()).expect("only members agree").0;
    let mut accumulator = own;
    let mut landed: Vec<(u64, Proposal)> = Vec::new();
    let take = |landed: &mut Vec<(u64, Proposal)>, landing: u8| {
        let i = landed.iter().position(|(l, _)| *l == u64::from(landing));
        landed.swap_remove(i.expect("a plan waits before it reads")).1
    };
    for step in recursive_doubling::all_reduce(members.n, me) {
        match step {
            Step::Put { peer, to, .. } => {
                let message = accumulator.message(u64::from(landing_of(to)));
                mailboxes().send(call, job, members.world_pe(peer.index), tag, &message);
            }
            Step::Wait { peer } => {
                let peer = members.world_pe(peer.index);
                let message = mailboxes().receive(call, job, peer, tag).ok_or(peer)?;
                landed.push((message[0], Proposal::from_message(&message)));
            }
            Step::Reduce { landing, .. } => {
                accumulator = accumulator.combine(take(&mut landed, landing));
            }
            Step::Copy { from, .. } => {
                accumulator = take(&mut landed, landing_of(from));
            }
            step => unreachable!("recursive doubling has no {step:?}"),
        }
    }
    Ok(accumulator)
}

fn landing_of(span: Span) -> u8 {
    match span.buffer {
        Buffer::Landing(landing) => landing,
        place => unreachable!("an all-reduce sends to landings, not to {place:?}"),
    }
}

/// End the job: the calling PE and `peer` make different teams of each other.
pub(crate) fn elsewhere(call: Call, peer: Pe) -> ! {
    // Cause: PEs split teams in different orders. Remedy: make the same splits in the same order on
    // all.
    fail!(
        call,
        "PE {} is making another team with this PE, so both would wait forever: all members of a team \
         make it by the same call with the same arguments, and several teams in the same order",
        peer.0
    )
}

#[cfg(test)]
mod tests;
