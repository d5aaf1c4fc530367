//! The collectives of the standard, with arrays of any content, and the results that they must
//! have. A [`Case`] fills the source, makes the call, and compares the result with a model that
//! computes it from the contents of all members.
#![allow(unsafe_code)]

use super::kit::{HEAP_BYTES, TestPe};
use crate::coll::alltoallv::{SourceBlocks, TargetBlocks, alltoallv};
use crate::coll::collectives::{self, ElementCount, TeamOrActiveSet};
use crate::coll::combine::Combine;
use crate::coll::gather;
use crate::coll::nonblocking::{self, NonblockingCollective};
use crate::coll::reductions;
use rushmem_pe::job::handle::{RequestHandle, TeamHandle};
use rushmem_transport::mem::{self, VolatileLoads};
use std::fmt;

/// An operator of reductions, and what it does to two numbers.
pub(crate) struct Operator {
    name: &'static str,
    combine: Combine,
    fold: fn(i64, i64) -> i64,
    /// Returns the element of a number, whose first bytes count.
    encode: fn(i64) -> [u8; 8],
    identity: [u8; 8],
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

fn integer(number: i64) -> [u8; 8] {
    number.to_le_bytes()
}

/// The number that stands for a NaN among those of [`double`].
const NAN: i64 = 100;

fn double(number: i64) -> [u8; 8] {
    let number = if number == NAN {
        f64::NAN
    } else {
        number as f64
    };
    number.to_le_bytes()
}

fn float(number: i64) -> [u8; 8] {
    u64::from((number as f32).to_bits()).to_le_bytes()
}

/// Operators on elements of 1, 2, 4 and 8 bytes.
pub(crate) static OPERATORS: [Operator; 8] = [
    Operator {
        name: "sum of i64",
        combine: Combine::sum::<i64>(),
        fold: i64::wrapping_add,
        encode: integer,
        identity: [0; 8],
    },
    Operator {
        name: "max of i32",
        combine: Combine::max::<i32>(),
        fold: Ord::max,
        encode: integer,
        identity: (i32::MIN as i64).to_le_bytes(),
    },
    Operator {
        name: "xor of u16",
        combine: Combine::xor::<u16>(),
        fold: |a, b| a ^ b,
        encode: integer,
        identity: [0; 8],
    },
    Operator {
        name: "min of f64",
        combine: Combine::min::<f64>(),
        // A NaN of any member is the result.
        fold: |a, b| if a == NAN || b == NAN { NAN } else { a.min(b) },
        encode: double,
        identity: f64::INFINITY.to_le_bytes(),
    },
    Operator {
        name: "sum of f32",
        combine: Combine::sum::<f32>(),
        fold: i64::wrapping_add,
        encode: float,
        identity: [0; 8],
    },
    Operator {
        name: "and of u8",
        combine: Combine::and::<u8>(),
        fold: |a, b| a & b,
        encode: integer,
        identity: [0xff; 8],
    },
    Operator {
        name: "prod of u64",
        combine: Combine::prod::<u64>(),
        fold: i64::wrapping_mul,
        encode: integer,
        identity: 1u64.to_le_bytes(),
    },
    Operator {
        name: "sum of u8",
        combine: Combine::sum::<u8>(),
        fold: i64::wrapping_add,
        encode: integer,
        identity: [0; 8],
    },
];

/// A collective, with the arguments that are not arrays.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Collective {
    Sync,
    Reduce(&'static Operator),
    /// To the member of this number modulo the size of the team.
    ReduceTo(&'static Operator, usize),
    ReduceScatter(&'static Operator),
    Inscan(&'static Operator),
    Exscan(&'static Operator),
    /// From the member of this number modulo the size of the team.
    Broadcast(usize),
    /// The number of elements differs between members.
    Collect,
    Fcollect,
    /// To the member of this number modulo the size of the team.
    Gather(usize),
    /// From the member of this number modulo the size of the team.
    Scatter(usize),
    Alltoall,
    Alltoalls {
        dst: usize,
        sst: usize,
    },
    /// The sizes of blocks differ.
    Alltoallv,
}

/// A call of a collective on all members of a team or active set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) collective: Collective,
    pub(crate) nelems: usize,
    /// The size of an element, where there is no operator.
    pub(crate) elem_bytes: usize,
    /// Decides the contents of the arrays.
    pub(crate) salt: u64,
    /// True if `source` is `dest`, where that is permitted.
    pub(crate) is_in_place: bool,
}

/// The members of a team or active set, by their numbers in the world, and the arrays of a case:
/// the offsets of `source` and `dest` in the heap.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) team: TeamOrActiveSet,
    pub(crate) members: &'a [usize],
    pub(crate) source: usize,
    pub(crate) dest: usize,
}

/// The bytes behind `dest`, which no call may change.
const GUARD: [u8; 16] = *b"behind the array";

impl TestPe {
    /// Returns the address of a byte of the heap.
    pub(crate) fn at(self, offset: usize) -> *mut u8 {
        self.job().memory.heap().wrapping_add(offset)
    }

    /// Stores bytes in the heap.
    pub(crate) fn store(self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= HEAP_BYTES, "beyond the heap");
        let to = self.at(offset);
        // SAFETY: the bytes are in the heap. By the rules of the collectives no PE accesses them
        // meanwhile.
        unsafe { mem::copy_bytes::<VolatileLoads>(to, bytes.as_ptr(), bytes.len()) }
    }

    /// Returns bytes of the heap.
    pub(crate) fn load(self, offset: usize, nbytes: usize) -> Vec<u8> {
        assert!(offset + nbytes <= HEAP_BYTES, "beyond the heap");
        let mut bytes = vec![0; nbytes];
        // SAFETY: as in `store`.
        unsafe { mem::copy_bytes::<VolatileLoads>(bytes.as_mut_ptr(), self.at(offset), nbytes) }
        bytes
    }
}

impl Case {
    /// Returns a case of 8-byte elements.
    pub(crate) fn of(collective: Collective, nelems: usize, salt: u64) -> Case {
        Case {
            collective,
            nelems,
            elem_bytes: 8,
            salt,
            is_in_place: false,
        }
    }

    /// Makes the call on this PE, and checks the result.
    pub(crate) fn run(self, pe: TestPe, place: Place<'_>) {
        let place = self.prepare(pe, place);
        self.call(pe, place);
        self.check(pe, place);
    }

    /// Returns an upper bound of the bytes of either array among `n` members, with the guard.
    pub(crate) fn room(self, n: usize) -> usize {
        let stride = match self.collective {
            Collective::Alltoalls { dst, sst } => dst.max(sst),
            _ => 1,
        };
        (self.nelems * n * stride * self.elem_bytes() + GUARD.len()).next_multiple_of(64)
    }

    /// Fills the source and the guard. Returns where the arrays are.
    pub(crate) fn prepare<'a>(self, pe: TestPe, place: Place<'a>) -> Place<'a> {
        let source = if self.has_one_array() {
            place.dest
        } else {
            place.source
        };
        let place = Place { source, ..place };
        let me = place.index_of(pe);
        if !self.writes_on(me, place.members.len()) {
            pe.store(place.dest, &self.untouched(place.members.len()));
        }
        pe.store(place.source, &self.source_of(me, place.members.len()));
        pe.store(
            place.dest + self.room(place.members.len()) - GUARD.len(),
            &GUARD,
        );
        place
    }

    /// Makes the blocking call.
    #[expect(
        clippy::multiple_unsafe_ops_per_block,
        reason = "one call, with one proof"
    )]
    pub(crate) fn call(self, pe: TestPe, place: Place<'_>) {
        let Place { team, members, .. } = place;
        let [dest, source] = [place.dest, place.source].map(|offset| pe.at(offset));
        let n = members.len();
        let elements = self.elements(place.index_of(pe));
        let nelems = self.nelems;

        // SAFETY: the arrays are in the heaps of all members, which the tests access by the rules
        // of the standard.
        unsafe {
            match self.collective {
                Collective::Sync => collectives::sync(pe, team),
                Collective::Reduce(Operator { combine, .. }) => {
                    reductions::reduce(pe, team, dest, source, nelems, combine)
                }
                Collective::ReduceTo(Operator { combine, .. }, root) => {
                    let root = (root % n) as i32;
                    reductions::reduce_to(pe, team, dest, source, nelems, combine, root)
                }
                Collective::ReduceScatter(Operator { combine, .. }) => {
                    reductions::reduce_scatter(pe, team, dest, source, nelems, combine)
                }
                Collective::Inscan(Operator { combine, .. }) => {
                    reductions::inscan(pe, team, dest, source, nelems, combine)
                }
                Collective::Exscan(Operator { combine, .. }) => {
                    reductions::exscan(pe, team, dest, source, nelems, combine)
                }
                Collective::Broadcast(root) => {
                    let root = (root % n) as i32;
                    collectives::broadcast(pe, team, dest, source, elements, root)
                }
                Collective::Gather(root) => {
                    gather::gather(pe, team, dest, source, elements, (root % n) as i32)
                }
                Collective::Scatter(root) => {
                    gather::scatter(pe, team, dest, source, elements, (root % n) as i32)
                }
                Collective::Collect => collectives::collect(pe, team, dest, source, elements),
                Collective::Fcollect => collectives::fcollect(pe, team, dest, source, elements),
                Collective::Alltoall => collectives::alltoall(pe, team, dest, source, elements),
                Collective::Alltoalls { dst, sst } => {
                    let [dst, sst] = [dst, sst].map(|stride| stride as isize);
                    let size = self.elem_bytes;
                    collectives::alltoalls(pe, team, dest, source, dst, sst, nelems, size)
                }
                Collective::Alltoallv => self.call_alltoallv(pe, place),
            }
        };
    }

    /// Makes the call of an all-to-all of blocks of different sizes.
    fn call_alltoallv(self, pe: TestPe, place: Place<'_>) -> i32 {
        let me = place.index_of(pe);
        let n = place.members.len();
        let sizes: Vec<usize> = (0..n).map(|to| self.block_bytes(me, to)).collect();
        let offsets = starts(sizes.iter().copied());
        let received = (0..n).map(|from| self.block_bytes(from, me));
        let t_offsets = starts(received.clone());
        let mut t_sizes = vec![0; n];

        let target = TargetBlocks {
            target: pe.at(place.dest),
            nbytes: usize::MAX,
        };
        let blocks = SourceBlocks {
            source: pe.at(place.source),
            offsets: offsets.as_ptr(),
            sizes: sizes.as_ptr(),
        };
        // SAFETY: each array has an entry for each member.
        unsafe {
            let t_sizes = t_sizes.as_mut_ptr();
            alltoallv(pe, place.team, target, t_offsets.as_ptr(), t_sizes, blocks);
        }
        assert!(received.eq(t_sizes), "the sizes of {self:?}");
        0
    }

    /// Starts the non-blocking form of the collective on a team; `None` if there is none.
    pub(crate) fn start(
        self,
        pe: TestPe,
        team: TeamHandle,
        place: Place<'_>,
    ) -> Option<RequestHandle> {
        use NonblockingCollective as Started;
        let n = place.members.len();
        let mut elements = self.elements(place.index_of(pe));
        let mut reduced = |operator: &'static Operator| {
            elements.elem_bytes = self.elem_bytes();
            &operator.combine
        };
        let collective = match self.collective {
            Collective::Sync => Started::Sync,
            Collective::Reduce(operator) => Started::Reduce(reduced(operator)),
            Collective::ReduceTo(operator, root) => Started::ReduceTo {
                op: reduced(operator),
                root: (root % n) as i32,
            },
            Collective::ReduceScatter(operator) => Started::ReduceScatter(reduced(operator)),
            Collective::Inscan(operator) => Started::Inscan(reduced(operator)),
            Collective::Exscan(operator) => Started::Exscan(reduced(operator)),
            Collective::Broadcast(root) => Started::Broadcast {
                root: (root % n) as i32,
            },
            Collective::Gather(root) => Started::Gather {
                root: (root % n) as i32,
            },
            Collective::Scatter(root) => Started::Scatter {
                root: (root % n) as i32,
            },
            Collective::Collect => Started::Collect {
                max_bytes: usize::MAX,
            },
            Collective::Fcollect => Started::Fcollect,
            Collective::Alltoall => Started::Alltoall,
            Collective::Alltoalls { .. } | Collective::Alltoallv => return None,
        };
        let [dest, source] = [place.dest, place.source].map(|offset| pe.at(offset));
        if matches!(collective, Started::Sync) {
            elements.nelems = 0;
        }
        // SAFETY: as in `call`; the tests leave the arrays alone until the request is done.
        Some(unsafe { nonblocking::start(pe, team, collective, dest, source, elements) })
    }

    /// Checks the result of the call on this PE.
    ///
    /// # Panics
    /// If it is wrong, or a byte behind the array or of the source has changed.
    pub(crate) fn check(self, pe: TestPe, place: Place<'_>) {
        let me = place.index_of(pe);
        let n = place.members.len();
        let is_on_set = matches!(place.team, TeamOrActiveSet::ActiveSet { .. });

        for (offset, expected) in self.result_of(me, n, is_on_set) {
            let found = pe.load(place.dest + offset, expected.len());
            let wrong = found.iter().zip(&expected).position(|(a, b)| a != b);
            if let Some(i) = wrong {
                panic!(
                    "byte {} of the result is {} and not {} on member {me} of {n}: {self:?}",
                    offset + i,
                    found[i],
                    expected[i],
                );
            }
        }

        let guard = pe.load(place.dest + self.room(n) - GUARD.len(), GUARD.len());
        assert_eq!(guard, GUARD, "behind the result of {self:?}");
        if place.source != place.dest {
            let source = self.source_of(me, n);
            let found = pe.load(place.source, source.len());
            assert!(found == source, "the source of {self:?} has changed");
        }
    }

    fn elements(self, me: usize) -> ElementCount {
        ElementCount {
            nelems: self.nelems_of(me),
            elem_bytes: self.elem_bytes,
        }
    }

    fn elem_bytes(self) -> usize {
        match self.operator() {
            Some(operator) => operator.combine.elem_bytes(),
            None => self.elem_bytes,
        }
    }

    fn operator(self) -> Option<&'static Operator> {
        match self.collective {
            Collective::Reduce(operator)
            | Collective::ReduceTo(operator, _)
            | Collective::ReduceScatter(operator)
            | Collective::Inscan(operator)
            | Collective::Exscan(operator) => Some(operator),
            _ => None,
        }
    }

    /// Returns true if `source` is `dest`.
    fn has_one_array(self) -> bool {
        let is_permitted = match self.collective {
            Collective::Alltoalls { dst, sst } => dst == sst,
            Collective::Sync
            | Collective::Broadcast(_)
            | Collective::ReduceScatter(_)
            | Collective::Gather(_)
            | Collective::Scatter(_)
            | Collective::Alltoallv => false,
            _ => true,
        };
        self.is_in_place && is_permitted
    }

    /// Returns true if the call changes `dest` of a member.
    fn writes_on(self, member: usize, n: usize) -> bool {
        match self.collective {
            Collective::ReduceTo(_, root) | Collective::Gather(root) => member == root % n,
            _ => true,
        }
    }

    /// Returns what `dest` has before and after the call where that does not change it.
    fn untouched(self, n: usize) -> Vec<u8> {
        vec![0x5A; self.room(n) - GUARD.len()]
    }

    /// Returns the number of elements that a member passes.
    fn nelems_of(self, member: usize) -> usize {
        match self.collective {
            Collective::Collect => (self.salt as usize + 5 * member) % (self.nelems + 1),
            _ => self.nelems,
        }
    }

    /// Returns the size of the block from a member to another one.
    fn block_bytes(self, from: usize, to: usize) -> usize {
        (self.salt as usize + 3 * from + 5 * to) % (self.nelems + 1) * self.elem_bytes
    }

    /// Returns the source array of a member.
    fn source_of(self, member: usize, n: usize) -> Vec<u8> {
        let nelems = match self.collective {
            Collective::Sync => 0,
            Collective::Alltoall | Collective::Scatter(_) | Collective::ReduceScatter(_) => {
                self.nelems * n
            }
            Collective::Alltoalls { sst, .. } if self.nelems > 0 => (self.nelems * n - 1) * sst + 1,
            Collective::Alltoallv => {
                let nbytes: usize = (0..n).map(|to| self.block_bytes(member, to)).sum();
                nbytes / self.elem_bytes
            }
            _ => self.nelems_of(member),
        };
        self.elements_of(member, 0, nelems)
    }

    /// Returns `nelems` elements of the source of a member.
    fn elements_of(self, member: usize, first: usize, nelems: usize) -> Vec<u8> {
        let nbytes = self.elem_bytes();
        let mut bytes = Vec::with_capacity(nelems * nbytes);
        for i in first..first + nelems {
            let element = match self.operator() {
                Some(operator) => (operator.encode)(self.number(member, i)),
                None => mixed(self.salt, member, i).to_le_bytes(),
            };
            bytes.extend_from_slice(&element[..nbytes]);
        }
        bytes
    }

    /// Returns a number that a member passes to an operator, so small that sums are exact.
    fn number(self, member: usize, i: usize) -> i64 {
        (mixed(self.salt, member, i) % 100) as i64 + 1
    }

    /// Returns what `dest` of a member has after the call, from these offsets on.
    fn result_of(self, me: usize, n: usize, is_on_set: bool) -> Vec<(usize, Vec<u8>)> {
        let blocks = |of: &dyn Fn(usize) -> Vec<u8>| vec![(0, (0..n).flat_map(of).collect())];
        match self.collective {
            _ if !self.writes_on(me, n) && self.has_one_array() => vec![(0, self.source_of(me, n))],
            _ if !self.writes_on(me, n) => vec![(0, self.untouched(n))],
            Collective::Sync => Vec::new(),
            Collective::Reduce(operator) | Collective::ReduceTo(operator, _) => {
                self.combined(operator, 0..n, 0)
            }
            Collective::ReduceScatter(operator) => self.combined(operator, 0..n, me * self.nelems),
            Collective::Inscan(operator) => self.combined(operator, 0..me + 1, 0),
            Collective::Exscan(operator) => self.combined(operator, 0..me, 0),
            Collective::Broadcast(root) if is_on_set && me == root % n => Vec::new(),
            Collective::Broadcast(root) => vec![(0, self.source_of(root % n, n))],
            Collective::Scatter(root) => {
                vec![(0, self.elements_of(root % n, me * self.nelems, self.nelems))]
            }
            Collective::Collect | Collective::Fcollect | Collective::Gather(_) => {
                blocks(&|member| self.source_of(member, n))
            }
            Collective::Alltoall => {
                blocks(&|member| self.elements_of(member, me * self.nelems, self.nelems))
            }
            Collective::Alltoalls { dst, sst } => {
                let all = (0..n).flat_map(|member| (0..self.nelems).map(move |i| (member, i)));
                let placed = all.enumerate().map(|(place, (member, i))| {
                    let element = self.elements_of(member, (me * self.nelems + i) * sst, 1);
                    (place * dst * self.elem_bytes, element)
                });
                placed.collect()
            }
            Collective::Alltoallv => blocks(&|member| {
                let sizes = (0..n).map(|to| self.block_bytes(member, to));
                let [start, size] = [starts(sizes)[me], self.block_bytes(member, me)];
                self.elements_of(member, start / self.elem_bytes, size / self.elem_bytes)
            }),
        }
    }

    /// Returns the elements of these members combined, from element `first` of their sources on.
    fn combined(
        self,
        operator: &Operator,
        members: std::ops::Range<usize>,
        first: usize,
    ) -> Vec<(usize, Vec<u8>)> {
        let nbytes = self.elem_bytes();
        let mut bytes = Vec::with_capacity(self.nelems * nbytes);
        for i in first..first + self.nelems {
            let numbers = members.clone().map(|member| self.number(member, i));
            let combined = numbers.reduce(operator.fold);
            let element = combined.map_or(operator.identity, operator.encode);
            bytes.extend_from_slice(&element[..nbytes]);
        }
        vec![(0, bytes)]
    }
}

impl Place<'_> {
    /// Returns the number of a PE among the members.
    fn index_of(self, pe: TestPe) -> usize {
        let index = self.members.iter().position(|&member| member == pe.me());
        index.expect("only members call")
    }
}

/// Returns where blocks of these sizes begin, one behind the other.
fn starts(sizes: impl Iterator<Item = usize>) -> Vec<usize> {
    sizes
        .scan(0, |end, size| {
            let start = *end;
            *end += size;
            Some(start)
        })
        .collect()
}

/// Returns a number that differs with each argument (D. Lea and G. L. Steele, SplitMix).
fn mixed(salt: u64, member: usize, i: usize) -> u64 {
    let mut bits = salt ^ (member as u64) << 40 ^ (i as u64) << 8;
    bits = bits.wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ bits >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ bits >> 31
}
