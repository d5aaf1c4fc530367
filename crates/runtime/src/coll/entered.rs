//! A collective that a PE has entered: who takes part, which channels it uses, and how its plans
//! are executed there.
//!
//! It does not know the routines of the standard: `collectives` decides which plans and arguments
//! make up a routine.

use crate::base::call::{Call, fail};
use crate::base::caller;
use crate::base::digest::digest;
use crate::base::handle::TeamHandle;
use crate::base::job::{self, Job};
use crate::base::members::Members;
use crate::coll::collective_call::CollectiveCall;
use crate::coll::combine::Combine;
use crate::coll::execute::{Execution, Landings, Parts, vector_parts};
use crate::coll::requests;
use crate::memory::areas::SHORT;
use crate::memory::range::SymmetricRange;
use crate::memory::range::symmetric;
use crate::net::{calling, network};
use crate::observers::{ByteBlocks, FollowedMembers, ObservedCall, What};
use crate::sync::channel::{self, Channels};
use crate::sync::check::{self, CheckedArgument};
use crate::sync::flags;
use crate::teams::active_set;
use crate::teams::psync::{PsyncUse, UseOfPsync};
use crate::teams::team::{self, HeldTeam, Team};
use core::ffi::{c_int, c_long};
use rushmem_collectives::choice::{
    AllReduceAlgorithm, ChoiceFacts, ScanAlgorithm, SyncAlgorithm, Tabled,
};
use rushmem_collectives::{
    Partner, Step, binomial, bruck, central, direct, dissemination, rabenseifner,
    recursive_doubling, ring,
};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{MutexGuard, TryLockError};

mod in_rounds;
mod over_nodes;
mod with_sizes;

/// The participants of a collective.
#[derive(Clone, Copy, Debug)]
pub enum TeamOrActiveSet {
    /// The members of a team.
    Team(TeamHandle),
    /// The members of a team, in a thread of the library that carries out a request.
    OfRequest(TeamHandle),
    /// The PEs `start + i * 2^log_stride` for `i` below `size`, distinguished from other calls of
    /// the same set by `psync` (deprecated forms).
    ActiveSet {
        /// `PE_start`
        start: c_int,
        /// `logPE_stride`
        log_stride: c_int,
        /// `PE_size`
        size: c_int,
        /// `pSync`; only its place counts.
        psync: *mut c_long,
    },
}

impl From<TeamHandle> for TeamOrActiveSet {
    fn from(team: TeamHandle) -> TeamOrActiveSet {
        TeamOrActiveSet::Team(team)
    }
}

impl TeamOrActiveSet {
    pub(crate) fn find(self, call: Call) -> Participants {
        self.find_for(call, UseOfPsync::Data)
    }

    /// Works as [`find`](TeamOrActiveSet::find), for a call that uses pSync so.
    pub(crate) fn find_for(self, call: Call, use_of_psync: UseOfPsync) -> Participants {
        match self {
            TeamOrActiveSet::Team(handle) => Participants::of(team::find(call, "team", handle)),
            TeamOrActiveSet::OfRequest(handle) => Participants {
                in_request: true,
                ..Participants::of(team::find(call, "team", handle))
            },
            TeamOrActiveSet::ActiveSet { start, log_stride, size, psync } => {
                let triplet = [start, log_stride, size];
                let psync_use = PsyncUse::begin(call, triplet, psync, use_of_psync);
                let team = active_set::find(call, triplet, psync);
                Participants { _psync: psync_use, ..Participants::of(team) }
            }
        }
    }
}

/// The participants, resolved.
pub(crate) struct Participants {
    team: HeldTeam,
    /// With `SHMEM_CHECK`, of an active set.
    _psync: Option<PsyncUse>,
    in_request: bool,
}

impl Participants {
    fn of(team: HeldTeam) -> Participants {
        Participants { team, _psync: None, in_request: false }
    }
}

/// A collective that one member has entered.
pub(crate) struct EnteredCollective<'a> {
    pub(crate) entry: CollectiveCall<'a>,
    pub(crate) job: &'static Job,
    channels: MutexGuard<'a, Channels>,
    /// Until it is left.
    observed: ObservedCall,
}

impl<'a> EnteredCollective<'a> {
    pub(crate) fn on(call: Call, group: &'a Participants) -> EnteredCollective<'a> {
        let mut entered = match group.in_request {
            false => EnteredCollective::new(call, &group.team),
            true => EnteredCollective::enter(call, job::require(call), &group.team, true),
        };
        if let Some(root) = entered.channels.unheard.take() {
            entered.hear_of_receivers(root);
        }
        entered
    }

    pub(crate) fn new(call: Call, team: &'a Team) -> EnteredCollective<'a> {
        EnteredCollective::of(call, job::require(call), team)
    }

    /// By a caller that has the job.
    #[inline(always)]
    pub(crate) fn of(call: Call, job: &'static Job, team: &'a Team) -> EnteredCollective<'a> {
        if team.has_requests.load(Relaxed) {
            requests::complete(team);
        }
        if network::is_open() {
            calling::note(call);
        }
        EnteredCollective::enter(call, job, team, false)
    }

    #[inline(always)]
    fn enter(
        call: Call,
        job: &'static Job,
        team: &'a Team,
        in_request: bool,
    ) -> EnteredCollective<'a> {
        let mut channels = match team.channels.try_lock() {
            Ok(channels) => channels,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                // The other one may be the same, interrupted by a signal handler.
                caller::check(call, job);
                // Cause: two threads are in collectives that use the same channels.
                fail!(
                    call,
                    "another thread of this PE is in a collective on the same team or active set; threads that are in \
                     collectives at once need SHMEM_THREAD_MULTIPLE, and a team or a pSync each"
                )
            }
        };
        let entry = CollectiveCall { call, team, nth: channels.enter(), in_request };
        let observed = entry.observe(if in_request { What::CarriedOut } else { What::Collective });
        EnteredCollective { entry, job, channels, observed }
    }

    pub(crate) fn members(&self) -> &'a Members {
        self.entry.team.members()
    }

    pub(crate) fn n(&self) -> u32 {
        self.members().n
    }

    pub(crate) fn me(&self) -> u32 {
        self.entry.team.me().0
    }

    /// The facts by which algorithms are chosen.
    #[inline]
    pub(crate) fn facts(&self) -> ChoiceFacts {
        // Another collective may use the landings and pair flags that all teams of a job without
        // threads share.
        let is_beside_others = self.entry.in_request && !self.job.threads_somewhere;
        ChoiceFacts {
            members: self.n(),
            per_node: self.entry.team.per_node(),
            oversubscribed: self.job.oversubscribed_somewhere,
            landing_bytes: match is_beside_others {
                true => 0,
                false => self.entry.team.landing_bytes(self.job),
            },
            pair_flags: self.entry.team.has_pair_flags(self.job) && !is_beside_others,
        }
    }

    /// The algorithm for `nbytes` bytes.
    #[inline]
    pub(crate) fn choose<A: Tabled>(&self, nbytes: usize) -> A {
        self.job.algorithms.table().choose(nbytes, || self.facts())
    }

    /// Which copies of the landings of all PEs it uses.
    fn next_collective_of_job(&self) -> usize {
        let set = self.entry.team.landings(self.job);
        channel::next_collective_of_job(set.expect("it was chosen for having landings"))
    }

    /// Signal a member.
    pub(crate) fn signal(&mut self, peer: Partner) {
        self.channels.signal(peer);
    }

    /// Wait for the next signal of a member.
    pub(crate) fn wait(&mut self, peer: Partner) {
        self.channels.wait(&self.entry, self.job, peer);
    }

    /// With `SHMEM_CHECK`, ends the job with an error unless all members are here with the same
    /// arguments.
    pub(crate) fn agree(&mut self, arguments: &[CheckedArgument]) {
        if self.job.settings.checks() {
            let team = self.entry.team;
            let (members, number, group) = (team.members(), team.handle().0 as u64, team.checked());
            check::same(&self.entry, self.job, members, number, group, arguments);
        }
    }

    /// Works as [`agree`](EnteredCollective::agree), of two arrays and what is in `more`.
    pub(crate) fn agree_on(
        &mut self,
        dest: SymmetricRange,
        source: SymmetricRange,
        nbytes: usize,
        more: &[CheckedArgument],
    ) {
        self.moves(source, dest);
        if self.job.settings.checks() {
            let (dest, source) = (dest.offset() as u64, source.offset() as u64);
            let arrays = [("dest at", dest), ("source at", source), ("bytes", nbytes as u64)];
            self.agree(&[&arrays, more].concat());
        }
    }

    /// Reports to those that observe which arrays it reads and writes here.
    #[inline]
    pub(crate) fn moves(&mut self, source: SymmetricRange, dest: SymmetricRange) {
        if let Some(observed) = &mut self.observed {
            let blocks =
                |range: SymmetricRange| ByteBlocks::one(range.start().addr(), range.nbytes());
            observed.moves(blocks(source), blocks(dest));
        }
    }

    /// Reports to them whose arrays its result comes from, if not from those of all members.
    #[inline]
    pub(crate) fn follows(&mut self, follows: FollowedMembers, member: u32) {
        if let Some(observed) = &mut self.observed {
            observed.follows(follows, member);
        }
    }

    /// Every member's word.
    pub(crate) fn gather(&mut self, word: u64) -> Vec<u64> {
        if self.entry.team.per_node() == self.n() || !self.facts().pair_flags {
            return self.gather_shown(word);
        }
        let (n, me) = (self.n(), self.me());
        let internal = flags::area();
        let at = internal.areas().table();
        let (none, whole) = (SymmetricRange::EMPTY, Parts::Whole(0));
        self.run(none, none, whole, bruck::entry(n, me));
        internal.write_own(at + me as usize * 8, &[word]);
        let table = internal.range(at, n as usize * 8);
        let own = table.part(me as usize * 8, 8);
        self.run(own, table, Parts::Equal(8), bruck::all_gather(n, me));
        let mut words = vec![0; n as usize];
        internal.read(at, &mut words);
        words
    }

    /// The same by reading what the others show.
    fn gather_shown(&mut self, word: u64) -> Vec<u64> {
        let internal = flags::area();
        let at = self.channels.next_shown();
        internal.write_own(at, &[word]);
        self.sync();
        internal.shown(self.members().world_pes(), at)
    }

    /// Keep those that write in a broadcast on an active set from overtaking those they write to.
    /// While the same broadcast is repeated, a writer hears of an entry in its next call on the
    /// set, so that who alternates between two destinations has done with the one that comes next.
    pub(crate) fn keep_up(&mut self, root: u32) {
        /// The last broadcast of this PE: its team and root.
        static LAST: AtomicU64 = AtomicU64::new(0);
        if !self.entry.team.is_active_set() {
            return;
        }
        for step in binomial::arrivals(self.n(), self.me(), root) {
            if let Step::Signal { peer } = step {
                self.signal(peer);
            }
        }
        let this = digest(&[self.entry.team.handle().0 as u64, root.into()]);
        if LAST.swap(this, Relaxed) == this {
            self.channels.unheard = Some(root);
        } else {
            self.hear_of_receivers(root);
        }
    }

    /// Wait until those to which this PE writes in a broadcast from `root` have entered it.
    fn hear_of_receivers(&mut self, root: u32) {
        for step in binomial::arrivals(self.n(), self.me(), root) {
            if let Step::Wait { peer } = step {
                self.wait(peer);
            }
        }
    }

    /// Combine vectors element by element over all members, to all.
    pub(crate) fn all_reduce(
        &mut self,
        source: SymmetricRange,
        dest: SymmetricRange,
        nelems: usize,
        op: &'static Combine,
    ) {
        let nbytes = nelems * op.elem_bytes();
        let (n, me, parts) = (self.n(), self.me(), vector_parts(nbytes));
        match self.choose(nbytes) {
            AllReduceAlgorithm::Direct => {
                let plan = direct::all_reduce(n, me, parts, self.choose(0));
                self.run_vector(source, dest, nbytes, op, plan);
            }
            AllReduceAlgorithm::Rabenseifner => {
                let plan = rabenseifner::all_reduce(n, me, parts);
                self.run_vector(source, dest, nbytes, op, plan);
            }
            AllReduceAlgorithm::Ring => {
                let plan = ring::all_reduce(n, me, parts);
                self.run_vector(source, dest, nbytes, op, plan);
            }
            AllReduceAlgorithm::Central => {
                let plan = |n, _| central::all_reduce(n);
                self.run_pieces(source, dest, nelems, op, Landings::Shared, plan);
            }
            AllReduceAlgorithm::RecursiveDoubling => {
                self.all_reduce_by_doubling(source, dest, nelems, op);
            }
            AllReduceAlgorithm::TwoLevel => self.all_reduce_over_nodes(source, dest, nbytes, op),
        }
    }

    /// The same by recursive doubling, through landings.
    pub(crate) fn all_reduce_by_doubling(
        &mut self,
        source: SymmetricRange,
        dest: SymmetricRange,
        nelems: usize,
        op: &'static Combine,
    ) {
        let (n, me) = (self.n(), self.me());
        let landings = match nelems * op.elem_bytes() <= SHORT {
            true => Landings::BesideFlags,
            false if n == self.job.n_pes => Landings::OfJob,
            false => Landings::Shared,
        };
        if landings == Landings::Shared {
            let entry = recursive_doubling::entry(n, me);
            self.run(SymmetricRange::EMPTY, SymmetricRange::EMPTY, Parts::Whole(0), entry);
        }
        self.run_pieces(source, dest, nelems, op, landings, recursive_doubling::all_reduce);
    }

    /// Carry out a plan that moves parts of every member's `source` to `dest`. If they are the same
    /// array on some member, which is `in_place` there, the plan uses a copy, once all members have
    /// theirs: from then on peers may write to `dest`.
    pub(crate) fn exchange(
        &mut self,
        source: SymmetricRange,
        dest: SymmetricRange,
        in_place: bool,
        parts: Parts<'_>,
        plan: impl Iterator<Item = Step>,
    ) {
        self.check_apart(source, dest);
        if !in_place {
            return self.run(source, dest, parts, plan);
        }
        source.with_copy(|copy| {
            self.sync();
            self.run(copy, dest, parts, plan);
        });
    }

    /// Carry out a plan that moves parts from `source` to `dest`.
    pub(crate) fn run(
        &mut self,
        source: SymmetricRange,
        dest: SymmetricRange,
        parts: Parts<'_>,
        plan: impl Iterator<Item = Step>,
    ) {
        let (accumulator, landings) = (SymmetricRange::EMPTY, (Landings::Shared, 0));
        self.execute(source, dest, parts, accumulator, None, landings, plan);
    }

    /// Combine vectors element by element over the members up to each one, to that one; without its
    /// own contribution if that is left out, and then the first one gets nothing.
    pub(crate) fn scan(
        &mut self,
        source: SymmetricRange,
        dest: SymmetricRange,
        nelems: usize,
        op: &'static Combine,
        exclusive: bool,
    ) {
        let algorithm = self.choose(nelems * op.elem_bytes());
        self.scan_by(algorithm, source, dest, nelems, op, exclusive);
    }

    pub(crate) fn scan_by(
        &mut self,
        algorithm: ScanAlgorithm,
        source: SymmetricRange,
        dest: SymmetricRange,
        nelems: usize,
        op: &'static Combine,
        exclusive: bool,
    ) {
        let nbytes = nelems * op.elem_bytes();
        let landings = Landings::Shared;
        match algorithm {
            ScanAlgorithm::Direct => {
                let (n, me, parts) = (self.n(), self.me(), vector_parts(nbytes));
                let plan = direct::scan(n, me, parts, self.choose(0), exclusive);
                self.run_vector(source, dest, nbytes, op, plan);
            }
            ScanAlgorithm::RecursiveDoubling if exclusive => {
                self.run_pieces(
                    source,
                    dest,
                    nelems,
                    op,
                    landings,
                    recursive_doubling::exclusive_scan,
                );
            }
            ScanAlgorithm::RecursiveDoubling => {
                self.run_pieces(
                    source,
                    dest,
                    nelems,
                    op,
                    landings,
                    recursive_doubling::inclusive_scan,
                );
            }
        }
    }

    /// Carry out a plan that combines the parts of vectors where they are.
    fn run_vector(
        &mut self,
        source: SymmetricRange,
        dest: SymmetricRange,
        nbytes: usize,
        op: &'static Combine,
        plan: impl Iterator<Item = Step>,
    ) {
        let (source, dest) = (source.part(0, nbytes), dest.part(0, nbytes));
        let (accumulator, landings) = (SymmetricRange::EMPTY, (Landings::Shared, 0));
        self.execute(source, dest, Parts::Vector, accumulator, Some(op), landings, plan);
    }

    /// Carry out a plan for each piece of two vectors that fits a landing; the accumulator of a
    /// piece is its place in `dest`. Of the two copies of landings it uses one after the other.
    pub(crate) fn run_pieces<P: Iterator<Item = Step>>(
        &mut self,
        source: SymmetricRange,
        dest: SymmetricRange,
        nelems: usize,
        op: &'static Combine,
        landings: Landings,
        plan: impl Fn(u32, u32) -> P,
    ) {
        let (n, me) = (self.n(), self.me());
        let max_nelems = flags::area().areas().landing_bytes() / op.elem_bytes();
        for (turn, first) in (0..nelems).step_by(max_nelems).enumerate() {
            let (at, nbytes) =
                (first * op.elem_bytes(), max_nelems.min(nelems - first) * op.elem_bytes());
            let piece = dest.part(at, nbytes);
            if !dest.starts_with(source) {
                source.part(at, nbytes).copy_here(piece);
            }
            let parity = match landings {
                Landings::Shared => turn % 2,
                Landings::OfJob => self.next_collective_of_job(),
                Landings::BesideFlags => self.channels.next_short_reduction(),
            };
            let (none, parts) = (SymmetricRange::EMPTY, Parts::Whole(nbytes));
            self.execute(none, none, parts, piece, Some(op), (landings, parity), plan(n, me));
        }
    }

    #[expect(clippy::too_many_arguments, reason = "what an execution is made of")]
    fn execute(
        &mut self,
        source: SymmetricRange,
        dest: SymmetricRange,
        parts: Parts<'_>,
        accumulator: SymmetricRange,
        combine: Option<&'static Combine>,
        (landings, parity): (Landings, usize),
        plan: impl Iterator<Item = Step>,
    ) {
        let mut execution = Execution {
            entry: &self.entry,
            job: self.job,
            team: self.entry.team,
            channels: &mut self.channels,
            source,
            dest,
            parts,
            accumulator,
            combine,
            landings,
            parity,
        };
        execution.run(plan);
    }

    /// Both vectors of a reduction or scan.
    pub(crate) fn vectors(
        &mut self,
        dest: *mut u8,
        source: *const u8,
        nelems: usize,
        op: &Combine,
    ) -> (SymmetricRange, SymmetricRange) {
        let nbytes = nelems.saturating_mul(op.elem_bytes());
        let dest = symmetric(self.entry.call, "dest", dest, nbytes);
        let source = symmetric(self.entry.call, "source", source, nbytes);
        self.agree_on(dest, source, nbytes, &[]);
        check::apart(self.entry.call, self.job, source, dest);
        (dest, source)
    }

    /// With `SHMEM_CHECK`, check that two arrays do not overlap.
    pub(crate) fn check_apart(&self, source: SymmetricRange, dest: SymmetricRange) {
        check::apart_or_in_place(self.entry.call, self.job, self.me() == 0, source, dest);
    }

    pub(crate) fn sync(&mut self) {
        self.sync_by(self.choose(0));
    }

    /// A sync that uses no flags but those of the team.
    pub(crate) fn sync_without_pair_flags(&mut self) {
        let facts = ChoiceFacts { pair_flags: false, ..self.facts() };
        self.sync_by(self.job.algorithms.table().choose(0, || facts));
    }

    #[inline(always)]
    fn sync_by(&mut self, algorithm: SyncAlgorithm) {
        match algorithm {
            SyncAlgorithm::Dissemination => self.disseminate(),
            SyncAlgorithm::TwoLevel => self.sync_over_nodes(),
            algorithm => {
                let plan = algorithm.plan(self.n(), self.me());
                self.run(SymmetricRange::EMPTY, SymmetricRange::EMPTY, Parts::Whole(0), plan);
            }
        }
    }

    /// A sync whose plan has signals and waits alone, so that it needs no execution.
    fn disseminate(&mut self) {
        dissemination::sync(self.n(), self.me()).for_each(|step| match step {
            Step::Signal { peer } => self.signal(peer),
            Step::Wait { peer } => self.wait(peer),
            _ => unreachable!("a sync moves nothing"),
        });
    }
}

impl Drop for EnteredCollective<'_> {
    fn drop(&mut self) {
        self.channels.ring();
    }
}
