//! Non-blocking collectives (an extension): a call queues the collective as a request (`requests`),
//! and a thread of the library carries it out by the routine of the blocking collective.
#![allow(unsafe_code)]

use crate::coll::alltoallv::{SourceBlocks, TargetBlocks, alltoallv, alltoallv_packed};
use crate::coll::collectives;
use crate::coll::collectives::{ElementCount, TeamOrActiveSet};
use crate::coll::combine::Combine;
use crate::coll::entry::checked_root;
use crate::coll::gather;
use crate::coll::reductions;
use crate::own_pe::Caller;
use core::ffi::c_int;
use rushmem_communication::observers::FollowedMembers;
use rushmem_pe::job::handle::{RequestHandle, TeamHandle};
use rushmem_pe::job::permission::check;
use rushmem_pe::memory::range::symmetric;

/// A non-blocking collective, and its arguments besides the two arrays.
pub enum NonblockingCollective {
    /// `shmemx_team_sync_nb`, which has no arrays.
    Sync,
    /// `shmemx_broadcast_nb`
    Broadcast {
        /// `PE_root`
        root: c_int,
    },
    /// `shmemx_collect_nb`; the result is the number of bytes of all members.
    Collect {
        /// The size of `dest` in bytes.
        max_bytes: usize,
    },
    /// `shmemx_fcollect_nb`
    Fcollect,
    /// `shmemx_alltoall_nb`
    Alltoall,
    /// `shmemx_team_alltoallvmem_nb`, whose arrays of offsets and sizes have an entry for each
    /// member, and are used until the request is done.
    Alltoallv {
        /// The offset in `dest` of the block of each member.
        d_offsets: *const usize,
        /// Where the sizes of these blocks are stored; null if nowhere.
        d_sizes: *mut usize,
        /// The offset in `source` of the block for each member.
        s_offsets: *const usize,
        /// The size of the block for each member.
        s_sizes: *const usize,
    },
    /// An all-to-all of adjacent blocks, as by `alltoallv_packed`; the result is the number of
    /// bytes that this member receives.
    AlltoallvPacked {
        /// The size of `dest` in bytes.
        max_bytes: usize,
        /// The offset in `source` of the block for each member.
        offsets: Box<[usize]>,
        /// The size of the block for each member.
        sizes: Box<[usize]>,
    },
    /// `shmemx_gather_nb`
    Gather {
        /// `PE_root`
        root: c_int,
    },
    /// `shmemx_scatter_nb`
    Scatter {
        /// `PE_root`
        root: c_int,
    },
    /// `shmemx_*_reduce_nb`
    Reduce(&'static Combine),
    /// `shmemx_*_reduce_scatter_nb`; the number of elements is that of a block.
    ReduceScatter(&'static Combine),
    /// `shmemx_*_reduce_to_nb`
    ReduceTo {
        /// The operator.
        op: &'static Combine,
        /// `PE_root`
        root: c_int,
    },
    /// `shmemx_sum_inscan_nb`
    Inscan(&'static Combine),
    /// `shmemx_sum_exscan_nb`
    Exscan(&'static Combine),
}

impl NonblockingCollective {
    fn root(&self) -> Option<c_int> {
        use NonblockingCollective as Is;
        match *self {
            Is::Broadcast { root }
            | Is::Gather { root }
            | Is::Scatter { root }
            | Is::ReduceTo { root, .. } => Some(root),
            _ => None,
        }
    }

    /// Returns the members on whose arrays the result on member `me` depends, if not on those of
    /// all.
    fn followed(&self, me: u32) -> Option<(FollowedMembers, u32)> {
        use NonblockingCollective as Is;
        match *self {
            Is::Broadcast { root } | Is::Scatter { root } => {
                Some((FollowedMembers::Member, root as u32))
            }
            Is::Gather { root } | Is::ReduceTo { root, .. } if root as u32 != me => {
                Some((FollowedMembers::Below, 0))
            }
            Is::Inscan(_) => Some((FollowedMembers::Below, me + 1)),
            Is::Exscan(_) => Some((FollowedMembers::Below, me)),
            _ => None,
        }
    }
}

/// A collective and its arrays.
struct Work {
    collective: NonblockingCollective,
    dest: *mut u8,
    source: *const u8,
    elements: ElementCount,
}

// SAFETY: the pointers are to symmetric memory, and to arrays that the program leaves to the
// library until the request is done. Every thread of the PE may access them.
unsafe impl Send for Work {}

/// Starts a collective on a team. `elements` are those of each array if there is an operator,
/// otherwise those of the broadcast vector or of a member's block.
///
/// # Safety
/// The precondition of all routines, which [the crate](crate#safety) states, until the
/// request is done.
pub unsafe fn start(
    caller: impl Caller,
    handle: TeamHandle,
    collective: NonblockingCollective,
    dest: *mut u8,
    source: *const u8,
    elements: ElementCount,
) -> RequestHandle {
    let (pe, call) = caller.enter();
    let team = pe.teams.find(call, "team", handle);
    check(call, pe.job());

    // The thread of the library checks all arguments. The root and the beginnings of the arrays are
    // also checked here, since only a message of the calling thread can name the place of the call.
    // How many bytes a collect stores in `dest` is not known yet.
    if let Some(root) = collective.root() {
        checked_root(call, root, team.members().n);
    }
    let nbytes = elements.nbytes();
    let is_known = !matches!(collective, NonblockingCollective::Collect { .. });
    symmetric(
        pe.job(),
        call,
        "dest",
        dest,
        if is_known { nbytes } else { 0 },
    );
    symmetric(pe.job(), call, "source", source, nbytes);

    let vectors = [dest.addr(), source.addr()];
    let follows = collective.followed(team.me().0);
    let work = Work {
        collective,
        dest,
        source,
        elements,
    };
    // By the caller, not the PE: the collectives are compiled once for all exported calls.
    let run = Box::new(move || work.run(caller, handle));
    pe.requests.queue(call, team, vectors, follows, run)
}

impl Work {
    /// Carries out the collective. Returns the value of the blocking routine.
    fn run(self, caller: impl Caller, team: TeamHandle) -> usize {
        use NonblockingCollective as Is;
        let Work {
            dest,
            source,
            elements,
            ..
        } = self;
        let nelems = elements.nelems;
        let team = TeamOrActiveSet::OfRequest(team);

        let status = match self.collective {
            Is::Sync => collectives::sync(caller, team),
            Is::Broadcast { root } => {
                // SAFETY: the caller of `start` promises the precondition of all routines.
                unsafe { collectives::broadcast(caller, team, dest, source, elements, root) }
            }
            Is::Collect { max_bytes } => {
                // SAFETY: the caller of `start` promises the precondition of all routines.
                return unsafe {
                    collectives::collect_within(caller, team, dest, source, elements, max_bytes)
                };
            }
            // SAFETY: the caller of `start` promises the precondition of all routines.
            Is::Fcollect => unsafe { collectives::fcollect(caller, team, dest, source, elements) },
            // SAFETY: the caller of `start` promises the precondition of all routines.
            Is::Alltoall => unsafe { collectives::alltoall(caller, team, dest, source, elements) },
            Is::Alltoallv {
                d_offsets,
                d_sizes,
                s_offsets,
                s_sizes,
            } => {
                let target = TargetBlocks {
                    target: dest,
                    nbytes: usize::MAX,
                };
                let blocks = SourceBlocks {
                    source,
                    offsets: s_offsets,
                    sizes: s_sizes,
                };
                // SAFETY: the caller of `start` promises that the arrays have an entry for each
                // member and are valid until the request is done.
                unsafe { alltoallv(caller, team, target, d_offsets, d_sizes, blocks) }
            }
            Is::AlltoallvPacked {
                max_bytes,
                offsets,
                sizes,
            } => {
                let target = TargetBlocks {
                    target: dest,
                    nbytes: max_bytes,
                };
                let blocks = SourceBlocks {
                    source,
                    offsets: offsets.as_ptr(),
                    sizes: sizes.as_ptr(),
                };
                // SAFETY: the arrays have an entry for each member, as the caller of `start`
                // promises, and are here until the end of the call.
                return unsafe { alltoallv_packed(caller, team, target, max_bytes, blocks) };
            }
            // SAFETY: the caller of `start` promises the precondition of all routines.
            Is::Gather { root } => unsafe {
                gather::gather(caller, team, dest, source, elements, root)
            },
            // SAFETY: the caller of `start` promises the precondition of all routines.
            Is::Scatter { root } => unsafe {
                gather::scatter(caller, team, dest, source, elements, root)
            },
            // SAFETY: the caller of `start` promises the precondition of all routines.
            Is::Reduce(op) => unsafe { reductions::reduce(caller, team, dest, source, nelems, op) },
            // SAFETY: the caller of `start` promises the precondition of all routines.
            Is::ReduceScatter(op) => unsafe {
                reductions::reduce_scatter(caller, team, dest, source, nelems, op)
            },
            // SAFETY: the caller of `start` promises the precondition of all routines.
            Is::ReduceTo { op, root } => unsafe {
                reductions::reduce_to(caller, team, dest, source, nelems, op, root)
            },
            // SAFETY: the caller of `start` promises the precondition of all routines.
            Is::Inscan(op) => unsafe { reductions::inscan(caller, team, dest, source, nelems, op) },
            // SAFETY: the caller of `start` promises the precondition of all routines.
            Is::Exscan(op) => unsafe { reductions::exscan(caller, team, dest, source, nelems, op) },
        };
        status as usize
    }
}
