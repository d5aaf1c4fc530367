//! Active sets (OpenSHMEM 1.6, Annex: deprecated collectives): the members of a set, and the
//! channels that a call on it uses.
//!
//! All active sets share the same channels, so a set needs nothing of its own: no memory and no
//! agreement on its first use, and the number of sets is not limited. This relies on each two PEs
//! making the calls in which both take part in the same order. If several threads of a PE may be in
//! the library at once, there is no such order, and only pSync distinguishes their calls: then the
//! members agree on a team at the first use. They keep it for later calls while each of them has
//! room; if one has none, the team ends with the call.
//!
//! pSync itself is neither read nor written, here or remotely: it is unchanged when the call
//! returns, as the standard requires, and it may be static.

use crate::base::call::{Call, fail};
use crate::base::digest::digest;
use crate::base::job::{self, Job};
use crate::base::members::Members;
use crate::base::process;
use crate::memory::address;
use crate::memory::areas::TEAM_SLOTS;
use crate::memory::object;
use crate::teams::agreement::{Agreed, AgreementRequest, agree, elsewhere};
use crate::teams::psync::PsyncUse;
use crate::teams::team::{HeldTeam, Name, Team, TeamConfig};
use core::ffi::{c_int, c_long};
use rushmem_transport::TeamPe;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

/// The team whose channels all active sets share.
static SHARED: OnceLock<Team> = OnceLock::new();
/// Teams of single active sets, which there are where threads of a PE may call at once.
static OWN: LazyLock<Mutex<HashMap<ActiveSetKey, Arc<Team>>>> = LazyLock::new(Mutex::default);

/// What an agreement is about, in its tag.
const ACTIVE_SET: u64 = 3;
/// Teams of active sets that a PE keeps: half of the slots, so that the other half is left to the
/// teams that the program makes.
const KEPT: usize = TEAM_SLOTS / 2;

/// What makes two calls use the same team, where active sets have teams of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct ActiveSetKey {
    triplet: [c_int; 3],
    /// Where pSync is in this process.
    psync: usize,
}

/// Who owns the channels that a call uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChannelOwner {
    /// All active sets together.
    AllSets,
    /// The pair of active set and pSync, until the last finalize.
    Set,
    /// The call.
    Call,
}

/// An active set that the calling PE is in.
#[derive(Debug)]
pub(crate) struct ActiveSet {
    /// `PE_start`, `logPE_stride` and `PE_size`.
    triplet: [c_int; 3],
    members: Members,
    me: TeamPe,
    /// The most members on one node.
    per_node: u32,
    /// Whose channels a call uses: its members are those of the set, or the world if the channels
    /// are shared.
    team: HeldTeam,
    owner: ChannelOwner,
    /// With `SHMEM_CHECK`.
    _psync: Option<PsyncUse>,
}

impl ActiveSet {
    /// The active set of a call.
    pub(crate) fn find(call: Call, triplet: [c_int; 3], psync: *const c_long) -> ActiveSet {
        let job = job::require(call);
        let members = members(call, job, triplet);
        let me = members.team_pe(job.me()).expect("the calling PE is a member");
        let psync_use = job.settings.checks().then(|| {
            // It says why it is none.
            place(call, psync);
            PsyncUse::begin(call, job, triplet, psync)
        });
        let (team, owner) = match job.threads_somewhere {
            true => {
                let (team, owner) = own_team(call, job, &members, triplet, psync);
                (HeldTeam::Counted(team), owner)
            }
            false => (HeldTeam::Lasting(shared(job)), ChannelOwner::AllSets),
        };
        let per_node = members.per_node(&job.nodes);
        ActiveSet { triplet, members, me, per_node, team, owner, _psync: psync_use }
    }

    pub(crate) fn triplet(&self) -> [c_int; 3] {
        self.triplet
    }

    pub(crate) fn members(&self) -> &Members {
        &self.members
    }

    pub(crate) fn me(&self) -> TeamPe {
        self.me
    }

    pub(crate) fn team(&self) -> &Team {
        &self.team
    }

    /// Returns true if calls on other active sets use the same channels.
    pub(crate) fn shares_channels(&self) -> bool {
        self.owner == ChannelOwner::AllSets
    }

    /// Returns how many members are on the node that has most of them.
    pub(crate) fn per_node(&self) -> u32 {
        self.per_node
    }

    /// A number that other active sets hardly have.
    pub(crate) fn mark(&self) -> u64 {
        let [start, log_stride, size] = self.triplet.map(|number| u64::from(number as u32));
        let triplet = start << 38 ^ log_stride << 32 ^ size;
        triplet.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48
    }
}

impl Drop for ActiveSet {
    fn drop(&mut self) {
        if self.owner == ChannelOwner::Call {
            self.team.retire();
        }
    }
}

/// The team of the world whose channels have a flag for each two PEs.
pub(crate) fn shared(job: &Job) -> &'static Team {
    SHARED.get_or_init(|| Team::of_active_sets(job.me, &job.nodes))
}

/// The team whose channels all active sets share, if they have been used.
pub(crate) fn used() -> Option<&'static Team> {
    SHARED.get()
}

/// Forget the teams of single active sets, and give their slots back.
pub(crate) fn clear() {
    std::mem::take(&mut *process::lock(&OWN)).into_values().for_each(|team| team.retire());
}

/// The team of an active set, where it has one of its own.
fn own_team(
    call: Call,
    job: &Job,
    members: &Members,
    triplet: [c_int; 3],
    psync: *const c_long,
) -> (Arc<Team>, ChannelOwner) {
    let key = ActiveSetKey { triplet, psync: psync.addr() };
    let keeps = {
        let kept = process::lock(&OWN);
        if let Some(team) = kept.get(&key) {
            return (team.clone(), ChannelOwner::Set);
        }
        kept.len() < KEPT
    };
    let [start, log_stride, size] = triplet.map(|number| number as u64);
    let tag = digest(&[ACTIVE_SET, start, log_stride, size, place(call, psync)]);
    match agree(
        call,
        job,
        members,
        AgreementRequest { tag, arguments: 0, able: true, keeps, count: 1 },
    ) {
        Agreed::Slots(slots, generation, all_keep) => {
            let (name, members) = (Name::Fixed("an active set"), members.clone());
            let (slot, config) = (slots[0], TeamConfig::default());
            let team = Team::new(name, slot, generation, members, job.me(), &job.nodes, config);
            let team = Arc::new(team);
            if !all_keep {
                return (team, ChannelOwner::Call);
            }
            process::lock(&OWN).insert(key, team.clone());
            (team, ChannelOwner::Set)
        }
        Agreed::Elsewhere(peer) => elsewhere(call, peer),
        // Cause: threads use more active sets and teams than there is room for.
        Agreed::Refused | Agreed::Unlike => fail!(
            call,
            "no team is left for this active set: {TEAM_SLOTS} teams can exist at once on a PE, and with \
             SHMEM_THREAD_MULTIPLE a call on an active set needs one while it lasts; destroy those that \
             are done with"
        ),
    }
}

fn members(call: Call, job: &Job, [start, log_stride, size]: [c_int; 3]) -> Members {
    let stride = u32::try_from(log_stride).ok().and_then(|log| 1i32.checked_shl(log));
    let members = stride.and_then(|stride| Members::world(job.n_pes).subset(start, stride, size));
    let Some(members) = members else {
        // Cause: the last PE of the set is beyond the job. Remedy: check the three numbers.
        fail!(
            call,
            "the active set PE_start {start}, logPE_stride {log_stride}, PE_size {size} does not \
             lie within the {} PEs of the job",
            job.n_pes
        );
    };
    if members.team_pe(job.me()).is_none() {
        // Cause: all PEs call, though the set has some of them. Remedy: call it on members of the
        // set alone.
        fail!(
            call,
            "called by a PE outside of the active set PE_start {start}, logPE_stride {log_stride}, \
             PE_size {size}"
        );
    }
    members
}

/// A number for the place of a pSync that is the same on every PE.
fn place(call: Call, psync: *const c_long) -> u64 {
    if let Some((segment, offset)) = address::place(psync.addr(), size_of::<c_long>()) {
        return digest(&[0, segment as u64, offset as u64]);
    }
    let Some(place) = object::holding(psync.cast()) else {
        // Cause: pSync is on the stack or from `malloc`. Remedy: make it static, or allocate it
        // with `shmem_malloc`.
        fail!(
            call,
            "argument pSync: {psync:p} is neither in the symmetric heap nor a static variable"
        );
    };
    let name = place.name.iter().map(|&byte| u64::from(byte)).collect::<Vec<u64>>();
    digest(&[1, digest(&name), place.offset as u64])
}
