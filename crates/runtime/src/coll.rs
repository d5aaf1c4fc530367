//! Collectives (OpenSHMEM 1.6, §9.10), on teams and on active sets.
//!
//! Each checks its arguments, takes the team's channels for the time of the call and carries out a
//! plan. `dest` is written by peers as soon as they call, which the standard allows: it is ready on
//! all PEs before any of them calls. Reductions and scans go through the team's landings in pieces.
#![forbid(unsafe_code)]

use crate::address::symmetric;
use crate::call::{Call, fail};
use crate::channel::Channels;
use crate::check::{self, Argument};
use crate::combine::Combine;
use crate::ctx::World;
use crate::execute::{Execution, Parts};
use crate::internal::LANDING;
use crate::job::{self, Job};
use crate::order;
use crate::range::Range;
use crate::team::{self, Team};
use core::ffi::{c_int, c_long};
use rushmem_collectives::{Step, binomial, choice, pairwise, recursive_doubling};
use std::sync::{Arc, TryLockError};

/// Who takes part.
#[derive(Clone, Copy, Debug)]
pub enum Members {
    /// The members of a team.
    Team(team::Handle),
    /// The PEs `start + i * 2^log_stride` for `i` below `size`, told apart from other calls of the same
    /// set by `psync` (deprecated forms).
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

impl From<team::Handle> for Members {
    fn from(team: team::Handle) -> Members {
        Members::Team(team)
    }
}

impl Members {
    pub(crate) fn team(self, call: Call) -> Arc<Team> {
        match self {
            Members::Team(handle) => team::find(call, "team", handle),
            Members::ActiveSet { start, log_stride, size, psync } => {
                team::find_active_set(call, start, log_stride, size, psync)
            }
        }
    }
}

/// A collective that one member has entered.
pub(crate) struct Entered<'a> {
    pub(crate) call: Call,
    pub(crate) job: &'static Job,
    pub(crate) team: &'a Team,
    pub(crate) channels: std::sync::MutexGuard<'a, Channels>,
}

impl<'a> Entered<'a> {
    pub(crate) fn new(call: Call, team: &'a Team) -> Entered<'a> {
        let job = job::require(call);
        check::caller(call, job);
        let channels = match team.channels.try_lock() {
            Ok(channels) => channels,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                fail!(call, "another thread of this PE is in a collective on the same team")
            }
        };
        Entered { call, job, team, channels }
    }

    pub(crate) fn n(&self) -> u32 {
        self.team.members().n
    }

    pub(crate) fn me(&self) -> u32 {
        self.team.me().0
    }

    /// With `SHMEM_CHECK`, a message unless all members are here with the same arguments.
    pub(crate) fn agree(&mut self, arguments: &[Argument]) {
        if self.job.settings.check {
            check::same(self.call, self.team.members(), arguments, |word| self.gather(word));
        }
    }

    /// As [`agree`](Entered::agree), of two arrays and what is in `more`.
    fn agree_on(&mut self, dest: Range, source: Range, nbytes: usize, more: &[Argument]) {
        if self.job.settings.check {
            let (dest, source) = (dest.offset() as u64, source.offset() as u64);
            let arrays = [("dest at", dest), ("source at", source), ("bytes", nbytes as u64)];
            self.agree(&[&arrays, more].concat());
        }
    }

    /// Every member's word. Nobody ends its plan before all have entered it, so with two tables in turn
    /// nobody writes one that is in use.
    fn gather(&mut self, word: u64) -> Vec<u64> {
        let (n, me) = (self.n(), self.me());
        let parity = self.channels.next_gather();
        let internal = self.job.internal();
        let at = internal.areas().counts(self.channels.slot(), parity);
        let table = internal.range(at, n as usize * 8);
        let own = me as usize * 8;
        internal.write_own(at + own, &[word]);
        let plan = choice::all_gather(n, me, n as usize * 8);
        self.run(table.part(own, 8), table, Parts::Equal(8), plan);
        let mut words = vec![0; n as usize];
        internal.read(at, &mut words);
        words
    }

    /// Carry out a plan that moves parts from `source` to `dest`.
    fn run(
        &mut self,
        source: Range,
        dest: Range,
        parts: Parts<'_>,
        plan: impl Iterator<Item = Step>,
    ) {
        let mut execution = Execution {
            job: self.job,
            team: self.team,
            channels: &mut self.channels,
            source,
            dest,
            parts,
            accumulator: Range::EMPTY,
            combine: None,
            parity: 0,
        };
        execution.run(plan);
    }

    /// Carry out a plan for each piece of two vectors that fits a landing; the accumulator of a piece
    /// is its place in `dest`. `parity` says which copy of its landings a plan uses.
    fn run_pieces<P: Iterator<Item = Step>>(
        &mut self,
        source: Range,
        dest: Range,
        nelems: usize,
        op: &'static Combine,
        parity: impl Fn(&mut Channels) -> usize,
        plan: impl Fn(u32, u32) -> P,
    ) {
        let (n, me) = (self.n(), self.me());
        let most = LANDING / op.elem_bytes;
        for first in (0..nelems).step_by(most) {
            let (at, nbytes) = (first * op.elem_bytes, most.min(nelems - first) * op.elem_bytes);
            let piece = dest.part(at, nbytes);
            if !dest.starts_with(source) {
                source.part(at, nbytes).copy_to(self.job.me(), piece);
            }
            let parity = parity(&mut self.channels);
            let mut execution = Execution {
                job: self.job,
                team: self.team,
                channels: &mut self.channels,
                source: Range::EMPTY,
                dest: Range::EMPTY,
                parts: Parts::Whole(nbytes),
                accumulator: piece,
                combine: Some(op),
                parity,
            };
            execution.run(plan(n, me));
        }
    }

    /// Both vectors of a reduction or scan.
    fn vectors(
        &mut self,
        dest: *mut u8,
        source: *const u8,
        nelems: usize,
        op: &Combine,
    ) -> (Range, Range) {
        let nbytes = nelems.saturating_mul(op.elem_bytes);
        let dest = symmetric(self.call, "dest", dest, nbytes);
        let source = symmetric(self.call, "source", source, nbytes);
        self.agree_on(dest, source, nbytes, &[]);
        check::apart(self.call, self.job, source, dest, true);
        (dest, source)
    }

    fn sync(&mut self) {
        let plan = choice::sync(self.n(), self.me(), self.job.crowded_somewhere);
        self.run(Range::EMPTY, Range::EMPTY, Parts::Whole(0), plan);
    }
}

/// `shmem_barrier_all` (§9.10.1): a quiet of the default context and a sync of the world.
pub fn barrier_all(call: Call) {
    barrier_all_with(call, &[]);
}

/// The barrier of a call whose arguments must be the same on all PEs.
pub(crate) fn barrier_all_with(call: Call, arguments: &[Argument]) {
    order::quiet(call, World);
    let mut entered = Entered::new(call, job::require(call).teams.world());
    entered.agree(arguments);
    entered.sync();
}

/// With `SHMEM_CHECK`, a message unless all members of a team make this call with the same arguments.
pub(crate) fn agree(call: Call, team: &Team, arguments: &[Argument]) {
    if job::require(call).settings.check {
        Entered::new(call, team).agree(arguments);
    }
}

/// `shmem_sync_all` (§9.10.4): completes nothing remote.
pub fn sync_all(call: Call) {
    let mut entered = Entered::new(call, job::require(call).teams.world());
    entered.agree(&[]);
    entered.sync();
}

/// `shmem_team_sync` and the active-set `shmem_sync` (§9.10.3).
pub fn sync(call: Call, members: Members) -> c_int {
    let team = members.team(call);
    let mut entered = Entered::new(call, &team);
    entered.agree(&[]);
    entered.sync();
    0
}

/// `shmem_barrier` (§9.10.2): a quiet of the default context and a sync of the active set.
pub fn barrier(call: Call, members: Members) {
    order::quiet(call, World);
    sync(call, members);
}

/// `shmem_broadcast` (§9.10.7): `nbytes` bytes from member `root` to `dest` of the others and, on a
/// team, of the root itself.
pub fn broadcast(
    call: Call,
    members: Members,
    dest: *mut u8,
    source: *const u8,
    nbytes: usize,
    root: c_int,
) -> c_int {
    let team = members.team(call);
    let mut entered = Entered::new(call, &team);
    let (n, me) = (entered.n(), entered.me());
    if root < 0 || root as u32 >= n {
        fail!(call, "argument PE_root is {root}, but the members are numbered 0 to {}", n - 1);
    }
    let dest = symmetric(call, "dest", dest, nbytes);
    let source = symmetric(call, "source", source, nbytes);
    entered.agree_on(dest, source, nbytes, &[("PE_root", root as u64)]);
    check::apart(call, entered.job, source, dest, false);
    entered.run(source, dest, Parts::Whole(nbytes), binomial::broadcast(n, me, root as u32));
    if me == root as u32 && matches!(members, Members::Team(_)) {
        source.copy_to(entered.job.me(), dest);
    }
    0
}

/// `shmem_collect` (§9.10.8): every member's `nbytes` bytes, which may differ, one after the other in
/// the order of the team.
pub fn collect(
    call: Call,
    members: Members,
    dest: *mut u8,
    source: *const u8,
    nbytes: usize,
) -> c_int {
    let team = members.team(call);
    let mut entered = Entered::new(call, &team);
    let source = symmetric(call, "source", source, nbytes);
    entered.agree(&[]);
    let table = offsets(entered.gather(nbytes as u64));
    let total = table[table.len() - 1];
    let dest = symmetric(call, "dest", dest, total);
    check::apart(call, entered.job, source, dest, false);
    let plan = choice::all_gather(entered.n(), entered.me(), total);
    entered.run(source, dest, Parts::Table(&table), plan);
    0
}

/// Where each member's block begins, and the total.
fn offsets(sizes: Vec<u64>) -> Vec<usize> {
    let mut end = 0usize;
    let ends = sizes.into_iter().map(|size| {
        end = end.saturating_add(size as usize);
        end
    });
    std::iter::once(0).chain(ends).collect()
}

/// A word of each member of a team, which all of them call.
pub(crate) fn words(call: Call, team: &Team, own: u64) -> Vec<u64> {
    let mut entered = Entered::new(call, team);
    entered.agree(&[]);
    entered.gather(own)
}

/// `shmem_fcollect` (§9.10.8): every member's `nbytes` bytes, the same number on all.
pub fn fcollect(
    call: Call,
    members: Members,
    dest: *mut u8,
    source: *const u8,
    nbytes: usize,
) -> c_int {
    let team = members.team(call);
    let mut entered = Entered::new(call, &team);
    let total = nbytes.saturating_mul(entered.n() as usize);
    let source = symmetric(call, "source", source, nbytes);
    let dest = symmetric(call, "dest", dest, total);
    entered.agree_on(dest, source, nbytes, &[]);
    check::apart(call, entered.job, source, dest, false);
    let plan = choice::all_gather(entered.n(), entered.me(), total);
    entered.run(source, dest, Parts::Equal(nbytes), plan);
    0
}

/// `shmem_alltoall` (§9.10.5): block `l` of member `k`, of `nbytes` bytes, becomes block `k` of member `l`.
pub fn alltoall(
    call: Call,
    members: Members,
    dest: *mut u8,
    source: *const u8,
    nbytes: usize,
) -> c_int {
    let team = members.team(call);
    let mut entered = Entered::new(call, &team);
    let total = nbytes.saturating_mul(entered.n() as usize);
    let source = symmetric(call, "source", source, total);
    let dest = symmetric(call, "dest", dest, total);
    entered.agree_on(dest, source, nbytes, &[]);
    check::apart(call, entered.job, source, dest, false);
    let plan = pairwise::all_to_all(entered.n(), entered.me());
    entered.run(source, dest, Parts::Equal(nbytes), plan);
    0
}

/// `shmem_alltoalls` (§9.10.6): as [`alltoall`], with elements of `elem_bytes` (1, 2, 4, 8 or 16) that
/// are `dst` and `sst` elements apart.
#[expect(clippy::too_many_arguments, reason = "the arguments of shmem_alltoalls")]
pub fn alltoalls(
    call: Call,
    members: Members,
    dest: *mut u8,
    source: *const u8,
    dst: isize,
    sst: isize,
    nelems: usize,
    elem_bytes: usize,
) -> c_int {
    let team = members.team(call);
    let mut entered = Entered::new(call, &team);
    let span = |argument: &str, stride: isize| {
        if stride < 1 {
            fail!(call, "argument {argument} is {stride}, but a stride is at least 1");
        }
        let elements = nelems.saturating_mul(entered.n() as usize);
        let gaps = elements.saturating_sub(1).saturating_mul(stride as usize);
        if elements == 0 { 0 } else { (gaps.saturating_add(1)).saturating_mul(elem_bytes) }
    };
    let dest = symmetric(call, "dest", dest, span("dst", dst));
    let source = symmetric(call, "source", source, span("sst", sst));
    let nbytes = nelems.saturating_mul(elem_bytes);
    entered.agree_on(dest, source, nbytes, &[("dst", dst as u64), ("sst", sst as u64)]);
    check::apart(call, entered.job, source, dest, false);
    let parts = Parts::Strided { dst: dst as usize, sst: sst as usize, nelems, elem_bytes };
    let plan = pairwise::all_to_all(entered.n(), entered.me());
    entered.run(source, dest, parts, plan);
    0
}

/// `shmem_*_reduce` and `shmem_*_to_all` (§9.10.9): element by element over all members, to all.
pub fn reduce(
    call: Call,
    members: Members,
    dest: *mut u8,
    source: *const u8,
    nelems: usize,
    op: &'static Combine,
) -> c_int {
    let team = members.team(call);
    let mut entered = Entered::new(call, &team);
    let (dest, source) = entered.vectors(dest, source, nelems, op);
    let parity = Channels::next_reduction;
    entered.run_pieces(source, dest, nelems, op, parity, recursive_doubling::all_reduce);
    0
}

/// Landings of scans exist once; a scan between two all-reduces must not make these use the same copy.
fn one_copy(_: &mut Channels) -> usize {
    0
}

/// `shmem_*_sum_inscan` (§9.10.10): element by element over the members up to this one.
pub fn inscan(
    call: Call,
    members: Members,
    dest: *mut u8,
    source: *const u8,
    nelems: usize,
    op: &'static Combine,
) -> c_int {
    let team = members.team(call);
    let mut entered = Entered::new(call, &team);
    let (dest, source) = entered.vectors(dest, source, nelems, op);
    entered.run_pieces(source, dest, nelems, op, one_copy, recursive_doubling::inclusive_scan);
    0
}

/// `shmem_*_sum_exscan` (§9.10.10): element by element over the members before this one; zero on the
/// first, which all types that can be summed have as zero bytes.
pub fn exscan(
    call: Call,
    members: Members,
    dest: *mut u8,
    source: *const u8,
    nelems: usize,
    op: &'static Combine,
) -> c_int {
    let team = members.team(call);
    let mut entered = Entered::new(call, &team);
    let (dest, source) = entered.vectors(dest, source, nelems, op);
    entered.run_pieces(source, dest, nelems, op, one_copy, recursive_doubling::exclusive_scan);
    if entered.me() == 0 {
        dest.clear();
    }
    0
}
