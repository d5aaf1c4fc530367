//! Collectives (OpenSHMEM 1.6, §9.10), on teams and on active sets.
//!
//! Each routine locks the signals of the team, checks its arguments and executes a plan. A peer may
//! write to `dest` as soon as it has entered: the standard requires that `dest` is ready on all PEs
//! before any of them calls. Reductions and scans are in `reductions`.
//!
//! An error ends the job, so a routine that has a status returns 0.
#![allow(unsafe_code)]

use crate::coll::composition::GatheredSlots;
use crate::coll::entry::{CollectiveEntry, bytes, checked_root};
use crate::coll::executor::{Executor, Parts, PlanArrays, vector_parts};
use crate::coll::heap_change::HeapChange;
use crate::coll::same_collective::CheckedArgument;
use crate::own_pe::{self, Caller, OwnPe};
use crate::teams::active_set::PsyncPurpose;
use crate::teams::team::Team;
use core::ffi::c_int;
use rushmem_collectives::choice::{
    AllGatherAlgorithm, AllToAllAlgorithm, BroadcastAlgorithm, ChoiceFacts, Table,
};
use rushmem_collectives::{central, pairwise};
use rushmem_communication::access::contexts::DefaultContext;
use rushmem_communication::access::order;
use rushmem_communication::observers::results::ResultWriters;
use rushmem_communication::observers::{ByteBlocks, FollowedMembers};
use rushmem_pe::call::{Call, fail};
use rushmem_pe::job;
use rushmem_pe::job::handle::TeamHandle;
use rushmem_pe::memory::checks;
use rushmem_pe::memory::range::{SymmetricRange, symmetric};

pub use crate::coll::entry::{ElementCount, TeamOrActiveSet};

/// `shmem_barrier_all` (§9.10.1): a quiet of the default context and a sync of the world.
pub fn barrier_all(caller: impl Caller) {
    let (pe, call) = caller.enter();
    barrier_with(pe, call, &[], |executor| executor.sync());
}

/// Performs the barrier of a call that changes the heap on all PEs. Ends the job with an error if
/// PEs of a node make different changes, since the blocks of the heap would be at different offsets
/// from then on. With `SHMEM_CHECK`, all PEs must pass the same `arguments`.
pub(crate) fn heap_barrier(caller: impl Caller, change: HeapChange, arguments: &[CheckedArgument]) {
    let (pe, call) = caller.enter();
    barrier_with(pe, call, arguments, |executor| {
        if let Some((pe, other)) = executor.sync_comparing(change.word()) {
            let other = HeapChange::of_word(other);
            fail!(
                call,
                "this PE {change}, but PE {pe} {other}; all PEs must make the same calls in the same order, and pass the \
                 same sizes, or their blocks are at different places of the heap from now on"
            );
        }
    });
}

#[inline(always)]
fn barrier_with(
    pe: &'static OwnPe,
    call: Call,
    arguments: &[CheckedArgument],
    sync: impl FnOnce(&mut Executor<'_>),
) {
    let job = pe.job();
    order::complete_on(pe.links, call, DefaultContext);

    let (mut entry, mut executor) = CollectiveEntry::enter_team(pe, call, pe.teams.world());
    if job.settings.checks() {
        checks::require_guards(call, job, checks::GUARDS_PER_BARRIER);
        pe.buffers.check(call, job);
        entry.require_same(arguments);
    }

    sync(&mut executor);
}

/// Performs the barrier of finalize, on a team of its own, so that it matches no other collective.
pub(crate) fn finalize(pe: &'static OwnPe, call: Call) {
    order::complete_on(pe.links, call, DefaultContext);
    let (mut entry, mut executor) = CollectiveEntry::enter_team(pe, call, pe.teams.finalize());
    entry.require_same(&[]);
    executor.sync_without_pair_flags();
}

/// With `SHMEM_CHECK`, ends the job with an error unless all members of a team make this call with
/// the same arguments.
pub(crate) fn require_same(
    pe: &'static OwnPe,
    call: Call,
    team: &Team,
    arguments: &[CheckedArgument],
) {
    if pe.job().settings.checks() {
        let (mut entry, _executor) = CollectiveEntry::enter_team(pe, call, team);
        entry.require_same(arguments);
    }
}

/// `shmem_sync_all` (§9.10.4): a sync of the world, without a quiet.
pub fn sync_all(caller: impl Caller) {
    let (pe, call) = caller.enter();
    let (mut entry, mut executor) = CollectiveEntry::enter_team(pe, call, pe.teams.world());
    entry.require_same(&[]);
    executor.sync();
}

/// `shmem_team_sync` and the active-set `shmem_sync` (§9.10.3): a sync of the members, without a
/// quiet. Returns 0.
pub fn sync(caller: impl Caller, members: TeamOrActiveSet) -> c_int {
    let (pe, call) = caller.enter();
    let participants = members.find_for(pe, call, PsyncPurpose::Sync);
    let (mut entry, mut executor) = CollectiveEntry::enter(pe, call, &participants);
    entry.require_same(&[]);
    executor.sync();
    0
}

/// `shmem_barrier` (§9.10.2): a quiet of the default context and a sync of the active set.
pub fn barrier(caller: impl Caller, members: TeamOrActiveSet) {
    let (pe, call) = caller.enter();
    order::complete_on(pe.links, call, DefaultContext);
    sync(caller, members);
}

/// `shmem_broadcast` (§9.10.7): the elements from member `root` to `dest` of the others and, on a
/// team, of the root itself.
///
/// # Safety
/// The precondition of all routines, which [the crate](crate#safety) states.
pub unsafe fn broadcast(
    caller: impl Caller,
    members: TeamOrActiveSet,
    dest: *mut u8,
    source: *const u8,
    elements: ElementCount,
    root: c_int,
) -> c_int {
    let (pe, call) = caller.enter();
    let nbytes = elements.nbytes();
    let participants = members.find(pe, call);
    let (mut entry, mut executor) = CollectiveEntry::enter(pe, call, &participants);
    let n = executor.n();
    let me = executor.me();

    let root = checked_root(call, root, n);
    let dest = symmetric(pe.job(), call, "dest", dest, nbytes);
    let source = symmetric(pe.job(), call, "source", source, nbytes);
    let is_on_set = executor.collective.team.is_active_set();
    entry.if_observed(move |entry| {
        entry.require_same_arrays(dest, source, elements, &[("PE_root", root.into())]);
        entry.show_followed(FollowedMembers::Member, root);

        // Only the root reads, and on an active set only the others write.
        if me != root {
            entry.show_arrays(SymmetricRange::empty(), dest);
        } else if is_on_set {
            entry.show_arrays(source, SymmetricRange::empty());
        }
        let writers = ResultWriters::Root {
            root,
            writes_own: !is_on_set,
        };
        entry.check_result(bytes(dest), bytes(dest), writers);
        entry.check_apart(source, dest);
    });

    let algorithm = if is_on_set {
        executor.limit_lead(&pe.last_broadcast, root);
        // The only tree whose senders and receivers `limit_lead` supports.
        BroadcastAlgorithm::Binomial
    } else {
        executor.choose(nbytes)
    };
    if algorithm == BroadcastAlgorithm::Binomial {
        let plan = algorithm.plan(n, me, root, 1);
        executor.execute(&PlanArrays::of(source, dest, Parts::Whole(nbytes)), plan);
    } else {
        let plan = algorithm.plan(n, me, root, vector_parts(nbytes));
        executor.execute(&PlanArrays::of(source, dest, Parts::Vector), plan);
    }

    if me == root && !is_on_set {
        source.copy_here(dest);
    }
    0
}

/// `shmem_collect` (§9.10.8): concatenates the elements of each member in the order of the
/// team; the number may differ between members.
///
/// # Safety
/// The precondition of all routines, which [the crate](crate#safety) states.
pub unsafe fn collect(
    caller: impl Caller,
    members: TeamOrActiveSet,
    dest: *mut u8,
    source: *const u8,
    elements: ElementCount,
) -> c_int {
    // SAFETY: the caller promises the precondition of all routines.
    unsafe { collect_within(caller, members, dest, source, elements, usize::MAX) };
    0
}

/// [`collect`] into a `dest` of `max_bytes` bytes: ends the job with an error if the blocks of all
/// members have more bytes together. Returns that number of bytes.
///
/// # Safety
/// The precondition of all routines, which [the crate](crate#safety) states.
pub unsafe fn collect_within(
    caller: impl Caller,
    members: TeamOrActiveSet,
    dest: *mut u8,
    source: *const u8,
    elements: ElementCount,
    max_bytes: usize,
) -> usize {
    let (pe, call) = caller.enter();
    let nbytes = elements.nbytes();
    let participants = members.find(pe, call);
    let (mut entry, mut executor) = CollectiveEntry::enter(pe, call, &participants);
    let source = symmetric(pe.job(), call, "source", source, nbytes);
    let in_place = is_in_place(symmetric(pe.job(), call, "dest", dest, nbytes), source);
    entry.require_same(&[]);

    let blocks = CollectedBlocks::gather(&mut executor, source, in_place);
    let total = blocks.total();
    if total > max_bytes {
        fail!(
            call,
            "argument dest has {max_bytes} bytes, but the members collect {total}; make it larger on all of them"
        );
    }
    let dest = symmetric(pe.job(), call, "dest", dest, total);
    entry.show_arrays(source, dest);

    let own_block = blocks.place(dest, executor.me() as usize);
    entry.check_result(bytes(dest), bytes(own_block), ResultWriters::Each);
    entry.check_apart(source, dest);

    // If all blocks came with their sizes, nothing is left to exchange.
    if blocks.copy_gathered(dest) {
        // `check_result` follows the exchange here, so no member leaves before all have called it:
        // the race detector would take a later access to a result for one that nothing orders.
        if pe.job().settings.checks() {
            executor.sync();
        }
        return total;
    }

    // Not in lines, which are for blocks of one size.
    let facts = || ChoiceFacts {
        lines: false,
        ..executor.facts()
    };
    let algorithm: AllGatherAlgorithm = pe.job().algorithms.table().choose(total, facts);
    let plan = algorithm.plan(executor.n(), executor.me());
    let arrays = PlanArrays::of(source, dest, Parts::Table(&blocks.offsets));
    executor.exchange(arrays, blocks.in_place, plan);
    total
}

/// The blocks of all members of a collect.
struct CollectedBlocks {
    /// The offset of each member's block, and the total size as the last entry.
    offsets: Vec<usize>,
    /// True if `source` is `dest` on some member.
    in_place: bool,
    /// The blocks that were gathered together with the sizes, if there are any.
    slots: Option<GatheredSlots>,
}

/// The bit that is set in the gathered size of a member's block if the member's `source` is its
/// `dest`.
const IN_PLACE: u64 = 1 << 63;

impl CollectedBlocks {
    /// Gathers the size of each member's block, and short blocks. `source` is the block of this
    /// member, and `in_place` is true if it is also its `dest`.
    fn gather(
        executor: &mut Executor<'_>,
        source: SymmetricRange,
        in_place: bool,
    ) -> CollectedBlocks {
        let own = source.nbytes() as u64 | if in_place { IN_PLACE } else { 0 };
        let slots = executor.gather_slots(own, source);
        let words = match &slots {
            Some(slots) => slots.sizes(),
            None => executor.gather(own),
        };

        let mut offsets = vec![0];
        let mut end = 0usize;
        for word in &words {
            end = end.saturating_add((word & !IN_PLACE) as usize);
            offsets.push(end);
        }
        CollectedBlocks {
            offsets,
            in_place: words.iter().any(|word| word & IN_PLACE != 0),
            slots,
        }
    }

    /// Returns the size of all blocks.
    fn total(&self) -> usize {
        self.offsets[self.n_members()]
    }

    fn n_members(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Returns the part of `dest` for the block of a member.
    fn place(&self, dest: SymmetricRange, member: usize) -> SymmetricRange {
        let start = self.offsets[member];
        dest.part(start, self.offsets[member + 1] - start)
    }

    /// Copies all blocks to `dest` and returns true, if all of them were gathered.
    fn copy_gathered(&self, dest: SymmetricRange) -> bool {
        let Some(slots) = &self.slots else {
            return false;
        };
        let longest = self.offsets.windows(2).map(|ends| ends[1] - ends[0]).max();
        if longest.is_some_and(|longest| longest > slots.max_block()) {
            return false;
        }

        for member in 0..self.n_members() {
            let block = self.place(dest, member);
            slots.block(member, block.nbytes()).copy_here(block);
        }
        true
    }
}

/// Returns true if the source of a collective, unless it is empty, is also the destination. A
/// pinned buffer has two addresses in the program, so ranges are compared.
fn is_in_place(dest: SymmetricRange, source: SymmetricRange) -> bool {
    source.nbytes() > 0 && dest.starts_with(source)
}

/// Returns the word that each member of a team passes as `own`, in the order of the team. All
/// members call this.
pub(crate) fn gather_words(pe: &'static OwnPe, call: Call, team: &Team, own: u64) -> Vec<u64> {
    let (mut entry, mut executor) = CollectiveEntry::enter_team(pe, call, team);
    entry.require_same(&[]);
    executor.gather(own)
}

/// `shmem_fcollect` (§9.10.8): concatenates the elements of each member; the number is the
/// same on all members.
///
/// # Safety
/// The precondition of all routines, which [the crate](crate#safety) states.
pub unsafe fn fcollect(
    caller: impl Caller,
    members: TeamOrActiveSet,
    dest: *mut u8,
    source: *const u8,
    elements: ElementCount,
) -> c_int {
    let (pe, call) = caller.enter();
    let nbytes = elements.nbytes();
    let participants = members.find(pe, call);
    let (mut entry, mut executor) = CollectiveEntry::enter(pe, call, &participants);
    let n = executor.n();
    let me = executor.me();
    let total = nbytes.saturating_mul(n as usize);
    let source = symmetric(pe.job(), call, "source", source, nbytes);
    let dest = symmetric(pe.job(), call, "dest", dest, total);
    let in_place = is_in_place(dest, source);
    entry.if_observed(move |entry| {
        entry.require_same_arrays(dest, source, elements, &[]);
        let own_block = dest.part(me as usize * nbytes, nbytes);
        entry.check_result(bytes(dest), bytes(own_block), ResultWriters::Each);
        entry.check_apart(source, dest);
    });

    let arrays = PlanArrays::of(source, dest, Parts::Equal(nbytes));
    match executor.choose(total) {
        AllGatherAlgorithm::Lines => {
            let plan = pairwise::all_gather_in_lines(n, me);
            executor.exchange_in_lines(source, dest, nbytes, plan);
        }
        algorithm => executor.exchange(arrays, in_place, algorithm.plan(n, me)),
    }
    0
}

/// `shmem_alltoall` (§9.10.5): block `l` of member `k`, of these elements, becomes block `k` of
/// member `l`.
///
/// # Safety
/// The precondition of all routines, which [the crate](crate#safety) states.
pub unsafe fn alltoall(
    caller: impl Caller,
    members: TeamOrActiveSet,
    dest: *mut u8,
    source: *const u8,
    elements: ElementCount,
) -> c_int {
    let (pe, call) = caller.enter();
    let nbytes = elements.nbytes();
    let participants = members.find(pe, call);
    let (mut entry, mut executor) = CollectiveEntry::enter(pe, call, &participants);
    let n = executor.n();
    let me = executor.me();
    let total = nbytes.saturating_mul(n as usize);
    let source = symmetric(pe.job(), call, "source", source, total);
    let dest = symmetric(pe.job(), call, "dest", dest, total);
    let in_place = is_in_place(dest, source);
    entry.if_observed(move |entry| {
        entry.require_same_arrays(dest, source, elements, &[]);
        let own_block = dest.part(me as usize * nbytes, nbytes);
        entry.check_result(bytes(dest), bytes(own_block), ResultWriters::Each);
        entry.check_apart(source, dest);
    });

    let arrays = PlanArrays::of(source, dest, Parts::Equal(nbytes));
    match executor.choose(nbytes) {
        AllToAllAlgorithm::Lines => {
            let plan = pairwise::all_to_all_in_lines(n, me);
            executor.exchange_in_lines(source, dest, nbytes, plan);
        }
        AllToAllAlgorithm::Pairwise => {
            executor.exchange(arrays, in_place, pairwise::all_to_all(n, me));
        }
        AllToAllAlgorithm::Bruck => executor.all_to_all_in_rounds(source, dest, nbytes),
        AllToAllAlgorithm::Central => {
            executor.exchange(arrays, in_place, central::all_to_all(n, me));
        }
    }
    0
}

/// `shmem_alltoalls` (§9.10.6): as [`alltoall`], of blocks of `nelems` elements of `elem_bytes`
/// bytes (1, 2, 4, 8 or 16), which are `dst` elements apart in `dest` and `sst` elements apart in
/// `source`.
///
/// # Safety
/// The precondition of all routines, which [the crate](crate#safety) states.
#[expect(
    clippy::too_many_arguments,
    reason = "the arguments of shmem_alltoalls"
)]
pub unsafe fn alltoalls(
    caller: impl Caller,
    members: TeamOrActiveSet,
    dest: *mut u8,
    source: *const u8,
    dst: isize,
    sst: isize,
    nelems: usize,
    elem_bytes: usize,
) -> c_int {
    let (pe, call) = caller.enter();
    let participants = members.find(pe, call);
    let (mut entry, mut executor) = CollectiveEntry::enter(pe, call, &participants);

    let n_elements = nelems.saturating_mul(executor.n() as usize);
    let dest_bytes = strided_bytes(call, "dst", dst, n_elements, elem_bytes);
    let dest = symmetric(pe.job(), call, "dest", dest, dest_bytes);
    let source_bytes = strided_bytes(call, "sst", sst, n_elements, elem_bytes);
    let source = symmetric(pe.job(), call, "source", source, source_bytes);
    let in_place = is_in_place(dest, source);

    let elements = ElementCount { nelems, elem_bytes };
    let strides = [("dst", dst as u64), ("sst", sst as u64)];
    entry.require_same_arrays(dest, source, elements, &strides);

    let elements = ByteBlocks {
        nbytes: elem_bytes,
        stride: elem_bytes.saturating_mul(dst as usize),
        n: n_elements,
        ..bytes(dest)
    };
    let own_block = ByteBlocks {
        addr: elements.addr + executor.me() as usize * nelems * elements.stride,
        n: nelems,
        ..elements
    };
    entry.check_result(elements, own_block, ResultWriters::Each);
    entry.check_apart(source, dest);

    let parts = Parts::Strided {
        dst: dst as usize,
        sst: sst as usize,
        nelems,
        elem_bytes,
    };
    // Other algorithms would have to pack the strided elements first.
    let plan = pairwise::all_to_all(executor.n(), executor.me());
    executor.exchange(PlanArrays::of(source, dest, parts), in_place, plan);
    0
}

/// Returns the number of bytes from the first to the last of `n` elements, each of which begins
/// `stride` elements after the one before it. Ends the job with an error if the stride is not
/// valid.
fn strided_bytes(call: Call, argument: &str, stride: isize, n: usize, elem_bytes: usize) -> usize {
    if stride < 1 {
        fail!(
            call,
            "argument {argument} is {stride}, but a stride is at least 1"
        );
    }
    if n == 0 {
        return 0;
    }
    let gaps = (n - 1).saturating_mul(stride as usize);
    gaps.saturating_add(1).saturating_mul(elem_bytes)
}

/// Returns the facts by which algorithms are chosen for a team, for a program that measures them.
/// Counts as a collective of the team, so all members call it.
pub fn choice_facts(call: Call, team: TeamHandle) -> ChoiceFacts {
    let pe = own_pe::require(call);
    let team = pe.teams.find(call, "team", team);
    let (_, executor) = CollectiveEntry::enter_team(pe, call, &team);
    executor.facts()
}

/// Chooses the algorithms of all further collectives from `table`. All PEs must call this between
/// the same two collectives. Returns the former table.
pub fn replace_table(call: Call, table: &'static Table) -> &'static Table {
    job::require(call).algorithms.replace(table)
}
