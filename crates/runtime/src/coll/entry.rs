//! The entry into a collective: finds the participants, locks the signals of their team, checks the
//! arguments, and shows the call to observers. An [`Executor`] then carries out the plans.

use crate::coll::combine::Combine;
use crate::coll::executor::{CollectiveCall, Executor, Vectors};
use crate::coll::same_collective::{self, CheckedArgument};
use crate::own_pe::OwnPe;
use crate::teams::active_set;
use crate::teams::active_set::{PsyncPurpose, PsyncUse};
use crate::teams::checked_group::CheckedGroup;
use crate::teams::registry::HeldTeam;
use crate::teams::team::Team;
use core::ffi::{c_int, c_long};
use rushmem_communication::observers::results::{CollectiveResult, ResultWriters};
use rushmem_communication::observers::{
    Action, ByteBlocks, CollectiveBlocks, FollowedMembers, ObservedCall,
};
use rushmem_pe::call::{Call, fail};
use rushmem_pe::job::handle::TeamHandle;
use rushmem_pe::job::permission::{self, warn_once};
use rushmem_pe::memory::range::{SymmetricRange, symmetric};
use std::sync::TryLockError;
use std::sync::atomic::Ordering::Relaxed;

/// The participants of a collective.
#[derive(Clone, Copy, Debug)]
pub enum TeamOrActiveSet {
    /// The members of a team.
    Team(TeamHandle),
    /// The members of a team, for a thread of the library that carries out a request.
    OfRequest(TeamHandle),
    /// The PEs `start + i * 2^log_stride` for `i` below `size` (deprecated forms). Calls by several
    /// threads on the same set differ in `psync`.
    ActiveSet {
        /// `PE_start`
        start: c_int,
        /// `logPE_stride`
        log_stride: c_int,
        /// `PE_size`
        size: c_int,
        /// `pSync`. Its address distinguishes calls; its value is read only with `SHMEM_CHECK`.
        psync: *mut c_long,
    },
}

impl From<TeamHandle> for TeamOrActiveSet {
    fn from(team: TeamHandle) -> TeamOrActiveSet {
        TeamOrActiveSet::Team(team)
    }
}

impl TeamOrActiveSet {
    /// As [`find_for`](Self::find_for), for a call that transfers data.
    #[inline(always)]
    pub(crate) fn find(self, pe: &'static OwnPe, call: Call) -> Participants {
        self.find_for(pe, call, PsyncPurpose::Data)
    }

    /// Returns the participants of a call. On an active set, begins the use of its pSync for
    /// `purpose`, and agrees on a team if the members have kept none.
    #[inline(always)]
    pub(crate) fn find_for(
        self,
        pe: &'static OwnPe,
        call: Call,
        purpose: PsyncPurpose,
    ) -> Participants {
        match self {
            TeamOrActiveSet::Team(handle) => Participants::of(pe.teams.find(call, "team", handle)),
            TeamOrActiveSet::OfRequest(handle) => Participants {
                in_request: true,
                ..Participants::of(pe.teams.find(call, "team", handle))
            },
            TeamOrActiveSet::ActiveSet {
                start,
                log_stride,
                size,
                psync,
            } => Participants::of_set(pe, call, [start, log_stride, size], psync, purpose),
        }
    }
}

/// The length of a vector or block, as the program passes it.
#[derive(Clone, Copy, Debug)]
pub struct ElementCount {
    /// The number of elements.
    pub nelems: usize,
    /// The size of an element in bytes.
    pub elem_bytes: usize,
}

impl ElementCount {
    /// Returns the length of `nelems` elements of a type.
    pub const fn of<T>(nelems: usize) -> ElementCount {
        ElementCount {
            nelems,
            elem_bytes: size_of::<T>(),
        }
    }

    /// Returns the number of bytes. If it overflows, returns `usize::MAX`, which the checks of
    /// addresses refuse.
    pub(crate) const fn nbytes(self) -> usize {
        self.nelems.saturating_mul(self.elem_bytes)
    }
}

/// The participants of a collective, as a team.
pub(crate) struct Participants {
    team: HeldTeam,
    /// The use of pSync, until the call ends; only with `SHMEM_CHECK`, on an active set.
    _psync: Option<PsyncUse>,
    in_request: bool,
}

impl Participants {
    #[inline(always)]
    fn of(team: HeldTeam) -> Participants {
        Participants {
            team,
            _psync: None,
            in_request: false,
        }
    }

    /// Begins the use of the pSync of an active set, and returns the members.
    #[inline(never)]
    fn of_set(
        pe: &'static OwnPe,
        call: Call,
        triplet: [c_int; 3],
        psync: *mut c_long,
        purpose: PsyncPurpose,
    ) -> Participants {
        let in_use = PsyncUse::begin(pe, call, triplet, psync, purpose);
        let team = active_set::find_or_make(pe, call, triplet, psync);
        Participants {
            _psync: in_use,
            ..Participants::of(team)
        }
    }
}

/// The entry of one member into a collective.
pub(crate) struct CollectiveEntry<'a> {
    collective: CollectiveCall<'a>,
    pe: &'static OwnPe,
    /// The event for observers, which ends when the entry is dropped.
    observed: ObservedCall,
}

impl<'a> CollectiveEntry<'a> {
    /// Enters a collective of these participants. Returns the entry, and the executor of the plans.
    #[inline(always)]
    pub(crate) fn enter(
        pe: &'static OwnPe,
        call: Call,
        participants: &'a Participants,
    ) -> (CollectiveEntry<'a>, Executor<'a>) {
        let team = &*participants.team;
        if !participants.in_request {
            CollectiveEntry::complete_requests(pe, call, team);
        }

        let (entry, mut executor) = CollectiveEntry::begin(pe, call, team, participants.in_request);
        // The last broadcast on the active set has left this wait to the next call on the set.
        if executor.signals.unconfirmed_root.is_some() {
            executor.await_receivers();
        }
        (entry, executor)
    }

    /// Enters a blocking collective of a team.
    #[inline(always)]
    pub(crate) fn enter_team(
        pe: &'static OwnPe,
        call: Call,
        team: &'a Team,
    ) -> (CollectiveEntry<'a>, Executor<'a>) {
        CollectiveEntry::complete_requests(pe, call, team);
        CollectiveEntry::begin(pe, call, team, false)
    }

    /// Waits for the non-blocking collectives of the team, since a blocking one begins after them.
    /// Also records the call for messages about the network, if one is open.
    #[inline(always)]
    fn complete_requests(pe: &OwnPe, call: Call, team: &Team) {
        if team.has_requests.load(Relaxed) {
            pe.requests.complete(team);
        }
        let links = pe.links;
        if links.network.is_open() {
            links.endpoints.set_call(call);
        }
    }

    /// Locks the signals of the team, counts the collective, and shows its begin to observers.
    #[inline(always)]
    fn begin(
        pe: &'static OwnPe,
        call: Call,
        team: &'a Team,
        in_request: bool,
    ) -> (CollectiveEntry<'a>, Executor<'a>) {
        let mut signals = match team.signals.try_lock() {
            Ok(signals) => signals,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                // The caller may be a signal handler that has interrupted a collective of its own
                // thread. With SHMEM_CHECK, the check then ends the job with a message that says
                // so.
                permission::check(call, pe.job());
                fail!(
                    call,
                    "another thread of this PE is in a collective on the same team{}",
                    call.words(
                        " or active set; threads that are in collectives at once need SHMEM_THREAD_MULTIPLE, and a team \
                         or a pSync each",
                        "; threads that are in collectives at once need a team each"
                    )
                )
            }
        };

        let collective = CollectiveCall {
            call,
            team,
            nth: signals.enter(),
            in_request,
        };
        let observed = collective.observe(if in_request {
            Action::CarriedOut
        } else {
            Action::Collective
        });

        let entry = CollectiveEntry {
            collective,
            pe,
            observed,
        };
        let executor = Executor {
            collective,
            links: pe.links,
            signals,
        };
        (entry, executor)
    }

    /// With `SHMEM_CHECK`, ends the job with an error unless all members are in this call with the
    /// same arguments.
    pub(crate) fn require_same(&mut self, arguments: &[CheckedArgument]) {
        if self.pe.job().settings.checks() {
            let team = self.collective.team;
            let group = CheckedGroup::of(team);
            same_collective::require(
                self.pe.links,
                &self.pe.teams,
                &self.collective,
                team.members(),
                team.handle().0 as u64,
                group,
                arguments,
            );
        }
    }

    /// Calls `show`, which shows the arguments to observers and checks them, if there is an
    /// observer: the checks of `SHMEM_CHECK` are one. `show` should own what it uses, so that
    /// nothing is stored for it otherwise.
    #[inline(always)]
    pub(crate) fn if_observed(&mut self, show: impl FnOnce(&mut CollectiveEntry<'a>)) {
        #[cold]
        #[inline(never)]
        fn observed<'a>(
            entry: &mut CollectiveEntry<'a>,
            show: impl FnOnce(&mut CollectiveEntry<'a>),
        ) {
            show(entry);
        }

        if self.observed.is_some() {
            observed(self, show);
        }
    }

    /// Shows the arrays to observers. With `SHMEM_CHECK`, ends the job with an error unless all
    /// members are in this call with the same arrays and the same arguments `more`.
    pub(crate) fn require_same_arrays(
        &mut self,
        dest: SymmetricRange,
        source: SymmetricRange,
        elements: ElementCount,
        more: &[CheckedArgument],
    ) {
        self.show_arrays(source, dest);
        if self.pe.job().settings.checks() {
            let arrays = [
                ("dest at", dest.offset() as u64),
                ("source at", source.offset() as u64),
                ("nelems", elements.nelems as u64),
                // In Rust, calls for all types have one name.
                ("element size", elements.elem_bytes as u64),
            ];
            self.require_same(&[&arrays, more].concat());
        }
    }

    /// Shows observers which arrays the collective reads and writes on this PE.
    #[inline]
    pub(crate) fn show_arrays(&mut self, source: SymmetricRange, dest: SymmetricRange) {
        if let Some(observed) = &mut self.observed {
            observed.set_arrays(bytes(source), bytes(dest));
        }
    }

    /// Shows observers which blocks the collective reads and writes on this PE, if they differ in
    /// size.
    pub(crate) fn show_blocks(&mut self, blocks: CollectiveBlocks) {
        if let Some(observed) = &mut self.observed {
            observed.set_blocks(blocks);
        }
    }

    /// With `SHMEM_CHECK`, checks that other members do not still wait for an earlier result in
    /// what this collective writes: `dest` on a member, of which this PE writes `written`. Does
    /// nothing for a non-blocking collective.
    #[inline]
    pub(crate) fn check_result(
        &mut self,
        dest: ByteBlocks,
        written: ByteBlocks,
        writers: ResultWriters,
    ) {
        let team = self.collective.team;
        if let Some(observed) = &mut self.observed
            && !self.collective.in_request
        {
            let me = team.me().0;
            observed.check_result(|call| {
                CollectiveResult::new(call, team.members(), me, dest, written, writers)
            });
        }
    }

    /// Shows observers which members' arrays the result depends on, if not on those of all members.
    #[inline]
    pub(crate) fn show_followed(&mut self, follows: FollowedMembers, member: u32) {
        if let Some(observed) = &mut self.observed {
            observed.set_followed(follows, member);
        }
    }

    /// Returns the arrays of a reduction or scan, after checking that they are symmetric, and with
    /// `SHMEM_CHECK` that all members pass the same arguments, also those of `more`, and that the
    /// arrays are either the same one or do not overlap.
    #[inline(always)]
    pub(crate) fn checked_vectors(
        &mut self,
        dest: *mut u8,
        source: *const u8,
        nelems: usize,
        op: &'static Combine,
        writers: ResultWriters,
        more: &[CheckedArgument],
    ) -> Vectors {
        let call = self.collective.call;
        let elements = ElementCount {
            nelems,
            elem_bytes: op.elem_bytes(),
        };
        let nbytes = elements.nbytes();
        let dest = symmetric(self.pe.job(), call, "dest", dest, nbytes);
        let source = symmetric(self.pe.job(), call, "source", source, nbytes);

        self.if_observed(move |entry| {
            entry.require_same_arrays(dest, source, elements, more);
            entry.check_result(bytes(dest), bytes(dest), writers);
            if !dest.starts_with(source) {
                entry.require_disjoint(source, dest);
            }
        });
        Vectors { source, dest, op }
    }

    /// With `SHMEM_CHECK`, ends the job with an error if two arrays overlap but are not the same.
    /// If they are the same, the first member warns: the collective works in place here, but
    /// OpenSHMEM leaves it undefined.
    pub(crate) fn check_apart(&self, source: SymmetricRange, dest: SymmetricRange) {
        let CollectiveCall { call, team, .. } = self.collective;
        if !dest.starts_with(source) {
            self.require_disjoint(source, dest);
        }

        if self.pe.job().settings.checks() && source.overlaps(dest) && team.me().0 == 0 {
            warn_once(
                call,
                "source and dest are the same array, which OpenSHMEM leaves undefined; it works in place here, \
                 but other implementations may not do so",
            );
        }
    }

    /// With `SHMEM_CHECK`, ends the job with an error if two arrays have a byte in common.
    pub(crate) fn require_disjoint(&self, source: SymmetricRange, dest: SymmetricRange) {
        if self.pe.job().settings.checks() && source.overlaps(dest) {
            fail!(
                self.collective.call,
                "the arguments source and dest overlap: source is {source}, dest is {dest}; use arrays that \
                 have no byte in common"
            );
        }
    }
}

/// Returns a range as one block of bytes.
pub(crate) fn bytes(range: SymmetricRange) -> ByteBlocks {
    ByteBlocks::one(range.start().addr(), range.nbytes())
}

/// Returns the root of a collective among `n` members. Ends the job with an error if there is no
/// such member.
pub(crate) fn checked_root(call: Call, root: c_int, n: u32) -> u32 {
    match u32::try_from(root) {
        Ok(root) if root < n => root,
        _ => {
            let root = call.written(root);
            let last = n - 1;
            fail!(
                call,
                "argument PE_root is {root}, but the members are numbered 0 to {last}"
            )
        }
    }
}
