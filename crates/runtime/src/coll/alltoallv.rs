//! The all-to-all of blocks whose sizes differ from pair to pair, on teams and, of Cray, on active
//! sets.
//!
//! As in `collectives::alltoall`, a block is put directly at its destination. Before that, the PEs
//! exchange offsets and sizes: in lines, on one node in tables that they publish, or by messages.
//! Each PE accesses only its own arrays of offsets and sizes, so these need not be symmetric.
#![allow(unsafe_code)]

mod places;

use self::places::Places;
use crate::coll::entry::{CollectiveEntry, TeamOrActiveSet};
use crate::coll::executor::Executor;
use crate::coll::private::private;
use crate::message_purpose::MessagePurpose;
use crate::own_pe::Caller;
use core::ffi::c_int;
use rushmem_collectives::choice::AllToAllAlgorithm;
use rushmem_collectives::{LINE_BYTES, Step, pairwise};
use rushmem_communication::links::Links;
use rushmem_communication::net::copy::CopyBetweenPes;
use rushmem_communication::sync::mailbox::{MailboxMessage, message_wait};
use rushmem_communication::sync::team_signals::OngoingCollective;
use rushmem_communication::sync::waits;
use rushmem_pe::call::{Call, fail};
use rushmem_pe::digest::digest;
use rushmem_pe::job::Job;
use rushmem_pe::memory::range::{is_symmetric, place_on_all_pes, symmetric};
use rushmem_transport::Pe;

/// The blocks that the caller sends, one for each member. The arrays of offsets and sizes in bytes
/// have an entry for each member.
#[derive(Clone, Copy, Debug)]
pub struct SourceBlocks {
    /// The symmetric array.
    pub source: *const u8,
    /// The offset in `source` of the block for each member.
    pub offsets: *const usize,
    /// The size of the block for each member.
    pub sizes: *const usize,
}

/// The memory that receives blocks.
#[derive(Clone, Copy, Debug)]
pub struct TargetBlocks {
    /// The symmetric array, the same on all PEs.
    pub target: *mut u8,
    /// The size of the array in bytes, the same on all PEs; `usize::MAX` if it is not known.
    pub nbytes: usize,
}

/// `shmemx_alltoallv` and `shmemx_team_alltoallvmem`: stores the block that member `k` sends to
/// this member at byte `t_offsets[k]` of `target`, and the size of that block in `t_sizes[k]`
/// unless that array is null. Returns 0.
///
/// # Safety
/// Each array has an entry for each member: `t_offsets` and the arrays of `blocks` are valid for
/// reads, `t_sizes` is valid for writes if it is not null.
pub unsafe fn alltoallv(
    caller: impl Caller,
    members: TeamOrActiveSet,
    target: TargetBlocks,
    t_offsets: *const usize,
    t_sizes: *mut usize,
    blocks: SourceBlocks,
) -> c_int {
    let (pe, call) = caller.enter();
    let names = ArgumentNames::of(members);
    let participants = members.find(pe, call);
    let (mut entry, mut executor) = CollectiveEntry::enter(pe, call, &participants);
    require_same_target(&mut entry, pe.job(), names, target);

    let n = executor.n();
    // SAFETY: the caller promises that `t_offsets` is valid for reads of an entry for each member.
    let offsets = unsafe { read(call, names.target_offsets, t_offsets, n) };
    // SAFETY: the caller promises that the arrays of `blocks` are valid for reads of an entry for
    // each member.
    let sent = unsafe { OwnBlocks::read(call, blocks, n) };
    let [target_offsets, received] = exchange(&mut executor, 0, [&offsets, &sent.sizes]);
    let places = Places {
        names,
        sent: &sent,
        target,
        offsets: &offsets,
        received: &received,
    };
    deliver(&mut entry, &mut executor, &places, &target_offsets);

    if !t_sizes.is_null() {
        for (member, &size) in received.iter().enumerate() {
            // SAFETY: the caller promises that `t_sizes`, which is not null, is valid for writes of
            // an entry for each member.
            unsafe { t_sizes.wrapping_add(member).write(size as usize) };
        }
    }
    0
}

/// The names of arguments in the call of the program.
#[derive(Clone, Copy)]
struct ArgumentNames {
    target: &'static str,
    target_offsets: &'static str,
}

impl ArgumentNames {
    /// The forms on active sets are Cray's, and have the names of Cray's manual.
    fn of(members: TeamOrActiveSet) -> ArgumentNames {
        match members {
            TeamOrActiveSet::ActiveSet { .. } => ArgumentNames {
                target: "target",
                target_offsets: "t_offsets",
            },
            TeamOrActiveSet::Team(_) | TeamOrActiveSet::OfRequest(_) => ArgumentNames {
                target: "dest",
                target_offsets: "d_offsets",
            },
        }
    }
}

/// With `SHMEM_CHECK`, ends the job with an error unless all members are in this call with the same
/// target: a member delivers a block at an offset of its own target.
fn require_same_target(
    entry: &mut CollectiveEntry<'_>,
    job: &Job,
    names: ArgumentNames,
    target: TargetBlocks,
) {
    if job.settings.checks() {
        let place = place_on_all_pes(job, target.target).map_or(u64::MAX, |place| place as u64);
        entry.require_same(&[(names.target, place)]);
    }
}

/// `shmemx_alltoallv_packed`: stores the blocks for this member in `target`, one behind the other
/// in the order of the members. Returns the size of all of them in bytes. Ends the job with an
/// error if that is more than `target_len`.
///
/// # Safety
/// The arrays of `blocks` have an entry for each member and are valid for reads.
pub unsafe fn alltoallv_packed(
    caller: impl Caller,
    members: TeamOrActiveSet,
    target: TargetBlocks,
    target_len: usize,
    blocks: SourceBlocks,
) -> usize {
    let (pe, call) = caller.enter();
    let names = ArgumentNames::of(members);
    let participants = members.find(pe, call);
    let (mut entry, mut executor) = CollectiveEntry::enter(pe, call, &participants);
    require_same_target(&mut entry, pe.job(), names, target);

    // SAFETY: the caller promises that the arrays of `blocks` are valid for reads of an entry for
    // each member.
    let sent = unsafe { OwnBlocks::read(call, blocks, executor.n()) };
    let [received] = exchange(&mut executor, 0, [&sent.sizes]);

    let mut total = 0u64;
    let mut starts = Vec::with_capacity(received.len());
    for size in &received {
        starts.push(total);
        total = total.saturating_add(*size);
    }
    if total > target_len as u64 {
        fail!(
            call,
            "{} {target_len}, but {total} bytes are sent to this PE; {}",
            call.words("argument target_len is", "the bytes of argument dest are"),
            call.words(
                "make target larger, or s_sizes smaller",
                "make it larger, or the counts smaller"
            )
        );
    }

    let [target_offsets] = exchange(&mut executor, 1, [&starts]);
    let places = Places {
        names,
        sent: &sent,
        target,
        offsets: &starts,
        received: &received,
    };
    deliver(&mut entry, &mut executor, &places, &target_offsets);
    total as usize
}

/// The blocks that this PE sends, one for each member. Offsets and sizes are in bytes.
struct OwnBlocks {
    source: *const u8,
    offsets: Vec<u64>,
    sizes: Vec<u64>,
}

impl OwnBlocks {
    /// Reads the arrays of the program.
    ///
    /// # Safety
    /// The arrays have an entry for each of the `n` members and are valid for reads.
    unsafe fn read(call: Call, blocks: SourceBlocks, n: u32) -> OwnBlocks {
        OwnBlocks {
            source: blocks.source,
            // SAFETY: `blocks.offsets` is valid for reads of `n` entries, by contract.
            offsets: unsafe { read(call, "s_offsets", blocks.offsets, n) },
            // SAFETY: `blocks.sizes` is valid for reads of `n` entries, by contract.
            sizes: unsafe { read(call, "s_sizes", blocks.sizes, n) },
        }
    }
}

/// Returns a copy of an array of the program. Ends the job with an error if it is null.
///
/// # Safety
/// `array` is valid for reads of `n` entries unless it is null.
unsafe fn read(call: Call, argument: &str, array: *const usize, n: u32) -> Vec<u64> {
    if array.is_null() {
        fail!(
            call,
            "argument {argument} is null; pass an array with an entry for each member"
        );
    }
    // SAFETY: `i` is below `n`, and by contract `array` is valid for reads of `n` entries.
    (0..n as usize)
        .map(|i| unsafe { array.wrapping_add(i).read() } as u64)
        .collect()
}

/// The number of columns of entries that a call exchanges.
const COLUMNS: usize = 2;

/// Sends each member its entry of each column. Returns the columns of entries that the members have
/// sent to this one. `first` is the number of the first of these columns in the call.
fn exchange<const W: usize>(
    executor: &mut Executor<'_>,
    first: usize,
    columns: [&[u64]; W],
) -> [Vec<u64>; W] {
    let facts = executor.facts();
    let algorithm: AllToAllAlgorithm = executor.choose(W * size_of::<u64>());
    if algorithm == AllToAllAlgorithm::Lines {
        return exchange_in_lines(executor, columns);
    }
    let table_bytes = COLUMNS * size_of_val(columns[0]);
    let has_room = executor.n() > 1 && table_bytes <= facts.receive_buffer_bytes;
    if facts.one_node() && has_room {
        return exchange_published(executor, first, columns);
    }

    let links = executor.links;
    let members = executor.members();
    let me = executor.me();
    let team = executor.collective.team.number();
    let tag = digest(&[MessagePurpose::Alltoallv.word(), team]);

    let wait = message_wait(executor.collective.call);
    for (member, pe) in members.world_pes().enumerate() {
        if member == me as usize {
            continue;
        }
        let mut message = MailboxMessage::default();
        for (word, column) in message.iter_mut().zip(columns) {
            *word = column[member];
        }
        links.send_message(&wait, pe, tag, &message);
    }

    let mut received = columns.map(<[u64]>::to_vec);
    for (member, pe) in members.world_pes().enumerate() {
        // The entries that this member has for itself stay where they are.
        if member == me as usize {
            continue;
        }
        let mut message = None;
        waits::until_rung(
            links,
            &[],
            || executor.collective.describe(Some(pe)),
            || {
                message = links.take_message(pe, tag);
                message.is_some()
            },
        );
        for (column, word) in received.iter_mut().zip(message.into_iter().flatten()) {
            column[member] = word;
        }
    }
    received
}

/// Exchanges entries of members on one node: each member publishes its columns, syncs, and reads
/// the entries for it. No other member reads this memory outside such a call, and only an exclusive
/// scan of all PEs writes to it, when this PE has entered that scan. A call publishes a column
/// once, and no member leaves the call before the others have read it.
fn exchange_published<const W: usize>(
    executor: &mut Executor<'_>,
    first: usize,
    columns: [&[u64]; W],
) -> [Vec<u64>; W] {
    let internal = &executor.links.area;
    let members = executor.members();
    let me = executor.me() as usize;
    let table = internal
        .areas()
        .packed(executor.collective.team.receive_buffers());
    let place = |column: usize| table + (first + column) * members.n as usize * size_of::<u64>();

    for (number, column) in columns.into_iter().enumerate() {
        internal.write_own(place(number), column);
    }
    executor.sync();

    let entry = me * size_of::<u64>();
    std::array::from_fn(|column| internal.words_of(members.world_pes(), place(column) + entry))
}

/// Exchanges entries in the cache lines of the flags that announce them.
fn exchange_in_lines<const W: usize>(
    executor: &mut Executor<'_>,
    columns: [&[u64]; W],
) -> [Vec<u64>; W] {
    const { assert!(W * size_of::<u64>() <= LINE_BYTES) };
    let n = executor.n();
    let me = executor.me();

    // The entries for a member are adjacent.
    let mut sent: Vec<u64> = (0..n as usize)
        .flat_map(|member| columns.map(|column| column[member]))
        .collect();
    let mut received = vec![0; sent.len()];
    let plan = pairwise::all_to_all_in_lines(n, me);
    executor.exchange_in_lines(
        private(bytemuck::cast_slice_mut(&mut sent)),
        private(bytemuck::cast_slice_mut(&mut received)),
        W * size_of::<u64>(),
        plan,
    );

    std::array::from_fn(|column| received.iter().skip(column).step_by(W).copied().collect())
}

/// Copies the blocks of this PE to the members, at the offsets in the target that these have sent.
fn deliver(
    entry: &mut CollectiveEntry<'_>,
    executor: &mut Executor<'_>,
    places: &Places<'_>,
    target_offsets: &[u64],
) {
    let call = executor.collective.call;
    let links = executor.links;
    if links.job.settings.checks() {
        places.check(entry, executor);
    }

    let members = executor.members();
    let n = executor.n();
    let me = executor.me();
    let delivery = Delivery {
        places,
        target_offsets,
    };

    if executor.facts().one_node() {
        for member in executor.others().chain([me]) {
            delivery.copy(call, links, member, members.world_pe(member));
        }
        executor.sync();
        return;
    }

    for step in pairwise::all_to_all(n, me) {
        match step {
            Step::Put { peer, .. } => {
                delivery.copy(call, links, peer.index, members.world_pe(peer.index));
                executor.signal(peer);
            }
            Step::Wait { peer } => executor.wait(peer),
            // The plan has no other step than the copy of this member's own block.
            _ => delivery.copy(call, links, me, links.job.me),
        }
    }
}

/// The blocks that this PE sends, and where they go.
struct Delivery<'a> {
    places: &'a Places<'a>,
    target_offsets: &'a [u64],
}

impl Delivery<'_> {
    /// Copies the block for `member`, which is `pe`. Ends the job with an error if it does not fit
    /// the target.
    fn copy(&self, call: Call, Links { job, endpoints, .. }: &Links, member: u32, pe: Pe) {
        let Places {
            names,
            sent,
            target:
                TargetBlocks {
                    target,
                    nbytes: len,
                },
            ..
        } = *self.places;
        let nbytes = sent.sizes[member as usize] as usize;
        let offset = self.target_offsets[member as usize] as usize;

        let end = offset.checked_add(nbytes);
        if end.is_none_or(|end| end > len) {
            fail!(
                call,
                "argument {} has {len} bytes, but {nbytes} bytes for member {member} would go to byte {offset}; make it \
                 larger, or the offsets smaller",
                names.target
            );
        }

        // The member has sent the offset, so a message must not say that this PE passes it.
        let to = target.wrapping_add(offset);
        if !is_symmetric(job, to, nbytes) {
            fail!(
                call,
                "the {nbytes} bytes for member {member} would go to byte {offset} of argument {}, where no symmetric \
                 memory of that size is; check the offset that the member passes, and the size that this PE passes",
                names.target
            );
        }

        let from = sent
            .source
            .wrapping_add(sent.offsets[member as usize] as usize);
        let to = symmetric(job, call, names.target, to, nbytes);
        symmetric(job, call, "source", from, nbytes).copy_to(endpoints, pe, to);
    }
}
