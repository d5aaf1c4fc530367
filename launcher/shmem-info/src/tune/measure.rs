//! Measures the time of a collective on a team, whatever its algorithm.
#![allow(unsafe_code)]

use std::time::{Duration, Instant};

use rushmem_runtime::collectives::{self, ElementCount};
use rushmem_runtime::gather;
use rushmem_runtime::reductions;
use rushmem_runtime::{Call, Combine, TeamHandle, heap, team};

/// The caller that messages of the runtime name.
pub const CALL: Call = rushmem_runtime::call!("shmem-perf tune");

static MAX: Combine = Combine::max::<u64>();
static SUM: Combine = Combine::sum::<u64>();

/// The symmetric arrays of the collectives.
pub struct Arrays {
    source: *mut u8,
    dest: *mut u8,
    time: *mut u64,
    longest: *mut u64,
    nbytes: usize,
}

impl Arrays {
    /// Allocates two arrays of `nbytes` bytes each, and two words; `None` if the symmetric heap has
    /// no room for them.
    pub fn new(nbytes: usize) -> Option<Arrays> {
        let arrays = Arrays {
            source: heap::calloc(CALL, nbytes, 1).cast(),
            dest: heap::calloc(CALL, nbytes, 1).cast(),
            time: heap::calloc(CALL, 8, 1).cast(),
            longest: heap::calloc(CALL, 8, 1).cast(),
            nbytes,
        };
        let has_room = !arrays.source.is_null()
            && !arrays.dest.is_null()
            && !arrays.time.is_null()
            && !arrays.longest.is_null();
        if has_room { Some(arrays) } else { None }
    }

    /// Returns true if a collective of `operation` on `nbytes` bytes makes sense for a team of `n`
    /// PEs, and fits the arrays. `operation` is the name of a row in a [`rushmem_collectives`]
    /// table.
    pub fn fit(&self, operation: &str, n: u32, nbytes: usize) -> bool {
        let n = n as usize;
        match operation {
            "alltoall" | "gather" | "scatter" => nbytes.saturating_mul(n) <= self.nbytes,
            "collect" => (n..=self.nbytes).contains(&nbytes),
            "reduce_scatter" => (8 * n..=self.nbytes).contains(&nbytes),
            _ => nbytes <= self.nbytes,
        }
    }

    /// Returns the seconds of the slowest member for `count` collectives. All members call it.
    pub fn time(&self, operation: &str, team: TeamHandle, nbytes: usize, count: u64) -> f64 {
        collectives::sync(CALL, team.into());
        let start = Instant::now();
        for _ in 0..count {
            self.call(operation, team, nbytes);
        }
        let nanoseconds = start.elapsed().as_nanos() as u64;

        Duration::from_nanos(self.longest(team, nanoseconds)).as_secs_f64()
    }

    /// Returns the maximum of all members' numbers.
    fn longest(&self, team: TeamHandle, number: u64) -> u64 {
        // SAFETY: `time` points to an allocated, aligned word of the heap, which other PEs access
        // only in the collective below.
        unsafe { self.time.write_volatile(number) };

        let source = self.time.cast_const().cast();
        let dest = self.longest.cast();
        // SAFETY: `source` and `dest` point to different allocated words of the heap, to which no
        // reference points.
        unsafe { reductions::reduce(CALL, team.into(), dest, source, 1, &MAX) };

        // SAFETY: `longest` points to an allocated, aligned word of the heap, which other PEs
        // access only in the collective above.
        unsafe { self.longest.read_volatile() }
    }

    /// Performs a collective of `nbytes` bytes, which must [fit](Arrays::fit), and a sync after it,
    /// so that no PE returns before all have entered.
    fn call(&self, operation: &str, team: TeamHandle, nbytes: usize) {
        let dest = self.dest;
        let source = self.source.cast_const();
        let members = team.into();
        let n = team::n_pes(CALL, team) as usize;

        match operation {
            "sync" => {
                collectives::sync(CALL, members);
                return;
            }
            // SAFETY: `dest` and `source` have room for the collective (`fit`), and no reference
            // points to them.
            "broadcast" => unsafe {
                collectives::broadcast(
                    CALL,
                    members,
                    dest,
                    source,
                    ElementCount::of::<u8>(nbytes),
                    0,
                );
            },
            // SAFETY: `dest` and `source` have room for the collective (`fit`), and no reference
            // points to them.
            "reduce" => unsafe {
                reductions::reduce(CALL, members, dest, source, nbytes / 8, &SUM);
            },
            // SAFETY: `dest` and `source` have room for the collective (`fit`), and no reference
            // points to them.
            "reduce_to" => unsafe {
                reductions::reduce_to(CALL, members, dest, source, nbytes / 8, &SUM, 0);
            },
            // SAFETY: `dest` and `source` have room for the collective (`fit`), and no reference
            // points to them.
            "reduce_scatter" => unsafe {
                reductions::reduce_scatter(CALL, members, dest, source, nbytes / n / 8, &SUM);
            },
            // SAFETY: `dest` and `source` have room for the collective (`fit`), and no reference
            // points to them.
            "collect" => unsafe {
                collectives::fcollect(
                    CALL,
                    members,
                    dest,
                    source,
                    ElementCount::of::<u8>(nbytes / n),
                );
            },
            // SAFETY: `dest` and `source` have room for the collective (`fit`), and no reference
            // points to them.
            "alltoall" => unsafe {
                collectives::alltoall(CALL, members, dest, source, ElementCount::of::<u8>(nbytes));
            },
            // SAFETY: `dest` and `source` have room for the collective (`fit`), and no reference
            // points to them.
            "gather" => unsafe {
                gather::gather(
                    CALL,
                    members,
                    dest,
                    source,
                    ElementCount::of::<u8>(nbytes),
                    0,
                );
            },
            // SAFETY: `dest` and `source` have room for the collective (`fit`), and no reference
            // points to them.
            "scatter" => unsafe {
                gather::scatter(
                    CALL,
                    members,
                    dest,
                    source,
                    ElementCount::of::<u8>(nbytes),
                    0,
                );
            },
            // SAFETY: `dest` and `source` have room for the collective (`fit`), and no reference
            // points to them.
            "scan" => unsafe {
                reductions::inscan(CALL, members, dest, source, nbytes / 8, &SUM);
            },
            _ => unreachable!("a test measures every operation of a table"),
        }

        collectives::sync(CALL, members);
    }
}
