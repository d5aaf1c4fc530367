//! The registered buffers of a PE: memory of the program that is symmetric
//! (`shmemx_buffer_register`).
//!
//! Pages of the program become pages of a block of the heap. A page is in one block at most, and
//! malloc'ed memory shares pages with its neighbors, so a PE keeps runs of pages. If pages of a new
//! buffer are in runs already, these and the new pages become one run in a new block. Each PE has
//! other runs, so it may have a buffer at an offset of its own, which all PEs exchange. All PEs
//! allocate the same blocks, and free one when no PE has a run in it any more. Where a program has
//! unmapped a buffer, the other PEs still put to its block, which is not free before all PEs have
//! unregistered the buffer.
//!
//! This module has the state of a PE, and changes its pages. [`crate::api::buffers`] agrees with
//! the other PEs.
#![allow(unsafe_code)]

mod offsets;
pub(crate) mod refusal;

use offsets::Offsets;
use refusal::Refusal;
use rushmem_communication::observers::races;
use rushmem_communication::sync::lock_turns::LockTurns;
use rushmem_heap::NodeMemory;
use rushmem_heap::pages::fork::{self, NoFork, OwnPages};
use rushmem_heap::pages::{self, PAGE, around};
use rushmem_pe::call::Call;
use rushmem_pe::call::warning::warning;
use rushmem_pe::job::Job;
use rushmem_pe::memory::buffers::Buffer;
use rushmem_pe::memory::images::Images;
use rushmem_pe::memory::{statics, symmetric_location};
use rushmem_system::lock::lock;
use rushmem_system::maps;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, MutexGuard};

/// The registered buffers of a PE.
pub(crate) struct Buffers {
    state: Mutex<BufferState>,
    /// The runs, with the buffers in them, for the handler of forks: also those that a call is
    /// about to make. Locked during no fork: a child would keep the lock of another thread, and
    /// wait for it when it forks itself.
    for_children: Mutex<Vec<OwnPages>>,
    memory: &'static NodeMemory,
}

/// What a PE has registered.
#[derive(Default)]
pub(crate) struct BufferState {
    buffers: Vec<RegisteredBuffer>,
    runs: Vec<Run>,
    /// The blocks with runs of any PE by their offsets in the heap, and the number of PEs that use
    /// them: that have a run there, or have lost a buffer there.
    blocks: BTreeMap<u64, usize>,
    /// The blocks that this PE does not use any more, which the others do not know yet.
    left: Vec<u64>,
    /// Images of buffers that are not registered any more.
    spare: Vec<&'static Images>,
}

/// A buffer that all PEs have registered.
struct RegisteredBuffer {
    /// Its number, the same on all PEs.
    number: usize,
    /// Its bytes here.
    bytes: Range<usize>,
    is_pinned: bool,
    /// The block that the other PEs still put to, if the program has unmapped pages of it here.
    lost_in: Option<u64>,
    /// The offset in the heap of each PE.
    offsets: Offsets,
    /// The images, if the offsets differ.
    images: Option<&'static Images>,
}

/// Pages of the program that are pages of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Run {
    pages: Range<usize>,
    /// The offset in the heap of the first page.
    offset: u64,
    /// The offset in the heap of the block.
    block: u64,
}

/// What a PE must do to register a buffer.
pub(crate) struct Plan {
    bytes: Range<usize>,
    /// The pages of the new run. None if the buffer is inside a run.
    whole: Option<Range<usize>>,
    /// The runs that become parts of it, by ascending addresses.
    merged: Vec<Run>,
}

/// A part of the heap whose contents have moved to another one, on one PE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) from: u64,
    pub(crate) nbytes: u64,
    pub(crate) to: u64,
}

/// What a PE tells the others of a change.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// The offset of the new buffer in the heap of the PE.
    pub(crate) offset: u64,
    pub(crate) moves: Vec<Move>,
    /// The blocks that the PE does not use any more.
    pub(crate) left: Vec<u64>,
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

impl Buffers {
    /// Returns no buffers, of a PE with this memory.
    pub(crate) fn new(memory: &'static NodeMemory) -> Buffers {
        Buffers {
            state: Mutex::default(),
            for_children: Mutex::default(),
            memory,
        }
    }

    /// Locks what is registered, for a call that changes it.
    pub(crate) fn state(&self) -> MutexGuard<'_, BufferState> {
        lock(&self.state)
    }

    /// Returns true if the block at an offset of the heap is one of registered buffers.
    pub(crate) fn have_block(&self, offset: usize) -> bool {
        self.state().blocks.contains_key(&(offset as u64))
    }

    /// With `SHMEM_CHECK`, warns of buffers that the program has unmapped while they were
    /// registered.
    pub(crate) fn check(&self, call: Call, job: &Job) {
        // A call that changes the buffers checks them itself.
        if let Ok(mut state) = self.state.try_lock() {
            state.forget_unmapped(call, job);
        }
    }

    /// Forgets all buffers, in finalize, behind the last barrier. Their pages stay those of the
    /// heap until [`give_back`](Self::give_back): most programs end now, and the pages may be many.
    pub(crate) fn close(&self, job: &Job) {
        let mut state = self.state();
        for buffer in std::mem::take(&mut state.buffers) {
            symmetric_location::forget_buffer(buffer.bytes.start);
            state.spare.extend(buffer.images);
        }
        state.blocks.clear();
        state.left.clear();
        state.publish(job);
    }

    /// Gives the program its pages back that it has registered before the last finalize.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn give_back(&self, job: &Job) -> Result<(), Errno> {
        let mut state = self.state();
        if state.runs.is_empty() {
            return Ok(());
        }
        let no_fork = fork::wait_for_changes();
        let text = maps::read()?;
        let runs = std::mem::take(&mut state.runs);
        let mappings = maps::parse(&text).collect::<Vec<_>>();
        for run in &runs {
            for pages in run.still_shared(job, &mappings) {
                // SAFETY: the pages are mapped, and stores of all threads wait.
                unsafe { pages::make_private(&pages, &(pages.end..pages.end)) }?;
            }
        }
        self.show_children(&state, &no_fork);
        Ok(())
    }

    /// Moves the contents of the pages of a plan to the block at an offset of the heap, and maps
    /// the block in their place. The new buffer is `position` bytes from the start of the block.
    /// Returns what the others must know.
    ///
    /// # Safety
    /// No thread uses the bytes of the new buffer, and no PE uses the buffers in the merged runs.
    /// The block has room for the pages, and nobody uses it.
    ///
    /// # Errors
    /// When the kernel refuses. The pages then are what they were.
    pub(crate) unsafe fn carry_out(
        &'static self,
        job: &Job,
        state: &mut BufferState,
        plan: &Plan,
        block: u64,
        position: u64,
    ) -> Result<Change, Errno> {
        let Some(whole) = &plan.whole else {
            let run = state
                .run_of(plan.bytes.start)
                .expect("the buffer is in a run");
            let offset = run.offset + (plan.bytes.start - run.pages.start) as u64;
            return Ok(Change {
                offset,
                ..state.change()
            });
        };

        let offset = block + position - (plan.bytes.start - whole.start) as u64;
        let run = Run {
            pages: whole.clone(),
            offset,
            block,
        };
        let no_fork = fork::wait_for_changes();
        let mut with_new = state.runs.clone();
        with_new.push(run.clone());
        self.show_children_these(&with_new, state, Some(&plan.bytes), &no_fork);
        fork::prepare(self)?;

        let start = job.memory.heap().wrapping_add(offset as usize);
        // SAFETY: the pages were checked to be private, or are those of runs. The rest is this
        // function's contract.
        if let Err(failed) = unsafe { pages::share(job.memory, whole, &plan.bytes, start) } {
            undo(job, plan, &failed.replaced);
            self.show_children(state, &no_fork);
            return Err(failed.why);
        }

        let moves = plan.merged.iter().map(|old| Move {
            from: old.offset,
            nbytes: old.pages.len() as u64,
            to: offset + (old.pages.start - whole.start) as u64,
        });
        let moves = moves.collect();
        state.runs.retain(|run| !plan.merged.contains(run));
        state.runs.push(run);
        state.leave(plan.merged.iter().map(|run| run.block));
        Ok(Change {
            offset: offset + (plan.bytes.start - whole.start) as u64,
            moves,
            ..state.change()
        })
    }

    /// Takes back what [`carry_out`](Self::carry_out) has done, since another PE could not.
    pub(crate) fn take_back(&self, job: &Job, state: &mut BufferState, plan: &Plan) {
        let no_fork = fork::wait_for_changes();
        if let Some(whole) = &plan.whole
            && let Some(index) = state.runs.iter().position(|run| run.pages == *whole)
        {
            undo(job, plan, whole);
            state.runs.swap_remove(index);
            state.runs.extend(plan.merged.iter().cloned());
            let runs = &state.runs;
            state
                .left
                .retain(|block| runs.iter().all(|run| run.block != *block));
        }
        self.show_children(state, &no_fork);
    }

    /// Shows accesses, observers and the handler of forks what is registered now.
    pub(crate) fn publish(&self, job: &Job, state: &mut BufferState) {
        state.publish(job);
        self.show_children(state, &fork::wait_for_changes());
    }

    fn show_children(&self, state: &BufferState, no_fork: &NoFork) {
        self.show_children_these(&state.runs, state, None, no_fork);
    }

    /// Shows the handler of forks these runs, with the buffers of the state and a further one.
    fn show_children_these(
        &self,
        runs: &[Run],
        state: &BufferState,
        more: Option<&Range<usize>>,
        _no_fork: &NoFork,
    ) {
        let live = state.buffers.iter().filter(|buffer| !buffer.is_lost());
        let buffers = live.map(|buffer| &buffer.bytes).chain(more);
        let mut buffers = buffers.cloned().collect::<Vec<_>>();
        buffers.sort_unstable_by_key(|bytes| bytes.start);

        let memory = self.memory;
        let own = runs.iter().filter_map(|run| {
            let start = memory.heap().wrapping_add(run.offset as usize);
            let first = buffers.partition_point(|bytes| bytes.end <= run.pages.start);
            let end = buffers.partition_point(|bytes| bytes.start < run.pages.end);
            Some(OwnPages::new(
                run.pages.clone(),
                memory.offset(start)?,
                &buffers[first..end],
            ))
        });
        *lock(&self.for_children) = own.collect();
    }
}

/// Gives the pages of a plan's new run that were replaced back to the merged runs, or to the
/// program.
fn undo(job: &Job, plan: &Plan, replaced: &Range<usize>) {
    let none = replaced.end..replaced.end;
    let mut is_done = true;
    let mut next = replaced.start;
    for old in plan
        .merged
        .iter()
        .filter(|old| overlap(&old.pages, replaced))
    {
        let part = old.pages.start.max(replaced.start)..old.pages.end.min(replaced.end);
        let offset = old.offset as usize + (part.start - old.pages.start);
        let place = job.memory.heap().wrapping_add(offset);
        // SAFETY: the run had these pages of its block, which nobody uses meanwhile.
        is_done &= unsafe { pages::share(job.memory, &part, &none, place) }.is_ok();
        // SAFETY: these pages are shared, and were private before; stores of all threads wait.
        is_done &= unsafe { pages::make_private(&(next..part.start), &none) }.is_ok();
        next = part.end;
    }
    // SAFETY: these pages are shared, and were private before; stores of all threads wait.
    is_done &= unsafe { pages::make_private(&(next..replaced.end), &none) }.is_ok();
    assert!(is_done, "the kernel refuses to map pages as they were");
}

impl fork::Registered for Buffers {
    fn pages(&self) -> Option<Vec<OwnPages>> {
        let registered = lock(&self.for_children).clone();
        if registered.is_empty() {
            return Some(registered);
        }

        let text = maps::read().ok()?;
        let mappings = maps::parse(&text).collect::<Vec<_>>();
        let mut now = Vec::new();
        for own in registered {
            for pages in pages::still_shared(&mappings, &own.pages, own.offset) {
                let inside = own
                    .inside
                    .iter()
                    .filter(|inside| overlap(inside, &pages))
                    .map(|inside| inside.start.max(pages.start)..inside.end.min(pages.end))
                    .collect();

                now.push(OwnPages {
                    offset: own.offset + (pages.start - own.pages.start) as u64,
                    pages,
                    inside,
                });
            }
        }
        Some(now)
    }

    fn file(&self) -> Option<BorrowedFd<'_>> {
        self.memory.file()
    }
}

impl Run {
    fn still_shared(&self, job: &Job, mappings: &[maps::Mapping<'_>]) -> Vec<Range<usize>> {
        let start = job.memory.heap().wrapping_add(self.offset as usize);
        match job.memory.offset(start) {
            Some(offset) => pages::still_shared(mappings, &self.pages, offset),
            None => Vec::new(),
        }
    }
}

impl RegisteredBuffer {
    fn is_lost(&self) -> bool {
        self.lost_in.is_some()
    }
}

impl BufferState {
    /// Plans the registration of a buffer by a PE that holds some of these locks.
    ///
    /// # Errors
    /// If its memory cannot be registered.
    pub(crate) fn plan(
        &self,
        job: &Job,
        locks: &LockTurns,
        bytes: &Range<usize>,
    ) -> Result<Plan, Refusal> {
        let pages = around(bytes);
        let of_program = statics::own();
        let statics = of_program.start()..of_program.start() + of_program.nbytes();
        if overlap(&job.memory.slices(), &pages) || overlap(&statics, &pages) {
            return Err(Refusal::Symmetric);
        }
        let mut live = self.buffers.iter().filter(|buffer| !buffer.is_lost());
        if live.clone().any(|buffer| overlap(&buffer.bytes, bytes)) {
            return Err(Refusal::Overlap);
        }
        if job.memory.has_reserved_pages() {
            return Err(Refusal::ReservedPages);
        }

        let mut merged = self
            .runs
            .iter()
            .filter(|run| overlap(&run.pages, &pages))
            .cloned()
            .collect::<Vec<_>>();
        merged.sort_unstable_by_key(|run| run.pages.start);
        if let [run] = &merged[..]
            && run.pages.start <= pages.start
            && pages.end <= run.pages.end
        {
            return Ok(Plan {
                bytes: bytes.clone(),
                whole: None,
                merged: Vec::new(),
            });
        }

        let is_in_merged =
            |bytes: &Range<usize>| merged.iter().any(|run| overlap(&run.pages, bytes));
        if live.any(|buffer| buffer.is_pinned && is_in_merged(&buffer.bytes)) {
            return Err(Refusal::Pinned);
        }
        // The other PEs would put all bytes of a lost buffer to the new block, in which it has only
        // some pages.
        let has_lost = |run: &Run| {
            let mut buffers = self.buffers.iter();
            buffers.any(|buffer| {
                buffer.lost_in == Some(run.block) && overlap(&buffer.bytes, &run.pages)
            })
        };
        if merged.iter().any(has_lost) {
            return Err(Refusal::Lost);
        }
        let holds_lock = |run: &Run| {
            let start = job.memory.heap().addr() + run.offset as usize;
            locks.held_in(start..start + run.pages.len()).is_some()
        };
        if merged.iter().any(holds_lock) {
            return Err(Refusal::HeldLock);
        }
        let registered = merged
            .iter()
            .map(|run| run.pages.clone())
            .collect::<Vec<_>>();
        pages::check(bytes, &registered)?;

        let whole = registered.iter().fold(pages, |whole, run| {
            whole.start.min(run.start)..whole.end.max(run.end)
        });
        Ok(Plan {
            bytes: bytes.clone(),
            whole: Some(whole),
            merged,
        })
    }

    fn run_of(&self, addr: usize) -> Option<&Run> {
        self.runs.iter().find(|run| run.pages.contains(&addr))
    }

    /// Records that this PE has left a run, or a lost buffer, in each of these blocks.
    fn leave(&mut self, blocks: impl Iterator<Item = u64>) {
        for block in blocks {
            let mut buffers = self.buffers.iter();
            let is_used = self.runs.iter().any(|run| run.block == block)
                || buffers.any(|buffer| buffer.lost_in == Some(block));
            if !is_used && !self.left.contains(&block) {
                self.left.push(block);
            }
        }
    }

    /// Returns a change without a new buffer: the blocks that this PE has left.
    pub(crate) fn change(&self) -> Change {
        Change {
            left: self.left.clone(),
            ..Change::default()
        }
    }

    /// Records what all PEs have changed. The new buffer, if there is one, has `bytes` here.
    /// `block` is the new block, if there is one, and the number of PEs that have a run in it.
    /// Returns the blocks that no PE uses any more.
    pub(crate) fn apply(
        &mut self,
        of_all: &[Change],
        new: Option<(Range<usize>, bool)>,
        block: Option<(u64, usize)>,
    ) -> Vec<u64> {
        for (pe, change) in of_all.iter().enumerate() {
            for buffer in &mut self.buffers {
                buffer.offsets.move_on(pe, of_all.len(), &change.moves);
            }
        }
        for buffer in &mut self.buffers {
            buffer.offsets.compare();
        }
        if let Some((bytes, is_pinned)) = new {
            let mut used = Vec::from_iter(self.buffers.iter().map(|buffer| buffer.number));
            used.sort_unstable();
            // The smallest number that is free.
            let number = (0..).zip(used).take_while(|(i, used)| i == used).count();
            self.buffers.push(RegisteredBuffer {
                number,
                bytes,
                is_pinned,
                lost_in: None,
                offsets: Offsets::of_all(of_all.iter().map(|change| change.offset)),
                images: None,
            });
        }

        self.left.clear();
        self.blocks.extend(block);
        for left in of_all.iter().flat_map(|change| &change.left) {
            *self.blocks.get_mut(left).expect("a block with runs") -= 1;
        }
        let unused = self.blocks.iter().filter(|(_, users)| **users == 0);
        let unused = unused.map(|(offset, _)| *offset).collect();
        self.blocks.retain(|_, users| *users > 0);
        unused
    }

    /// Returns the number of the buffer that begins at an address, if it is registered or the
    /// program has unmapped it.
    pub(crate) fn number_at(&self, addr: usize) -> Option<usize> {
        let at = |is_lost| {
            let mut buffers = self.buffers.iter();
            buffers.find(|buffer| buffer.bytes.start == addr && buffer.is_lost() == is_lost)
        };
        at(false).or_else(|| at(true)).map(|buffer| buffer.number)
    }

    /// Returns the offset of a buffer in the heap, if it is the same on all PEs.
    pub(crate) fn equal_offset(&self, start: usize) -> Option<u64> {
        let number = self.number_at(start)?;
        let buffer = self.buffers.iter().find(|buffer| buffer.number == number)?;
        buffer.offsets.equal()
    }

    /// Removes a buffer, and gives the program its pages back if no other buffer is in the run.
    /// Returns its bytes in the heap; `None` if the program has unmapped it.
    ///
    /// # Safety
    /// No PE uses the buffer, and no thread its bytes.
    ///
    /// # Errors
    /// When the kernel refuses. The buffer is still registered then.
    pub(crate) unsafe fn remove(
        &mut self,
        job: &Job,
        number: usize,
    ) -> Result<Option<Range<usize>>, Errno> {
        let index = self
            .buffers
            .iter()
            .position(|buffer| buffer.number == number);
        let index = index.expect("the number was found");
        let buffer = &self.buffers[index];
        let bytes = buffer.bytes.clone();

        let mut in_heap = None;
        if !buffer.is_lost() {
            let run = self
                .run_of(bytes.start)
                .expect("a buffer is in a run")
                .clone();
            let is_shared = self.buffers.iter().any(|other| {
                !other.is_lost() && other.number != number && overlap(&other.bytes, &run.pages)
            });
            if !is_shared {
                let _no_fork = fork::wait_for_changes();
                // SAFETY: the pages are mapped, and no thread uses the bytes, by contract.
                unsafe { pages::make_private(&run.pages, &bytes) }?;
                self.runs.retain(|other| *other != run);
                self.leave(std::iter::once(run.block));
            }
            let start = job.memory.heap().addr() + run.offset as usize;
            let start = start + (bytes.start - run.pages.start);
            in_heap = Some(start..start + bytes.len());
        }
        let buffer = self.buffers.swap_remove(index);
        self.spare.extend(buffer.images);
        self.leave(buffer.lost_in.into_iter());
        Ok(in_heap)
    }

    /// Forgets the buffers whose pages the program has unmapped, by a free before it has
    /// unregistered them, and gives it the rest of their pages back.
    pub(crate) fn forget_unmapped(&mut self, call: Call, job: &Job) {
        if self.runs.is_empty() {
            return;
        }
        let no_fork = fork::wait_for_changes();
        // If the mappings cannot be read, nothing is known to be unmapped.
        let Ok(text) = maps::read() else { return };
        let mappings = maps::parse(&text).collect::<Vec<_>>();
        let before = self.runs.len();
        let (whole, damaged): (Vec<Run>, Vec<Run>) = std::mem::take(&mut self.runs)
            .into_iter()
            .partition(|run| run.still_shared(job, &mappings) == [run.pages.clone()]);
        self.runs = whole;
        if self.runs.len() == before {
            return;
        }

        for run in &damaged {
            for pages in run.still_shared(job, &mappings) {
                let is_needed = self.buffers.iter().any(|buffer| {
                    let around = around(&buffer.bytes);
                    !buffer.is_lost() && pages.start <= around.start && around.end <= pages.end
                });
                if is_needed {
                    self.runs.push(Run {
                        offset: run.offset + (pages.start - run.pages.start) as u64,
                        pages,
                        block: run.block,
                    });
                } else {
                    // If the kernel refuses, the pages stay shared, and are the program's.
                    // SAFETY: the pages are mapped, and stores of all threads wait.
                    let _ = unsafe { pages::make_private(&pages, &(pages.end..pages.end)) };
                }
            }
        }
        // The warnings below read debug information, which takes long.
        drop(no_fork);

        let runs = &self.runs;
        for buffer in self.buffers.iter_mut().filter(|buffer| !buffer.is_lost()) {
            let pages = around(&buffer.bytes);
            let is_whole = |run: &Run| run.pages.start <= pages.start && pages.end <= run.pages.end;
            if !runs.iter().any(is_whole) {
                let before = damaged.iter().find(|run| is_whole(run));
                buffer.lost_in = Some(before.expect("a buffer is in a run").block);
                warning!(
                    each: "PE {}: {call}: the registered buffer of {} bytes at {:#x}{} was freed or unmapped, so \
                     what other PEs put there is lost; call shmemx_buffer_unregister before the memory is freed",
                    job.me,
                    buffer.bytes.len(),
                    buffer.bytes.start,
                    symmetric_location::registered_at(buffer.bytes.start)
                );
            }
        }
        self.leave(damaged.iter().map(|run| run.block));
        self.publish(job);
    }

    /// Shows accesses and the race detector what is registered now.
    fn publish(&mut self, job: &Job) {
        let heap = job.memory.heap().addr();
        let [of_heap, _] = job.images;
        let mut shown = Vec::new();
        for buffer in &mut self.buffers {
            let images = if buffer.offsets.equal().is_some() {
                of_heap
            } else {
                let spare = &mut self.spare;
                let images = *buffer.images.get_or_insert_with(|| {
                    spare
                        .pop()
                        .unwrap_or_else(|| Box::leak(Box::new(Images::of_buffer(job.n_pes))))
                });
                let offsets = (0..job.n_pes).map(|pe| buffer.offsets.on(pe as usize) as usize);
                images.set_offsets(job.me, of_heap.deltas(), offsets);
                images
            };
            if !buffer.is_lost() {
                shown.push(Buffer {
                    start: buffer.bytes.start,
                    nbytes: buffer.bytes.len(),
                    in_heap: heap + buffer.offsets.on(job.me.index()) as usize,
                    number: buffer.number,
                    images,
                });
            }
        }
        job.map.buffers().replace(&shown);
        races::show_buffers(&shown);
    }
}

impl Plan {
    /// Returns true if the PE needs a new block.
    pub(crate) fn needs_block(&self) -> bool {
        self.whole.is_some()
    }

    /// Returns the number of pages of the new run that are before the buffer, and the number of the
    /// others. Both are 0 if the plan needs no new block.
    pub(crate) fn pages(&self) -> [u64; 2] {
        let Some(whole) = &self.whole else {
            return [0, 0];
        };
        let first = around(&self.bytes).start;
        [first - whole.start, whole.end - first].map(|nbytes| (nbytes / PAGE) as u64)
    }
}

#[cfg(test)]
mod tests;
