//! Gather and scatter (extensions): blocks of all members come to a root, or go from it.
#![allow(unsafe_code)]

use crate::coll::collectives::{ElementCount, TeamOrActiveSet};
use crate::coll::entry::{CollectiveEntry, bytes, checked_root};
use crate::coll::executor::{Parts, PlanArrays};
use crate::own_pe::Caller;
use core::ffi::c_int;
use rushmem_collectives::choice::{GatherAlgorithm, ScatterAlgorithm};
use rushmem_collectives::{direct, pairwise};
use rushmem_communication::observers::FollowedMembers;
use rushmem_communication::observers::results::ResultWriters;
use rushmem_pe::memory::range::{SymmetricRange, symmetric};

/// `shmemx_gather`: the elements of member `k` become block `k` of `dest` of member `root`; `dest`
/// of the others is not written.
///
/// # Safety
/// The precondition of all routines, which [the crate](crate#safety) states.
pub unsafe fn gather(
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
    let total = nbytes.saturating_mul(n as usize);
    let dest = symmetric(pe.job(), call, "dest", dest, total);
    let source = symmetric(pe.job(), call, "source", source, nbytes);
    entry.require_same_arrays(dest, source, elements, &[("PE_root", root.into())]);

    if me != root {
        entry.show_arrays(source, SymmetricRange::empty());
        entry.show_followed(FollowedMembers::Below, 0);
    }
    let own_block = dest.part(me as usize * nbytes, nbytes);
    let writers = ResultWriters::AtRoot {
        root,
        in_advance: true,
    };
    entry.check_result(bytes(dest), bytes(own_block), writers);
    entry.require_disjoint(source, dest);

    let arrays = PlanArrays::of(source, dest, Parts::Equal(nbytes));
    match executor.choose(nbytes) {
        GatherAlgorithm::Pairwise => executor.execute(&arrays, pairwise::gather(n, me, root)),
        GatherAlgorithm::Direct => executor.execute(&arrays, direct::gather(n, me, root)),
    }
    0
}

/// `shmemx_scatter`: block `k` of `source` of member `root`, of these elements, is copied to `dest`
/// of member `k`. `source` of the others is not read.
///
/// # Safety
/// The precondition of all routines, which [the crate](crate#safety) states.
pub unsafe fn scatter(
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
    let total = nbytes.saturating_mul(n as usize);
    let dest = symmetric(pe.job(), call, "dest", dest, nbytes);
    let source = symmetric(pe.job(), call, "source", source, total);
    entry.require_same_arrays(dest, source, elements, &[("PE_root", root.into())]);

    entry.show_followed(FollowedMembers::Member, root);
    if me != root {
        entry.show_arrays(SymmetricRange::empty(), dest);
    }
    let writers = ResultWriters::Root {
        root,
        writes_own: true,
    };
    entry.check_result(bytes(dest), bytes(dest), writers);
    entry.require_disjoint(source, dest);

    let arrays = PlanArrays::of(source, dest, Parts::Equal(nbytes));
    match executor.choose(nbytes) {
        ScatterAlgorithm::Pairwise => executor.execute(&arrays, pairwise::scatter(n, me, root)),
        ScatterAlgorithm::Direct => executor.execute(&arrays, direct::scatter(n, me, root)),
    }
    0
}
