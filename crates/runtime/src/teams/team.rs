//! A team of which this PE is a member: its members, its name and its signals. The teams that exist
//! are in `registry`.

use crate::teams::agreement::{FINALIZE, Slot, Slots};
use core::ffi::c_int;
use core::fmt;
use rushmem_collectives::choice::ChoiceFacts;
use rushmem_collectives::receive_buffer;
use rushmem_collectives::two_level::NodeLists;
use rushmem_communication::links::Links;
use rushmem_communication::sync::team_signals::{OngoingCollective, TeamSignals};
use rushmem_explain::status::{AwaitedObject, Collective};
use rushmem_pe::call::Call;
use rushmem_pe::digest::digest;
use rushmem_pe::job::Job;
use rushmem_pe::job::handle::TeamHandle;
use rushmem_pe::job::members::Members;
use rushmem_pe::memory::areas::LINE_PES;
use rushmem_system::lock::lock;
use rushmem_transport::{Pe, TeamPe};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// `shmem_team_config_t` (§9.4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct TeamConfig {
    /// The number of contexts that the program expects to create at once; a hint.
    pub num_contexts: c_int,
}

/// A team, as one of its members sees it.
#[derive(Debug)]
pub(crate) struct Team {
    pub(super) handle: TeamHandle,
    /// The predefined team or active set from which this team was made by one or more splits; the
    /// team itself if no split made it.
    root: TeamHandle,
    pub(super) name: Name,
    /// The number of splits of this team that all its members have called. Relaxed: it publishes
    /// nothing, and threads call splits of a team one after the other.
    splits: AtomicU32,
    pub(super) slot: Slot,
    members: Members,
    me: TeamPe,
    /// The set of receive buffers that collectives on this team use, if there is one. All teams use
    /// the same set unless threads of a PE may be in several collectives at once.
    receive_buffers: Option<u8>,
    /// The facts by which algorithms of blocking collectives are chosen.
    facts: ChoiceFacts,
    /// The members by node, if there are several nodes, one of them with several members.
    levels: Option<NodeLists>,
    config: TeamConfig,
    /// Locked during a collective: the standard allows one at a time on a team.
    pub(crate) signals: Mutex<TeamSignals>,
    /// True if non-blocking collectives were started and no blocking one has waited for them.
    /// Relaxed: the program orders the collectives of a team, and the requests are behind a mutex.
    pub(crate) has_requests: AtomicBool,
}

impl Team {
    pub(crate) fn new(
        links: &'static Links,
        name: Name,
        slot: Slot,
        generation: u64,
        members: Members,
        config: TeamConfig,
    ) -> Team {
        let job = &links.job;
        let Job { me, nodes, .. } = job;
        let handle = TeamHandle::new(slot.number, generation);

        // Where threads of a PE may be in several collectives at once, teams share nothing.
        let has_pair_flags = !job.has_threads_somewhere || handle == TeamHandle::WORLD;
        let receive_buffers = if job.has_threads_somewhere {
            slot.receive_buffers
        } else {
            Some(0)
        };
        let per_node = members.per_node(nodes);
        let have_lines = members.n > 1
            && per_node == members.n
            && members.world_pes().all(|pe| pe.index() < LINE_PES);
        let facts = ChoiceFacts {
            members: members.n,
            per_node,
            oversubscribed: job.is_oversubscribed_somewhere,
            receive_buffer_bytes: receive_buffers.map_or(0, |_| receive_buffer::nbytes(job.n_pes)),
            pair_flags: has_pair_flags,
            lines: has_pair_flags && have_lines,
        };

        let me = members.team_pe(*me).expect("only members hold a team");
        let signals = TeamSignals::new(links, slot.number, generation, members.clone(), me);

        let mut levels = None;
        if 1 < per_node && per_node < members.n {
            let node_of = |member| nodes.node_of(members.world_pe(member).0);
            levels = Some(NodeLists::of(members.n, me.0, node_of));
        }

        let root = match name {
            Name::Fixed(_) | Name::ActiveSet(_) => handle,
            Name::Made(split, _) => split.root,
        };
        Team {
            handle,
            root,
            name,
            splits: AtomicU32::new(0),
            slot,
            members,
            me,
            receive_buffers,
            facts,
            levels,
            config,
            signals: Mutex::new(signals),
            has_requests: AtomicBool::new(false),
        }
    }

    pub(crate) fn handle(&self) -> TeamHandle {
        self.handle
    }

    /// Returns the predefined team or active set from which this team was made by one or more
    /// splits, or this team if no split made it.
    pub(crate) fn root(&self) -> TeamHandle {
        self.root
    }

    pub(crate) fn members(&self) -> &Members {
        &self.members
    }

    pub(crate) fn me(&self) -> TeamPe {
        self.me
    }

    /// Returns the members by node, unless all are on one node or each is on a node of its own.
    pub(crate) fn levels(&self) -> Option<&NodeLists> {
        self.levels.as_ref()
    }

    /// Returns the set of receive buffers that collectives on this team use.
    ///
    /// # Panics
    /// If there is none. Algorithms that need one are chosen only if the facts say that there is.
    #[inline]
    pub(crate) fn receive_buffers(&self) -> u8 {
        self.receive_buffers
            .expect("it was chosen for having receive buffers")
    }

    /// Returns the facts by which algorithms of blocking collectives are chosen.
    #[inline]
    pub(crate) fn facts(&self) -> ChoiceFacts {
        self.facts
    }

    /// Logs a new team, and at the level `trace` also the algorithms of its collectives.
    #[cold]
    pub(super) fn log_creation(&self, job: &Job) {
        let team = self.handle.0;
        rushmem_system::log::debug!(
            team,
            members = self.members.n,
            team_pe = self.me.0,
            "a new team: {}",
            self.name
        );

        if !rushmem_system::log::is_on(rushmem_system::log::Level::TRACE) {
            return;
        }
        for (operation, rows) in job.algorithms.table().described(&self.facts) {
            rushmem_system::log::trace!(team, "{operation} of the team: {rows}");
        }
    }

    /// Counts and returns a split of this team that all its members call. Its number is the same on
    /// all of them.
    pub(crate) fn next_split(&self, call: Call) -> Split {
        let number = 1 + self.splits.fetch_add(1, Relaxed);
        Split {
            number: Some(number),
            ..self.split_by_members(call)
        }
    }

    /// Returns a split of this team that only the members of the new team call.
    pub(crate) fn split_by_members(&self, call: Call) -> Split {
        Split {
            parent: self.name.parent(),
            root: self.root,
            call,
            number: None,
        }
    }

    /// Returns true if this is the team of an active set.
    pub(crate) fn is_active_set(&self) -> bool {
        matches!(self.name, Name::ActiveSet(_))
    }

    /// Returns the subject of a wait of this member in its `nth` collective: for the PE `awaited`,
    /// or for several members.
    pub(crate) fn subject(&self, nth: u64, awaited: Option<Pe>) -> AwaitedObject {
        if self.slot.number == FINALIZE {
            return AwaitedObject::Exit;
        }
        self.name
            .subject(self.number(), &self.members, nth, awaited)
    }

    /// Returns a number that no other team of the same PEs has.
    pub(crate) fn number(&self) -> u64 {
        digest(&[self.handle.0 as u64])
    }

    pub(crate) fn config(&self) -> TeamConfig {
        self.config
    }

    /// Ends this team and releases its slot. A later team in the slot has a higher generation, so
    /// it ignores the values that this team has left in the flags.
    pub(crate) fn retire(&self, slots: &Slots) {
        let signals = lock(&self.signals);
        signals.retire();
        slots.record_generation(signals.reached());

        // Last: from now on another team may get the slot.
        slots.release(self.slot);
    }
}

/// The name of a team in messages. It has the same size however often teams are split.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Name {
    /// The name of a team that no split made.
    Fixed(&'static str),
    /// The `PE_start`, `logPE_stride` and `PE_size` of an active set.
    ActiveSet([c_int; 3]),
    /// The split that made the team, and the number of members.
    Made(Split, u32),
}

#[derive(Clone, Copy, Debug)]
enum SplitParent {
    /// A team that no split made.
    Is(&'static str),
    /// A team that was made from the team with this name by one or more splits.
    From(&'static str),
}

/// A split of a team.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Split {
    parent: SplitParent,
    /// The root of the parent, as in [`Team`].
    root: TeamHandle,
    call: Call,
    /// `None` if only the members of the new team call the split.
    number: Option<u32>,
}

impl Split {
    /// Returns the name of a team with these members that this split makes.
    pub(crate) fn name(self, members: &Members) -> Name {
        Name::Made(self, members.n)
    }
}

impl Name {
    /// Returns the subject of a wait in the `nth` collective of a team with this name.
    fn subject(
        self,
        number: u64,
        members: &Members,
        nth: u64,
        awaited: Option<Pe>,
    ) -> AwaitedObject {
        AwaitedObject::Collective(Collective {
            team: self.to_string(),
            is_active_set: matches!(self, Name::ActiveSet(_)),
            number,
            members: members.for_status(),
            nth,
            awaited: awaited.map(|pe| pe.0),
        })
    }

    /// Returns the team with this name as the parent of a split.
    fn parent(self) -> SplitParent {
        match self {
            Name::Fixed(name) => SplitParent::Is(name),
            Name::ActiveSet(_) => SplitParent::Is("an active set"),
            Name::Made(split, _) => match split.parent {
                SplitParent::Is(name) | SplitParent::From(name) => SplitParent::From(name),
            },
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Fixed(name) => f.write_str(name),
            Name::ActiveSet([start, log_stride, size]) => write!(
                f,
                "the active set PE_start {start}, logPE_stride {log_stride}, PE_size {size}"
            ),
            Name::Made(split, n) => write!(f, "the team of {n} PEs from {split}"),
        }
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            Some(number) => write!(f, "split {number}")?,
            None => f.write_str("a split")?,
        }

        let call = self.call;
        match self.parent {
            SplitParent::Is(name) => write!(f, " ({call}) of {name}"),
            SplitParent::From(name) => write!(f, " ({call}) of a team split from {name}"),
        }
    }
}

/// A team on which its members have not agreed yet, for messages and for their statuses.
pub(crate) struct NewTeam<'a> {
    pub(crate) call: Call,
    pub(crate) name: Name,
    pub(crate) members: &'a Members,
    pub(crate) tag: u64,
}

impl OngoingCollective for NewTeam<'_> {
    fn call(&self) -> Call {
        self.call
    }

    fn subject(&self, awaited: Option<Pe>) -> AwaitedObject {
        self.name.subject(self.tag, self.members, 1, awaited)
    }
}
