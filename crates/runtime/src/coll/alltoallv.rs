//! The all-to-all of blocks whose sizes differ from pair to pair, on teams and, of Cray, on active
//! sets.
//!
//! As in `collectives::alltoall`, a block is put directly at its destination. Before that, the PEs
//! exchange offsets and sizes: in lines, on one node in tables that they publish, or by messages.
//! Each PE accesses only its own arrays of offsets and sizes, so these need not be symmetric.
#![allow(unsafe_code)]

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
use rushmem_pe::memory::range::symmetric;
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
    /// The symmetric array.
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
    let participants = members.find(pe, call);
    let (mut entry, mut executor) = CollectiveEntry::enter(pe, call, &participants);
    entry.require_same(&[]);

    let n = executor.n();
    // SAFETY: the caller promises that `t_offsets` is valid for reads of an entry for each member.
    let offsets = unsafe { read(t_offsets, n) };
    // SAFETY: the caller promises that `blocks.sizes` is valid for reads of an entry for each
    // member.
    let sizes = unsafe { read(blocks.sizes, n) };
    let [target_offsets, received] = exchange(&mut executor, 0, [&offsets, &sizes]);
    if pe.job().settings.checks() {
        require_places_apart(call, &offsets, &received);
    }

    // SAFETY: the caller promises that `blocks.offsets` is valid for reads of an entry for each
    // member.
    unsafe { deliver(&mut executor, blocks, &sizes, target, &target_offsets) };

    if !t_sizes.is_null() {
        for (member, &size) in received.iter().enumerate() {
            // SAFETY: the caller promises that `t_sizes`, which is not null, is valid for writes of
            // an entry for each member.
            unsafe { t_sizes.wrapping_add(member).write(size as usize) };
        }
    }
    0
}

/// Ends the job with an error if blocks of these sizes, which this member receives at these
/// offsets, have a byte in common.
fn require_places_apart(call: Call, offsets: &[u64], sizes: &[u64]) {
    let mut members: Vec<usize> = (0..sizes.len()).filter(|&k| sizes[k] > 0).collect();
    members.sort_unstable_by_key(|&member| offsets[member]);

    for pair in members.windows(2) {
        let [one, next] = [pair[0], pair[1]];
        let end = offsets[one].saturating_add(sizes[one]);
        if end > offsets[next] {
            fail!(
                call,
                "the {} bytes of member {one} would go to byte {} of the destination, and those of member {next} to \
                 byte {}, where they overlap; let the offsets be further apart, or the blocks be smaller",
                sizes[one],
                offsets[one],
                offsets[next]
            );
        }
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
    let participants = members.find(pe, call);
    let (mut entry, mut executor) = CollectiveEntry::enter(pe, call, &participants);
    entry.require_same(&[]);

    let n = executor.n();
    // SAFETY: the caller promises that `blocks.sizes` is valid for reads of an entry for each
    // member.
    let sizes = unsafe { read(blocks.sizes, n) };
    let [received] = exchange(&mut executor, 0, [&sizes]);

    let mut total = 0u64;
    let mut starts = Vec::with_capacity(received.len());
    for size in received {
        starts.push(total);
        total = total.saturating_add(size);
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
    // SAFETY: the caller promises that `blocks.offsets` is valid for reads of an entry for each
    // member.
    unsafe { deliver(&mut executor, blocks, &sizes, target, &target_offsets) };
    total as usize
}

/// Delivers the blocks, of these sizes, at the offsets in `target` that the members have sent.
///
/// # Safety
/// `blocks.offsets` has an entry for each member and is valid for reads.
unsafe fn deliver(
    executor: &mut Executor<'_>,
    blocks: SourceBlocks,
    sizes: &[u64],
    target: TargetBlocks,
    target_offsets: &[u64],
) {
    // SAFETY: by contract, `blocks.offsets` is valid for reads of an entry for each member.
    let source_offsets = unsafe { read(blocks.offsets, executor.n()) };
    let delivery = Delivery {
        source: blocks.source,
        source_offsets: &source_offsets,
        sizes,
        target,
        target_offsets,
    };
    delivery.carry_out(executor);
}

/// Returns a copy of an array of the program.
///
/// # Safety
/// `array` is valid for reads of `n` entries.
unsafe fn read(array: *const usize, n: u32) -> Vec<u64> {
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

/// The blocks that this PE sends, one for each member: where they are here, and where they go.
/// Offsets and sizes are in bytes.
struct Delivery<'a> {
    source: *const u8,
    source_offsets: &'a [u64],
    sizes: &'a [u64],
    target: TargetBlocks,
    target_offsets: &'a [u64],
}

impl Delivery<'_> {
    /// Copies its block to each member.
    fn carry_out(&self, executor: &mut Executor<'_>) {
        let call = executor.collective.call;
        let links = executor.links;
        let members = executor.members();
        let n = executor.n();
        let me = executor.me();

        if executor.facts().one_node() {
            for member in executor.others().chain([me]) {
                self.copy(call, links, member, members.world_pe(member));
            }
            executor.sync();
            return;
        }

        for step in pairwise::all_to_all(n, me) {
            match step {
                Step::Put { peer, .. } => {
                    self.copy(call, links, peer.index, members.world_pe(peer.index));
                    executor.signal(peer);
                }
                Step::Wait { peer } => executor.wait(peer),
                // The plan has no other step than the copy of this member's own block.
                _ => self.copy(call, links, me, links.job.me),
            }
        }
    }

    /// Copies the block for `member`, which is `pe`. Ends the job with an error if it does not fit
    /// the target.
    fn copy(&self, call: Call, Links { job, endpoints, .. }: &Links, member: u32, pe: Pe) {
        let nbytes = self.sizes[member as usize] as usize;
        let offset = self.target_offsets[member as usize] as usize;
        let len = self.target.nbytes;

        let end = offset.checked_add(nbytes);
        if end.is_none_or(|end| end > len) {
            fail!(
                call,
                "argument {} has {len} bytes, but {nbytes} bytes for member {member} would go to byte {offset}; make it \
                 larger, or the offsets smaller",
                call.words("target", "dest")
            );
        }

        let from = self
            .source
            .wrapping_add(self.source_offsets[member as usize] as usize);
        let to = self.target.target.wrapping_add(offset);
        let to = symmetric(job, call, "target", to, nbytes);
        symmetric(job, call, "source", from, nbytes).copy_to(endpoints, pe, to);
    }
}
