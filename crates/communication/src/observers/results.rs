//! With `SHMEM_CHECK`, finds a collective whose `dest` has bytes in common with the `dest` of an
//! earlier one in which other members may still be. One result may then replace the other.
//!
//! Before a PE calls a collective, `dest` must be ready on all members (OpenSHMEM 1.6, §9.10.5 to
//! §9.10.10). It is not ready on a member that may still wait for the result of an earlier
//! collective there. That a call returns says nothing of this: the call of another member may
//! return later. A PE knows that others have returned only from what it receives after its own
//! call: by a barrier or sync, by a later collective whose result needs the data of all members, or
//! by a wait, a get or a lock. What a PE receives without a call of this library, as by
//! `MPI_Barrier` or through a pointer of `shmem_ptr`, is not seen, so this is a warning.
//!
//! The race detector knows the order of all calls. If it is there, it gets each such pair, and
//! reports those that nothing orders.

use super::event::{ByteBlocks, FollowedMembers, Membership};
use super::races;
use rushmem_locate::Stack;
use rushmem_pe::call::warning::warning;
use rushmem_pe::call::{Call, location};
use rushmem_pe::job;
use rushmem_pe::job::members::Members;
use rushmem_system::lock::lock;
use rushmem_transport::Pe;
use std::collections::{BTreeSet, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The part of a PE in a collective that has a result.
#[derive(Clone, Debug)]
pub struct CollectiveResult {
    call: Call,
    members: Members,
    /// The number of this PE among the members.
    me: u32,
    /// The bytes of the result, by their addresses on this PE.
    dest: ByteBlocks,
    /// The bytes that this PE writes on other members, by their addresses on this PE.
    written: ByteBlocks,
    writers: ResultWriters,
    /// The stack of the call, from which a warning finds its place in the program.
    stack: Stack,
}

/// The members that write the result of a collective on a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultWriters {
    /// The member itself, together with others: a reduction and an inclusive scan. There is no
    /// result before the member has called.
    WithMember,
    /// The root of a broadcast or scatter.
    Root {
        /// The index of the root in the team.
        root: u32,
        /// False for a broadcast on an active set, which does not write `dest` of the root.
        writes_own: bool,
    },
    /// Each member writes its block.
    Each,
    /// All members, on the root alone: a gather and a reduction to a root.
    AtRoot {
        /// The index of the root in the team.
        root: u32,
        /// True if they may write before the root has called: in a gather.
        in_advance: bool,
    },
    /// The member below it, which has the result of all members below: an exclusive scan.
    Below,
}

impl ResultWriters {
    /// Returns true if member `from` may write the result of member `to` before `to` calls.
    fn has(self, from: u32, to: u32) -> bool {
        match self {
            ResultWriters::WithMember => false,
            ResultWriters::AtRoot { root, in_advance } => in_advance && to == root,
            ResultWriters::Root { root, writes_own } => from == root && (writes_own || to != root),
            ResultWriters::Each => true,
            ResultWriters::Below => from + 1 == to,
        }
    }

    /// Returns true if the collective writes `dest` of this member.
    fn write_on(self, member: u32) -> bool {
        match self {
            ResultWriters::Root { root, writes_own } => writes_own || member != root,
            ResultWriters::AtRoot { root, .. } => member == root,
            _ => true,
        }
    }
}

/// Maximum number of collectives that are remembered, so that a program which never synchronizes
/// does not fill the memory, and a collective is not compared with all before. An overlap with an
/// older one is not found. The number was chosen without a measurement.
const REMEMBERED: usize = 64;

/// The collectives in which other members may still be, as far as this PE has received nothing
/// that says otherwise; the oldest first.
static RESULTS: Mutex<Vec<CollectiveResult>> = Mutex::new(Vec::new());
/// True if a get or a fetch was started that the next quiet completes. Relaxed: of threads that
/// call at once, either order is possible.
static IS_FETCHING: AtomicBool = AtomicBool::new(false);

impl CollectiveResult {
    /// Returns the result `dest` of a collective that this PE has begun as member `me`. The PE
    /// itself writes `written` on other members.
    pub fn new(
        call: Call,
        members: &Members,
        me: u32,
        dest: ByteBlocks,
        written: ByteBlocks,
        writers: ResultWriters,
    ) -> CollectiveResult {
        CollectiveResult {
            call,
            members: members.clone(),
            me,
            dest,
            written,
            writers,
            stack: Stack::capture(),
        }
    }

    /// Shows the race detector, or else warns, if other members may still be in an earlier
    /// collective that writes bytes which this PE writes now.
    pub fn check(&self) {
        let mut results = lock(&RESULTS);
        if self.is_broadcast_on_active_set() {
            self.forget_earlier_of_set(&mut results);
        }

        // Those before the last collective that is alike were compared with that one.
        let last_alike = results.iter().rposition(|earlier| earlier.is_alike(self));
        let overlapping = results[last_alike.unwrap_or(0)..]
            .iter()
            .filter(|earlier| self.written.overlaps(earlier.dest));

        let Some(detector) = races::detector() else {
            let found = overlapping
                .rev()
                .find(|earlier| self.targets(earlier).next().is_some());
            if let Some(earlier) = found {
                self.warn(earlier);
            }
            return;
        };

        let targets: BTreeSet<Pe> = overlapping
            .flat_map(|earlier| self.targets(earlier))
            .collect();
        for pe in targets {
            races::report_writes(detector, self.call, self.written, pe);
        }
    }

    /// Forgets the broadcasts on the active set of this one that its receivers have left: all but
    /// the last. At its entry, the root has waited until its receivers had entered that one.
    fn forget_earlier_of_set(&self, results: &mut Vec<CollectiveResult>) {
        let is_of_set =
            |one: &CollectiveResult| one.writers == self.writers && one.members == self.members;
        let Some(last) = results.iter().rposition(is_of_set) else {
            return;
        };

        let mut index = 0;
        results.retain(|one| {
            let is_earlier = index < last;
            index += 1;
            !(is_earlier && is_of_set(one))
        });
    }

    /// Returns true for a broadcast on an active set, the only collective whose root does not write
    /// its own `dest`.
    fn is_broadcast_on_active_set(&self) -> bool {
        matches!(
            self.writers,
            ResultWriters::Root {
                writes_own: false,
                ..
            }
        )
    }

    /// Returns true if the same members write the same bytes in the later collective.
    fn is_alike(&self, later: &CollectiveResult) -> bool {
        self.writers == later.writers && self.dest == later.dest && self.members == later.members
    }

    /// Returns the other members whose `dest` the earlier collective writes, and this PE may write
    /// before they call.
    fn targets<'a>(&'a self, earlier: &'a CollectiveResult) -> impl Iterator<Item = Pe> + 'a {
        (0..self.members.n)
            .filter(|&member| member != self.me && self.writers.has(self.me, member))
            .map(|member| self.members.world_pe(member))
            .filter(|&pe| {
                let member = earlier.members.team_pe(pe);
                member.is_some_and(|member| earlier.writers.write_on(member.0))
            })
    }

    /// Warns of this call and an earlier one, once for each pair of places.
    fn warn(&self, earlier: &CollectiveResult) {
        static WARNED: Mutex<Option<HashSet<[Vec<usize>; 2]>>> = Mutex::new(None);

        let places = [&earlier.stack, &self.stack].map(|stack| stack.addresses().to_vec());
        let is_new = lock(&WARNED).get_or_insert_default().insert(places);
        if !is_new {
            return;
        }

        warning!(
            each: "{}{}: argument dest has bytes in common with dest of {}{}, in which other PEs may still be: \
            one result may replace the other; let the PEs synchronize between the two calls, for example by \
            {}, or use another dest",
            self.call,
            self.place(),
            earlier.call,
            earlier.place(),
            self.call.words("shmem_sync_all", "Shmem::sync_all"),
        );
    }

    /// Returns the place of the call in the program, as a clause of a message; empty if it is not
    /// found.
    fn place(&self) -> String {
        match location::line_on_stack(&self.stack) {
            Some(line) => format!(" (called at {line})"),
            None => String::new(),
        }
    }
}

/// Records that this PE leaves a collective, which has this result if it has one. All members have
/// entered it, and so left those before, if the result needs the data of all.
pub(super) fn leave(call: Call, membership: Membership, result: Option<&CollectiveResult>) {
    let Membership { n, me, follows, .. } = membership;
    let have_others_left = if races::detector().is_some() {
        // The detector judges what this PE has received. Only after a collective of all PEs there
        // is nothing left to judge.
        follows == FollowedMembers::All && n == job::require(call).n_pes
    } else {
        match follows {
            FollowedMembers::All => n > 1,
            FollowedMembers::Member => me != membership.followed_member,
            FollowedMembers::Below => me > 0,
        }
    };

    let mut results = lock(&RESULTS);
    if have_others_left {
        results.clear();
    }

    let Some(result) = result else { return };
    if n > 1 {
        if results.len() == REMEMBERED {
            results.remove(0);
        }
        results.push(result.clone());
    }
}

/// Records that this PE has received something from others, which may have told it that they have
/// left all collectives. The race detector knows what it was.
pub(super) fn receive() {
    if races::detector().is_none() {
        lock(&RESULTS).clear();
    }
}

/// Records that this PE has started to get something that the next quiet completes.
pub(super) fn start_fetching() {
    IS_FETCHING.store(true, Relaxed);
}

/// Records a quiet.
pub(super) fn quiet() {
    if IS_FETCHING.swap(false, Relaxed) {
        receive();
    }
}
