//! Reductions and scans (OpenSHMEM 1.6, §9.10.9 and §9.10.10), and reductions whose result goes to
//! one member or is divided among them (extensions). By the choice of the algorithm, they use
//! receive buffers, piece by piece, or read and write the arrays of the program directly.
#![allow(unsafe_code)]

use crate::coll::collectives::{ElementCount, TeamOrActiveSet};
use crate::coll::combine::Combine;
use crate::coll::direct::combine;
use crate::coll::entry::{CollectiveEntry, bytes, checked_root};
use crate::coll::executor::{Executor, Parts, PlanArrays, ReceiveBuffers, Vectors, vector_parts};
use crate::own_pe::Caller;
use core::ffi::c_int;
use rushmem_collectives::choice::{
    AllReduceAlgorithm, AllToAllAlgorithm, ReduceScatterAlgorithm, ReduceToAlgorithm, ScanAlgorithm,
};
use rushmem_collectives::{
    Step, binomial, central, direct, pairwise, rabenseifner, recursive_doubling, ring, two_level,
};
use rushmem_communication::net::copy::CopyBetweenPes;
use rushmem_communication::observers::FollowedMembers;
use rushmem_communication::observers::results::ResultWriters;
use rushmem_pe::memory::areas::SHORT;
use rushmem_pe::memory::range::{SymmetricRange, symmetric};

/// `shmem_*_reduce` and `shmem_*_to_all` (§9.10.9): combines the vectors of all members element by
/// element; all members get the result.
///
/// # Safety
/// The precondition of all routines, which [the crate](crate#safety) states.
pub unsafe fn reduce(
    caller: impl Caller,
    members: TeamOrActiveSet,
    dest: *mut u8,
    source: *const u8,
    nelems: usize,
    op: &'static Combine,
) -> c_int {
    let (pe, call) = caller.enter();
    let participants = members.find(pe, call);
    let (mut entry, mut executor) = CollectiveEntry::enter(pe, call, &participants);
    let vectors = entry.checked_vectors(dest, source, nelems, op, ResultWriters::WithMember, &[]);
    executor.all_reduce(vectors);
    0
}

/// `shmemx_*_reduce_to`: as [`reduce`], but only member `root` gets the result; `dest` of the
/// others is not written.
///
/// # Safety
/// The precondition of all routines, which [the crate](crate#safety) states.
pub unsafe fn reduce_to(
    caller: impl Caller,
    members: TeamOrActiveSet,
    dest: *mut u8,
    source: *const u8,
    nelems: usize,
    op: &'static Combine,
    root: c_int,
) -> c_int {
    let (pe, call) = caller.enter();
    let participants = members.find(pe, call);
    let (mut entry, mut executor) = CollectiveEntry::enter(pe, call, &participants);
    let root = checked_root(call, root, executor.n());

    let writers = ResultWriters::AtRoot {
        root,
        in_advance: false,
    };
    let more = [("PE_root", root.into())];
    let vectors = entry.checked_vectors(dest, source, nelems, op, writers, &more);
    if executor.me() != root {
        entry.show_arrays(vectors.source, SymmetricRange::empty());
        entry.show_followed(FollowedMembers::Below, 0);
    }

    executor.reduce_to(vectors, root);
    0
}

/// `shmemx_*_reduce_scatter`: combines block `k` of the sources of all members element by element;
/// member `k` gets the result, of `nelems` elements.
///
/// # Safety
/// The precondition of all routines, which [the crate](crate#safety) states.
pub unsafe fn reduce_scatter(
    caller: impl Caller,
    members: TeamOrActiveSet,
    dest: *mut u8,
    source: *const u8,
    nelems: usize,
    op: &'static Combine,
) -> c_int {
    let (pe, call) = caller.enter();
    let participants = members.find(pe, call);
    let (mut entry, mut executor) = CollectiveEntry::enter(pe, call, &participants);

    let block = ElementCount {
        nelems,
        elem_bytes: op.elem_bytes(),
    };
    let total = block.nbytes().saturating_mul(executor.n() as usize);
    let dest = symmetric(pe.job(), call, "dest", dest, block.nbytes());
    let source = symmetric(pe.job(), call, "source", source, total);
    entry.if_observed(move |entry| {
        entry.require_same_arrays(dest, source, block, &[]);
        entry.check_result(bytes(dest), bytes(dest), ResultWriters::WithMember);
        entry.require_disjoint(source, dest);
    });

    executor.reduce_scatter(source, dest, op);
    0
}

/// `shmem_*_sum_inscan` (§9.10.10): combines the vectors of the members up to and including this
/// one.
///
/// # Safety
/// The precondition of all routines, which [the crate](crate#safety) states.
pub unsafe fn inscan(
    caller: impl Caller,
    members: TeamOrActiveSet,
    dest: *mut u8,
    source: *const u8,
    nelems: usize,
    op: &'static Combine,
) -> c_int {
    let (pe, call) = caller.enter();
    let participants = members.find(pe, call);
    let (mut entry, mut executor) = CollectiveEntry::enter(pe, call, &participants);
    let vectors = entry.checked_vectors(dest, source, nelems, op, ResultWriters::WithMember, &[]);
    entry.show_followed(FollowedMembers::Below, executor.me() + 1);
    executor.scan(vectors, false);
    0
}

/// `shmem_*_sum_exscan` (§9.10.10): combines the vectors of the members before this one. The first
/// member gets the identity of the operator, for a sum zeros.
///
/// # Safety
/// The precondition of all routines, which [the crate](crate#safety) states.
pub unsafe fn exscan(
    caller: impl Caller,
    members: TeamOrActiveSet,
    dest: *mut u8,
    source: *const u8,
    nelems: usize,
    op: &'static Combine,
) -> c_int {
    let (pe, call) = caller.enter();
    let participants = members.find(pe, call);
    let (mut entry, mut executor) = CollectiveEntry::enter(pe, call, &participants);
    let vectors = entry.checked_vectors(dest, source, nelems, op, ResultWriters::Below, &[]);
    entry.show_followed(FollowedMembers::Below, executor.me());
    executor.scan(vectors, true);

    // The plan leaves the vector of the first member unspecified.
    if executor.me() == 0 {
        op.fill_with_identity(vectors.dest);
    }
    0
}

/// Combines the blocks of `n` members, which lie one after the other in `received`, into `dest`.
fn combine_received(n: u32, received: SymmetricRange, dest: SymmetricRange, op: &'static Combine) {
    let nbytes = dest.nbytes();
    let block = |member| received.part(member as usize * nbytes, nbytes);
    combine(n, nbytes, op, Some(dest), block, |_, _| ());
}

impl Executor<'_> {
    /// Combines the vectors of all members element by element. All members get the result.
    pub(crate) fn all_reduce(&mut self, vectors: Vectors) {
        let n = self.n();
        let me = self.me();
        let parts = vector_parts(vectors.nbytes());

        match self.choose(vectors.nbytes()) {
            AllReduceAlgorithm::Direct => {
                self.run_vector(vectors, direct::all_reduce(n, me, parts, self.choose(0)));
            }
            AllReduceAlgorithm::Rabenseifner => {
                self.run_vector(vectors, rabenseifner::all_reduce(n, me, parts));
            }
            AllReduceAlgorithm::Ring => self.run_vector(vectors, ring::all_reduce(n, me, parts)),
            AllReduceAlgorithm::Central => self.run_vector(vectors, central::all_reduce(n, parts)),
            AllReduceAlgorithm::RecursiveDoubling => self.all_reduce_by_doubling(vectors),
            AllReduceAlgorithm::TwoLevel => self.all_reduce_over_nodes(vectors),
        }
    }

    /// All-reduce by recursive doubling through receive buffers.
    pub(crate) fn all_reduce_by_doubling(&mut self, vectors: Vectors) {
        let receive_buffers = if vectors.nbytes() <= SHORT {
            ReceiveBuffers::BesideFlags
        } else {
            self.receive_buffers()
        };

        if receive_buffers == ReceiveBuffers::Shared {
            let entry = recursive_doubling::entry(self.n(), self.me());
            self.execute(&PlanArrays::none(), entry);
        }
        self.run_pieces(vectors, receive_buffers, recursive_doubling::all_reduce);
    }

    /// Combines the vectors of all members element by element. Member `root` gets the result.
    fn reduce_to(&mut self, vectors: Vectors, root: u32) {
        let n = self.n();
        let me = self.me();
        let parts = vector_parts(vectors.nbytes());

        match self.choose(vectors.nbytes()) {
            ReduceToAlgorithm::Direct => {
                let plan = direct::reduce_to(n, me, root, parts, self.choose(0));
                self.run_vector(vectors, plan);
            }
            ReduceToAlgorithm::Central => {
                self.run_vector(vectors, central::reduce_to(n, root, parts));
            }
            ReduceToAlgorithm::Gather => self.combine_gathered(vectors, root),
            algorithm if me == root => self.reduce_in_receive_buffers(algorithm, vectors, root),
            algorithm => {
                // Partial results must not come to `dest` of other members.
                vectors.source.with_copy(|partial| {
                    let partial = Vectors {
                        source: partial,
                        dest: partial,
                        ..vectors
                    };
                    self.reduce_in_receive_buffers(algorithm, partial, root);
                });
            }
        }
    }

    /// A reduction to a root through receive buffers. An algorithm that needs symmetric arrays is
    /// replaced by the tree.
    pub(in crate::coll) fn reduce_in_receive_buffers(
        &mut self,
        algorithm: ReduceToAlgorithm,
        vectors: Vectors,
        root: u32,
    ) {
        match algorithm {
            ReduceToAlgorithm::RecursiveDoubling => self.all_reduce_by_doubling(vectors),
            ReduceToAlgorithm::Gather => self.combine_gathered(vectors, root),
            _ => self.run_pieces(vectors, ReceiveBuffers::Shared, |n, me| {
                binomial::reduce(n, me, root)
            }),
        }
    }

    /// Stores the vector of each member in a receive buffer of member `root`, which combines them
    /// into its `dest` after a sync.
    fn combine_gathered(&mut self, vectors: Vectors, root: u32) {
        let Vectors { source, dest, op } = vectors;
        let nbytes = dest.nbytes();
        let n = self.n();
        let me = self.me();

        let received = self.enter_receive_buffer();
        let own = received.part(me as usize * nbytes, nbytes);
        source.copy_to(self.links.endpoints, self.members().world_pe(root), own);
        self.sync();
        if me == root {
            combine_received(n, received, dest, op);
        }
    }

    /// Combines block `k` of the sources of all members, and stores the result in `dest` of member
    /// `k`.
    fn reduce_scatter(
        &mut self,
        source: SymmetricRange,
        dest: SymmetricRange,
        op: &'static Combine,
    ) {
        let nbytes = dest.nbytes();
        let n = self.n();
        let me = self.me();
        let blocks = PlanArrays {
            combine: Some(op),
            ..PlanArrays::of(source, dest, Parts::Equal(nbytes))
        };

        match self.choose(source.nbytes()) {
            ReduceScatterAlgorithm::AllToAll => self.combine_exchanged(source, dest, op),
            ReduceScatterAlgorithm::Direct => {
                self.execute(&blocks, direct::reduce_scatter(n, me, self.choose(0)));
            }
            ReduceScatterAlgorithm::Central => self.execute(&blocks, central::reduce_scatter(n)),
            ReduceScatterAlgorithm::RecursiveDoubling => source.with_copy(|all| {
                self.all_reduce_by_doubling(Vectors {
                    source: all,
                    dest: all,
                    op,
                });
                all.part(me as usize * nbytes, nbytes).copy_here(dest);
            }),
        }
    }

    /// Sends each member its block of `source`, and combines the blocks that this PE receives into
    /// `dest`.
    fn combine_exchanged(
        &mut self,
        source: SymmetricRange,
        dest: SymmetricRange,
        op: &'static Combine,
    ) {
        let nbytes = dest.nbytes();
        let n = self.n();
        let me = self.me();

        let algorithm: AllToAllAlgorithm = self.choose(nbytes);
        if algorithm == AllToAllAlgorithm::Lines {
            return SymmetricRange::with_scratch(source.nbytes(), |received| {
                let plan = pairwise::all_to_all_in_lines(n, me);
                self.exchange_in_lines(source, received, nbytes, plan);
                combine_received(n, received, dest, op);
            });
        }

        let received = self.enter_receive_buffer();
        let arrays = PlanArrays::of(source, received, Parts::Equal(nbytes));
        if algorithm == AllToAllAlgorithm::Central {
            self.execute(&arrays, central::all_to_all(n, me));
        } else {
            self.execute(&arrays, pairwise::all_to_all(n, me));
        }
        combine_received(n, received, dest, op);
    }

    /// Returns a receive buffer to which the other members may put, in a collective that no member
    /// leaves before all have entered it.
    fn enter_receive_buffer(&mut self) -> SymmetricRange {
        let arrays = self.with_receive_buffers(PlanArrays::none());
        // Another team may still use shared buffers.
        if arrays.receive_buffers == ReceiveBuffers::Shared {
            self.sync();
        }
        self.receive_buffer(&arrays, 0)
    }

    /// Scans vectors element by element: each member gets the result of the members up to itself,
    /// or of those before it if the scan is `exclusive`. After an exclusive scan, the content of
    /// `dest` of the first member is unspecified.
    pub(crate) fn scan(&mut self, vectors: Vectors, exclusive: bool) {
        let n = self.n();
        let parts = vector_parts(vectors.nbytes());

        match self.choose(vectors.nbytes()) {
            ScanAlgorithm::Direct => {
                let plan = direct::scan(n, self.me(), parts, self.choose(0), exclusive);
                self.run_vector(vectors, plan);
            }
            ScanAlgorithm::Central => {
                self.run_vector(vectors, central::scan(n, parts, exclusive));
            }
            ScanAlgorithm::RecursiveDoubling => self.scan_by_doubling(vectors, exclusive),
        }
    }

    /// A scan by recursive doubling through receive buffers.
    pub(crate) fn scan_by_doubling(&mut self, vectors: Vectors, exclusive: bool) {
        let buffers = self.receive_buffers();
        if buffers == ReceiveBuffers::Shared {
            let entry = recursive_doubling::scan_entry(self.n(), self.me());
            self.execute(&PlanArrays::none(), entry);
        }
        if exclusive {
            self.run_pieces(vectors, buffers, recursive_doubling::exclusive_scan);
        } else {
            self.run_pieces(vectors, buffers, recursive_doubling::inclusive_scan);
        }
    }

    /// Carries out a plan that combines parts of vectors directly in the arrays of the program.
    fn run_vector(&mut self, vectors: Vectors, plan: impl Iterator<Item = Step>) {
        let arrays = PlanArrays {
            combine: Some(vectors.op),
            ..PlanArrays::of(vectors.source, vectors.dest, Parts::Vector)
        };
        self.execute(&arrays, plan);
    }

    /// Carries out a plan once for each piece of the vectors that fits a receive buffer. The piece
    /// of `dest` is the accumulator. The two copies of the receive buffers are used in turn.
    pub(crate) fn run_pieces<P: Iterator<Item = Step>>(
        &mut self,
        vectors: Vectors,
        receive_buffers: ReceiveBuffers,
        plan: impl Fn(u32, u32) -> P,
    ) {
        let Vectors { source, dest, op } = vectors;

        // A piece has whole elements.
        let room = match receive_buffers {
            ReceiveBuffers::BesideFlags => SHORT,
            ReceiveBuffers::Shared | ReceiveBuffers::OfJob => self.facts().receive_buffer_bytes,
        };
        let max_bytes = if dest.nbytes() <= room {
            room
        } else {
            room / op.elem_bytes() * op.elem_bytes()
        };

        let mut turn = 0;
        let mut offset = 0;
        while offset < dest.nbytes() {
            let nbytes = max_bytes.min(dest.nbytes() - offset);
            let accumulator = dest.part(offset, nbytes);
            if !dest.starts_with(source) {
                source.part(offset, nbytes).copy_here(accumulator);
            }

            let parity = match receive_buffers {
                ReceiveBuffers::Shared => turn % 2,
                ReceiveBuffers::OfJob => self.next_collective_of_job(),
                ReceiveBuffers::BesideFlags => self.signals.next_short_reduction(),
            };
            let piece = PlanArrays {
                source: SymmetricRange::empty(),
                dest: SymmetricRange::empty(),
                parts: Parts::Whole(nbytes),
                accumulator,
                combine: Some(op),
                receive_buffers,
                parity,
            };
            self.execute(&piece, plan(self.n(), self.me()));

            turn += 1;
            offset += nbytes;
        }
    }

    /// All-reduce by plans of two levels.
    pub(in crate::coll) fn all_reduce_over_nodes(&mut self, vectors: Vectors) {
        let Vectors { source, dest, op } = vectors;
        let levels = self.levels();
        let nbytes = dest.nbytes();
        let whole = PlanArrays {
            accumulator: dest,
            combine: Some(op),
            ..PlanArrays::of(source, dest, Parts::Whole(nbytes))
        };

        if nbytes <= SHORT {
            if !dest.starts_with(source) {
                source.copy_here(dest);
            }
            let arrays = PlanArrays {
                receive_buffers: ReceiveBuffers::BesideFlags,
                ..whole
            };
            self.execute(&arrays, two_level::all_reduce_short(levels));
        } else if nbytes <= self.facts().receive_buffer_bytes {
            let arrays = self.with_receive_buffers(whole);
            let needs_entry = arrays.receive_buffers == ReceiveBuffers::Shared;
            self.execute(&arrays, two_level::all_reduce_piece(levels, needs_entry));
        } else {
            let parts = vector_parts(nbytes);
            let lanes = two_level::lanes(levels, parts);
            let arrays = PlanArrays {
                parts: Parts::Vector,
                ..whole
            };
            self.execute(&arrays, two_level::all_reduce(levels, parts, lanes));
        }
    }
}
