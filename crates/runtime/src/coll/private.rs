//! Collectives on private memory. The Rust interface needs them: its collectives take and return
//! values, while those of C have symmetric arrays.
//!
//! Peers cannot access private memory, so the data pass piece by piece through the library's own
//! memory: through receive buffers or, for a few bytes, through the words beside flags and
//! counters. A team may have no receive buffers where threads may be in several collectives at
//! once. Then a member publishes a few bytes at a time, which is slower. For long vectors in
//! symmetric memory, `collectives` has better plans.
#![allow(unsafe_code)]

use crate::coll::combine::Combine;
use crate::coll::entry::CollectiveEntry;
use crate::coll::executor::{Executor, ReceiveBuffers, Vectors};
use crate::own_pe::Caller;
use core::mem::MaybeUninit;
use rushmem_collectives::central;
use rushmem_collectives::choice::AllReduceAlgorithm;
use rushmem_communication::net::copy::{Fetch, fetch};
use rushmem_pe::call::fail;
use rushmem_pe::job::handle::TeamHandle;
use rushmem_pe::memory::areas::SHORT;
use rushmem_pe::memory::range::SymmetricRange;

/// Bytes of the largest element of an operator: a complex number of two words.
const LARGEST: usize = 16;
const WORD: usize = size_of::<u64>();

/// The operator of a broadcast: a reduction in which all members but the root have zeros.
static OR: Combine = Combine::or::<u8>();

/// The members whose elements are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReductionKind {
    /// Over all members.
    AllReduce,
    /// Over the members up to and including this one.
    InclusiveScan,
    /// Over the members before this one; the first member gets the identity of the operator.
    ExclusiveScan,
}

/// Combines the elements in `memory` of all members, and stores the result in `memory`.
pub fn combine(
    caller: impl Caller,
    team: TeamHandle,
    memory: &mut [u8],
    op: &'static Combine,
    kind: ReductionKind,
) {
    let (pe, call) = caller.enter();
    let team = pe.teams.find(call, "team", team);
    let (mut entry, mut executor) = CollectiveEntry::enter_team(pe, call, &team);
    let elem_bytes = op.elem_bytes();
    entry.require_same(&[
        (
            "elements",
            memory.len().checked_div(elem_bytes).unwrap_or(0) as u64,
        ),
        ("element size", elem_bytes as u64),
        ("over", kind as u64),
    ]);

    executor.combine_private(private(memory), op, kind);
    if executor.me() == 0 && kind == ReductionKind::ExclusiveScan {
        op.fill_with_identity(private(memory));
    }
}

/// Combines the elements in `memory` of all members, and stores the result in `memory` of member
/// `root`. That of the others is not specified.
pub fn reduce(
    caller: impl Caller,
    team: TeamHandle,
    memory: &mut [u8],
    op: &'static Combine,
    root: u32,
) {
    let (pe, call) = caller.enter();
    let team = pe.teams.find(call, "team", team);
    let (mut entry, mut executor) = CollectiveEntry::enter_team(pe, call, &team);
    entry.require_same(&[
        ("bytes", memory.len() as u64),
        ("element size", op.elem_bytes() as u64),
        ("root", u64::from(root)),
    ]);

    let memory = private(memory);
    if executor.facts().has_receive_buffers() && executor.n() > 1 {
        let vectors = Vectors {
            source: memory,
            dest: memory,
            op,
        };
        let algorithm = executor.choose(memory.nbytes());
        executor.reduce_in_receive_buffers(algorithm, vectors, root);
    } else {
        executor.combine_private(memory, op, ReductionKind::AllReduce);
    }
}

/// Copies `own` of all members, which has the same length on each, to `all`, one after the other.
pub fn gather(caller: impl Caller, team: TeamHandle, own: &[u8], all: &mut [u8]) {
    let (pe, call) = caller.enter();
    let team = pe.teams.find(call, "team", team);
    let (mut entry, mut executor) = CollectiveEntry::enter_team(pe, call, &team);
    entry.require_same(&[("bytes", own.len() as u64)]);

    let nbytes = own.len();
    if nbytes > WORD {
        let blocks = all.chunks_exact_mut(nbytes).enumerate();
        let mut parts: Vec<Wanted<'_>> = blocks
            .map(|(member, into)| Wanted {
                member,
                start: 0,
                into,
            })
            .collect();
        return executor.exchange_private(own, nbytes, &mut parts);
    }
    if nbytes == 0 {
        return;
    }

    let mut word = [0; WORD];
    word[..nbytes].copy_from_slice(own);
    let words = executor.gather(u64::from_ne_bytes(word));
    for (block, word) in all.chunks_exact_mut(nbytes).zip(words) {
        block.copy_from_slice(&word.to_ne_bytes()[..nbytes]);
    }
}

/// A part of the memory that a member passes to [`exchange`], which this member wants.
#[derive(Debug)]
pub struct Wanted<'a> {
    /// The number of the member.
    pub member: usize,
    /// The first byte of the part in the memory of that member.
    pub start: usize,
    /// Where the part is copied. It has the length of the part.
    pub into: &'a mut [u8],
}

/// Copies parts of the memory `own` of the members, of any length on each, to the members that want
/// them. `longest` is the greatest of these lengths in bytes, the same number on all members.
pub fn exchange(
    caller: impl Caller,
    team: TeamHandle,
    own: &[u8],
    longest: usize,
    wanted: &mut [Wanted<'_>],
) {
    let (pe, call) = caller.enter();
    let team = pe.teams.find(call, "team", team);
    let (mut entry, mut executor) = CollectiveEntry::enter_team(pe, call, &team);
    entry.require_same(&[]);
    executor.exchange_private(own, longest, wanted);
}

/// Copies `memory` of member `root` to `memory` of all members.
pub fn broadcast(caller: impl Caller, team: TeamHandle, memory: &mut [u8], root: u32) {
    let (pe, call) = caller.enter();
    let team = pe.teams.find(call, "team", team);
    let (mut entry, mut executor) = CollectiveEntry::enter_team(pe, call, &team);
    let n = executor.n();
    if root >= n {
        fail!(
            call,
            "argument root is {root}, but the members are numbered 0 to {}",
            n - 1
        );
    }
    entry.require_same(&[("bytes", memory.len() as u64), ("root", u64::from(root))]);

    if executor.me() != root {
        memory.fill(0);
    }
    executor.combine_private(private(memory), &OR, ReductionKind::AllReduce);
}

/// Returns the bytes as a range, which must not be used after the end of `memory`.
pub(crate) fn private(memory: &mut [u8]) -> SymmetricRange {
    let memory: *mut [u8] = memory;
    // SAFETY: the same bytes, still borrowed exclusively. The type allows writing uninitialized
    // bytes, but only initialized ones are copied into a range.
    SymmetricRange::of_private(unsafe { &mut *(memory as *mut [MaybeUninit<u8>]) })
}

impl Wanted<'_> {
    /// Returns what `window` shows of this part if it shows the bytes of the member from `start`
    /// on, and where it is copied.
    fn shown_in(
        &mut self,
        window: SymmetricRange,
        start: usize,
    ) -> Option<(SymmetricRange, SymmetricRange)> {
        let first = start.max(self.start);
        let end = (start + window.nbytes()).min(self.start + self.into.len());
        if first >= end {
            return None;
        }
        let into = &mut self.into[first - self.start..end - self.start];
        Some((window.part(first - start, end - first), private(into)))
    }
}

impl Executor<'_> {
    fn combine_private(
        &mut self,
        memory: SymmetricRange,
        op: &'static Combine,
        kind: ReductionKind,
    ) {
        if memory.nbytes() == 0 || self.n() == 1 {
            return;
        }
        if !self.facts().has_receive_buffers() {
            self.combine_published(memory, op, kind);
            return;
        }

        let vectors = Vectors {
            source: memory,
            dest: memory,
            op,
        };
        match kind {
            ReductionKind::AllReduce => self.all_reduce_private(vectors),
            ReductionKind::InclusiveScan => self.scan_by_doubling(vectors, false),
            ReductionKind::ExclusiveScan => self.scan_by_doubling(vectors, true),
        }
    }

    /// All-reduce of private memory. If the table chooses an algorithm that accesses the arrays of
    /// peers, uses recursive doubling instead.
    fn all_reduce_private(&mut self, vectors: Vectors) {
        let is_short = vectors.nbytes() <= SHORT;
        match self.choose(vectors.nbytes()) {
            AllReduceAlgorithm::Central if is_short && self.facts().pair_flags => {
                self.run_pieces(vectors, ReceiveBuffers::Shared, |n, _| {
                    central::all_reduce_private(n)
                });
            }
            AllReduceAlgorithm::TwoLevel if is_short => self.all_reduce_over_nodes(vectors),
            _ => self.all_reduce_by_doubling(vectors),
        }
    }

    /// Lets each member show a piece of its memory to the others at a time, of which they copy what
    /// they want. The members need not know what the others want.
    fn exchange_private(&mut self, own: &[u8], longest: usize, wanted: &mut [Wanted<'_>]) {
        if self.n() == 1 {
            for Wanted { start, into, .. } in wanted {
                into.copy_from_slice(&own[*start..*start + into.len()]);
            }
            return;
        }
        if longest == 0 {
            return;
        }

        let links = self.links;
        let areas = links.area.areas();
        let members = self.members();
        let facts = self.facts();
        let has_receive_buffers = facts.has_receive_buffers();
        let room = if has_receive_buffers {
            facts.receive_buffer_bytes
        } else {
            WORD
        };

        for (turn, start) in (0..longest).step_by(room).enumerate() {
            // No peer puts to a receive buffer of this member in this collective. There are two in
            // turn, so that a slow member may still read the piece before.
            let offset = if has_receive_buffers {
                areas.receive_buffer(self.collective.team.receive_buffers(), 0, turn % 2)
            } else {
                self.signals.next_shown()
            };
            let window = links.area.range(offset, room);
            let piece = &own[start.min(own.len())..own.len().min(start + room)];
            window.part(0, piece.len()).write(piece);
            self.sync();

            let copies = wanted.iter_mut().filter_map(|part| {
                let pe = members.world_pe(part.member as u32);
                let (source, dest) = part.shown_in(window, start)?;
                Some(Fetch { pe, source, dest })
            });
            fetch(links.endpoints, copies);
        }
        // The next collective may use the receive buffers.
        self.sync();
    }

    /// Combines the memory of the members a word at a time, or an element at a time if that is
    /// larger: each member publishes its own to the others, and reads theirs.
    #[cold]
    fn combine_published(&mut self, memory: SymmetricRange, op: &Combine, kind: ReductionKind) {
        let me = self.me() as usize;
        let members = match kind {
            ReductionKind::AllReduce => 0..self.n() as usize,
            ReductionKind::InclusiveScan => 0..me + 1,
            ReductionKind::ExclusiveScan => 0..me,
        };
        let at_once = op.elem_bytes().max(WORD);
        assert!(at_once <= LARGEST, "elements of {at_once} bytes");

        for offset in (0..memory.nbytes()).step_by(at_once) {
            let own = memory.part(offset, at_once.min(memory.nbytes() - offset));
            let mut words = [0; LARGEST / WORD];
            own.copy_here(range_of(&mut words));
            let published: Vec<Vec<u64>> = words[..at_once / WORD]
                .iter()
                .map(|&word| self.gather(word))
                .collect();

            for (turn, member) in members.clone().enumerate() {
                for (word, of_members) in words.iter_mut().zip(&published) {
                    *word = of_members[member];
                }
                let theirs = range_of(&mut words).part(0, own.nbytes());

                // The memory still has the elements that this member has published. The first
                // operand replaces them.
                if turn == 0 {
                    theirs.copy_here(own);
                } else {
                    op.apply(own, own, theirs);
                }
            }
        }
    }
}

fn range_of(words: &mut [u64; LARGEST / WORD]) -> SymmetricRange {
    private(bytemuck::cast_slice_mut(words))
}
