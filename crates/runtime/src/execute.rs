//! Plans, carried out.
//!
//! A plan speaks of places and parts; an [`Execution`] knows where they are and how large. Data goes
//! straight to its place at the peer, then the pair's counter is raised: one ordered put-with-signal.

use crate::address;
use crate::channel::Channels;
use crate::combine::Combine;
use crate::job::Job;
use crate::team::Team;
use rushmem_collectives::{Place, Span, Step};
use rushmem_transport::mem;

/// How large the parts are and where they begin.
#[derive(Clone, Copy)]
pub(crate) enum Parts<'a> {
    /// One part of so many bytes.
    Whole(usize),
    /// Parts of the same size in bytes, one after the other.
    Equal(usize),
    /// Part k from byte `table[k]` to `table[k + 1]` of the destination; the source is one part.
    Table(&'a [usize]),
    /// Parts of `nelems` elements, `stride * elem_bytes` apart within and between parts.
    Strided { dst: usize, sst: usize, nelems: usize, elem_bytes: usize },
}

/// One collective of one member, in progress.
pub(crate) struct Execution<'a> {
    pub(crate) job: &'a Job,
    pub(crate) team: &'a Team,
    pub(crate) channels: &'a mut Channels,
    /// The own source array; read here alone.
    pub(crate) source: *const u8,
    /// The own destination array: symmetric, or in the internal area.
    pub(crate) dest: *mut u8,
    pub(crate) parts: Parts<'a>,
    /// Where partial results are, how many elements they have, and how they combine.
    pub(crate) accumulator: *mut u8,
    pub(crate) combine: Option<(&'static Combine, usize)>,
    /// Which copy of the landings is in use.
    pub(crate) parity: usize,
}

impl Execution<'_> {
    /// Carry out a plan.
    ///
    /// # Safety
    /// `source`, `dest` and `accumulator` are valid for what the plan does with them, `dest` on every
    /// member.
    pub(crate) unsafe fn run(&mut self, plan: impl Iterator<Item = Step>) {
        for step in plan {
            match step {
                Step::Put { peer, from, to, count } => {
                    let pe = self.team.members().world_pe(peer);
                    let delta = address::delta(pe.0 as i32);
                    let delta = delta.expect("every PE of a one-node job is mapped");
                    let dest = self.place(to).wrapping_offset(delta);
                    // SAFETY: the peer's copy of the place, mapped here; the rest by contract.
                    unsafe { self.transfer(dest, from, to, count) };
                    self.channels.signal(self.job, peer);
                }
                Step::Signal { peer } => self.channels.signal(self.job, peer),
                Step::Wait { peer } => self.channels.wait(self.job, peer),
                Step::Copy { from, to, count } => {
                    let dest = self.place(to);
                    // SAFETY: both places are this member's own; the rest by contract.
                    unsafe { self.transfer(dest, from, to, count) };
                }
                Step::Reduce { landing, landing_is_left } => {
                    let (combine, nelems) = self.combine.expect("a reduction has an operation");
                    let landed = self.place(Place::Landing(landing).at(0));
                    let own = self.accumulator;
                    let (left, right) = if landing_is_left { (landed, own) } else { (own, landed) };
                    // SAFETY: accumulator and landing hold `nelems` elements each; the landing was
                    // announced by a signal, and nobody writes it until this plan has ended.
                    unsafe {
                        (combine.f)(own.cast(), left.cast_const().cast(), right.cast(), nelems)
                    };
                }
            }
        }
    }

    /// Copy `count` parts from an own place to `dest`.
    ///
    /// # Safety
    /// Both are valid for the parts.
    unsafe fn transfer(&self, dest: *mut u8, from: Span, to: Span, count: u32) {
        let source = self.place(from).cast_const();
        let (first, count) = (to.first as usize, count as usize);
        let nbytes = match self.parts {
            Parts::Whole(nbytes) => nbytes,
            Parts::Equal(nbytes) => nbytes * count,
            Parts::Table(table) => table[first + count] - table[first],
            Parts::Strided { dst, sst, nelems, elem_bytes } => {
                let nelems = nelems * count;
                // SAFETY: valid by contract.
                unsafe { copy_strided(dest, source, dst, sst, nelems, elem_bytes) };
                return;
            }
        };
        // SAFETY: valid by contract.
        unsafe { mem::copy_bytes(dest, source, nbytes) }
    }

    /// Where a span begins, in this member's memory.
    fn place(&self, span: Span) -> *mut u8 {
        let first = span.first as usize;
        match span.place {
            Place::Accumulator => self.accumulator,
            Place::Landing(landing) => {
                let internal = self.job.internal();
                let slot = self.channels.slot();
                internal.own(internal.areas().landing(slot, landing, self.parity), 1)
            }
            Place::Dest => self.dest.wrapping_add(match self.parts {
                Parts::Whole(_) => 0,
                Parts::Equal(nbytes) => first * nbytes,
                Parts::Table(table) => table[first],
                Parts::Strided { dst, nelems, elem_bytes, .. } => first * nelems * dst * elem_bytes,
            }),
            Place::Source => self.source.cast_mut().wrapping_add(match self.parts {
                Parts::Whole(_) | Parts::Table(_) => 0,
                Parts::Equal(nbytes) => first * nbytes,
                Parts::Strided { sst, nelems, elem_bytes, .. } => first * nelems * sst * elem_bytes,
            }),
        }
    }
}

/// Copy elements of a size known at run time.
///
/// # Safety
/// Both sides are valid for `nelems` elements that far apart.
unsafe fn copy_strided(
    dest: *mut u8,
    source: *const u8,
    dst: usize,
    sst: usize,
    nelems: usize,
    elem_bytes: usize,
) {
    macro_rules! of {
        ($t:ty) => {
            // SAFETY: valid by contract; elements of the size of `$t`.
            unsafe {
                mem::copy_strided::<$t>(
                    dest.cast(),
                    source.cast(),
                    dst as isize,
                    sst as isize,
                    1,
                    nelems,
                )
            }
        };
    }
    match elem_bytes {
        1 => of!(u8),
        2 => of!(u16),
        4 => of!(u32),
        8 => of!(u64),
        16 => of!(u128),
        _ => unreachable!("elements of {elem_bytes} bytes"),
    }
}
