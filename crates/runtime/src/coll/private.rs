//! Collectives on memory of the caller's own, for languages whose functions return values: C's have
//! symmetric arrays.
//!
//! Peers neither read nor write this memory. What a member gives them passes through receive
//! buffers, in pieces, by plans that move nothing else. Where threads are in several collectives at
//! once, receive buffers cannot be shared; then members show each other a few bytes at a time.
//! `collectives` has better plans for long vectors, which are symmetric.
#![allow(unsafe_code)]

use crate::call::{Call, fail};
use crate::coll::combine::Combine;
use crate::coll::entry::CollectiveEntry;
use crate::coll::executor::{Executor, ReceiveBuffers, Vectors};
use crate::job::handle::TeamHandle;
use crate::memory::areas::SHORT;
use crate::memory::range::SymmetricRange;
use crate::teams::registry;
use core::mem::MaybeUninit;
use rushmem_collectives::central;
use rushmem_collectives::choice::AllReduceAlgorithm;

/// Bytes of the largest element of an operator: a complex number of two words.
const LARGEST: usize = 16;
const WORD: usize = size_of::<u64>();

/// Bytes combined as bits: how a broadcast is a reduction, to which the root alone gives anything.
static OR: Combine = Combine::or::<u8>();

/// The kind of a reduction of one element of each member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReductionKind {
    /// Over all members.
    AllReduce,
    /// Over the members up to and including this one.
    InclusiveScan,
    /// Over the members before this one; for the first one the result is zero bytes.
    ExclusiveScan,
}

/// Combines the elements that are in `memory` of all members, and leaves each one's result there.
pub fn combine(
    call: Call,
    team: TeamHandle,
    memory: &mut [u8],
    op: &'static Combine,
    kind: ReductionKind,
) {
    let team = registry::find(call, "team", team);
    let (mut entry, mut executor) = CollectiveEntry::new(call, &team);
    entry.agree(&[("bytes", memory.len() as u64), ("over", kind as u64)]);
    let is_first = executor.me() == 0;
    executor.combine_private(private(memory), op, kind);
    if is_first && kind == ReductionKind::ExclusiveScan {
        memory.fill(0);
    }
}

/// Broadcasts `memory` of member `root` to that of all members.
pub fn broadcast(call: Call, team: TeamHandle, memory: &mut [u8], root: u32) {
    let team = registry::find(call, "team", team);
    let (mut entry, mut executor) = CollectiveEntry::new(call, &team);
    let (n, me) = (executor.n(), executor.me());
    if root >= n {
        fail!(call, "argument root is {root}, but the members are numbered 0 to {}", n - 1);
    }
    entry.agree(&[("bytes", memory.len() as u64), ("root", u64::from(root))]);
    if me != root {
        memory.fill(0);
    }
    executor.combine_private(private(memory), &OR, ReductionKind::AllReduce);
}

fn private(memory: &mut [u8]) -> SymmetricRange {
    let memory: *mut [u8] = memory;
    // SAFETY: the same bytes, borrowed exclusively as before; a range is bytes with values.
    SymmetricRange::of_private(unsafe { &mut *(memory as *mut [MaybeUninit<u8>]) })
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
        let vectors = Vectors { source: memory, dest: memory, op };
        match kind {
            _ if !self.facts().has_receive_buffers() => self.combine_shown(memory, op, kind),
            ReductionKind::AllReduce => self.reduce_private(vectors),
            ReductionKind::InclusiveScan | ReductionKind::ExclusiveScan => {
                self.scan_by_doubling(vectors, kind == ReductionKind::ExclusiveScan)
            }
        }
    }

    fn reduce_private(&mut self, vectors: Vectors) {
        match self.choose(vectors.nbytes()) {
            AllReduceAlgorithm::Central => {
                self.run_pieces(vectors, ReceiveBuffers::Shared, |n, _| central::all_reduce(n));
            }
            AllReduceAlgorithm::TwoLevel if vectors.nbytes() <= SHORT => {
                self.all_reduce_over_nodes(vectors);
            }
            _ => self.all_reduce_by_doubling(vectors),
        }
    }

    /// Combines a word or an element at a time, which the members show each other.
    #[cold]
    fn combine_shown(&mut self, memory: SymmetricRange, op: &Combine, kind: ReductionKind) {
        let me = self.me() as usize;
        let members = match kind {
            ReductionKind::AllReduce => 0..self.n() as usize,
            ReductionKind::InclusiveScan => 0..me + 1,
            ReductionKind::ExclusiveScan => 0..me,
        };
        let at_once = op.elem_bytes().max(WORD);
        assert!(at_once <= LARGEST, "elements of {at_once} bytes");
        for at in (0..memory.nbytes()).step_by(at_once) {
            let own = memory.part(at, at_once.min(memory.nbytes() - at));
            let mut words = [0; LARGEST / WORD];
            own.copy_here(of_words(&mut words));
            let shown = words[..at_once / WORD].iter().map(|&word| self.gather(word));
            let shown: Vec<Vec<u64>> = shown.collect();
            for (turn, member) in members.clone().enumerate() {
                shown.iter().zip(&mut words).for_each(|(shown, word)| *word = shown[member]);
                let theirs = of_words(&mut words).part(0, own.nbytes());
                match turn {
                    0 => theirs.copy_here(own),
                    _ => op.apply(own, own, theirs),
                }
            }
        }
    }
}

fn of_words(words: &mut [u64; LARGEST / WORD]) -> SymmetricRange {
    private(bytemuck::cast_slice_mut(words))
}
