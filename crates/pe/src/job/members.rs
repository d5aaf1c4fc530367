//! The members of a team: world PEs in an order.

use rushmem_bootstrap::NodeMap;
use rushmem_explain::status::{self, MAX_LISTED};
use rushmem_transport::{Pe, TeamPe};
use std::sync::Arc;

/// An ordered set of world PEs, never empty. Cheap to clone: most sets are a triplet of start,
/// stride and size; others share their list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members {
    /// The number of members.
    pub n: u32,
    order: Order,
}

/// The order of the members. A set that can be a triplet is never a list, so that equal sets
/// compare as equal.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Order {
    /// The PEs `start + i * stride`. The stride is negative if a split has reversed the order, and
    /// never 0.
    Strided {
        start: u32,
        stride: i32,
    },
    Listed(Arc<MemberList>),
}

#[derive(Debug, PartialEq, Eq)]
struct MemberList {
    /// The world PE of each member.
    pes: Vec<u32>,
    /// The members by ascending world PE.
    by_pe: Vec<u32>,
}

impl Members {
    /// Returns the members of the world of `n_pes` PEs.
    pub fn world(n_pes: u32) -> Members {
        Members::strided(0, 1, n_pes)
    }

    fn strided(start: u32, stride: i32, n: u32) -> Members {
        Members {
            n,
            order: Order::Strided { start, stride },
        }
    }

    /// Returns the set of these world PEs in this order. They must differ, and there is at least
    /// one.
    pub fn listed(pes: Vec<u32>) -> Members {
        let n = pes.len() as u32;
        let step = |pair: &[u32]| i64::from(pair[1]) - i64::from(pair[0]);
        let stride = pes.get(..2).map_or(1, step);
        if let (true, Ok(stride)) = (pes.windows(2).all(|p| step(p) == stride), stride.try_into()) {
            return Members::strided(pes[0], stride, n);
        }
        let mut by_pe: Vec<u32> = (0..n).collect();
        by_pe.sort_unstable_by_key(|&member| pes[member as usize]);
        Members {
            n,
            order: Order::Listed(Arc::new(MemberList { pes, by_pe })),
        }
    }

    /// Returns the first PE and the stride if the members are a triplet.
    pub fn triplet(&self) -> Option<(u32, i32)> {
        match self.order {
            Order::Strided { start, stride } => Some((start, stride)),
            Order::Listed(_) => None,
        }
    }

    /// Returns the members in the form of a status.
    pub fn for_status(&self) -> status::Members {
        match &self.order {
            &Order::Strided { start, stride } => status::Members::Strided {
                start,
                stride,
                n: self.n,
            },
            Order::Listed(list) => {
                let pes: Vec<u32> = list.pes.iter().copied().take(MAX_LISTED).collect();
                let more = self.n - pes.len() as u32;
                status::Members::Listed { pes, more }
            }
        }
    }

    /// Returns the world PE of a member.
    #[inline]
    pub fn world_pe(&self, team_pe: u32) -> Pe {
        debug_assert!(team_pe < self.n);
        match &self.order {
            Order::Strided { start, stride } => {
                Pe((i64::from(*start) + i64::from(team_pe) * i64::from(*stride)) as u32)
            }
            Order::Listed(list) => Pe(list.pes[team_pe as usize]),
        }
    }

    /// Returns the world PEs of the members, in their order.
    pub fn world_pes(&self) -> impl Iterator<Item = Pe> + '_ {
        (0..self.n).map(|member| self.world_pe(member))
    }

    /// Returns the number of members on the node with the most of them.
    pub fn per_node(&self, nodes: &NodeMap) -> u32 {
        if nodes.n_nodes() == 1 {
            return self.n;
        }
        let mut on = vec![0; nodes.n_nodes() as usize];
        self.world_pes()
            .for_each(|pe| on[nodes.node_of(pe.0) as usize] += 1);
        on.into_iter().max().expect("a job has a node")
    }

    /// Returns the number of a world PE in the team, if it is a member.
    pub fn team_pe(&self, pe: Pe) -> Option<TeamPe> {
        match &self.order {
            Order::Strided { start, stride } => {
                let distance = i64::from(pe.0) - i64::from(*start);
                let stride = i64::from(*stride);
                let index = distance / stride;
                let exact = distance % stride == 0 && (0..i64::from(self.n)).contains(&index);
                exact.then_some(TeamPe(index as u32))
            }
            Order::Listed(list) => {
                let found = list
                    .by_pe
                    .binary_search_by_key(&pe.0, |&i| list.pes[i as usize]);
                found.ok().map(|at| TeamPe(list.by_pe[at]))
            }
        }
    }

    /// Returns the members `start + i * stride` of this set for `i` below `size` (OpenSHMEM 1.6,
    /// §9.4.6). Returns `None` if `size` is not positive, if one of them is not a member, or if the
    /// stride is 0 and there are several.
    pub fn subset(&self, start: i32, stride: i32, size: i32) -> Option<Members> {
        let stride = if size == 1 { 1 } else { stride };
        let last = i64::from(start) + (i64::from(size) - 1) * i64::from(stride);
        let inside = |i: i64| (0..i64::from(self.n)).contains(&i);
        if size < 1 || stride == 0 || !inside(start.into()) || !inside(last) {
            return None;
        }
        match &self.order {
            Order::Strided { stride: step, .. } => {
                let stride = i32::try_from(i64::from(*step) * i64::from(stride)).ok()?;
                Some(Members::strided(
                    self.world_pe(start as u32).0,
                    stride,
                    size as u32,
                ))
            }
            Order::Listed(list) => {
                let at = |i| (i64::from(start) + i64::from(i) * i64::from(stride)) as usize;
                Some(Members::listed(
                    (0..size).map(|i| list.pes[at(i)]).collect(),
                ))
            }
        }
    }

    /// Returns the same PEs in the order of the world.
    pub fn ascending(self) -> Members {
        match self.order {
            Order::Strided { start, stride } if stride < 0 => {
                let lowest = i64::from(start) + i64::from(self.n - 1) * i64::from(stride);
                Members::strided(lowest as u32, stride.abs(), self.n)
            }
            Order::Strided { .. } => self,
            Order::Listed(list) => {
                Members::listed(list.by_pe.iter().map(|&i| list.pes[i as usize]).collect())
            }
        }
    }

    /// Returns, for each dimension of a grid of `ranges`, the members that differ from `team_pe`
    /// only in that coordinate. Members fill the grid with the first coordinate varying fastest. If
    /// the grid has more positions than members, the last positions are empty. Returns `None` if
    /// `team_pe` is not in the grid.
    pub fn axes<const D: usize>(&self, ranges: [u32; D], team_pe: TeamPe) -> Option<[Members; D]> {
        let (n, me) = (u64::from(self.n), u64::from(team_pe.0));
        if me
            >= ranges
                .iter()
                .fold(1, |places: u64, &range| places.saturating_mul(range.into()))
        {
            return None;
        }
        let mut places = 1u64;
        Some(ranges.map(|range| {
            let (step, range) = (places, u64::from(range));
            places = places.saturating_mul(range);
            let start = me - me / step % range * step;
            let size = range.min((n - start).div_ceil(step));
            let pes = (0..size).map(|i| self.world_pe((start + i * step) as u32).0);
            Members::listed(pes.collect())
        }))
    }

    /// Returns the row and the column of `team_pe` in a grid with rows of `xrange` members
    /// (§9.4.7); `None` unless `xrange` is positive.
    pub fn row_and_column(&self, xrange: i32, team_pe: TeamPe) -> Option<(Members, Members)> {
        if xrange < 1 {
            return None;
        }
        let n = self.n as i32;
        let xrange = xrange.min(n);
        let (x, y) = (team_pe.0 as i32 % xrange, team_pe.0 as i32 / xrange);
        let row = self.subset(y * xrange, 1, xrange.min(n - y * xrange))?;
        let column = self.subset(x, xrange, (n - x + xrange - 1) / xrange)?;
        Some((row, column))
    }
}

#[cfg(test)]
mod tests;
