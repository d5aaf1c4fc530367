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
        if let Some(stride) = common_stride(&pes) {
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

        let mut on_node = vec![0; nodes.n_nodes() as usize];
        for pe in self.world_pes() {
            on_node[nodes.node_of(pe.0) as usize] += 1;
        }
        on_node.into_iter().max().expect("a job has a node")
    }

    /// Returns the number of a world PE in the team, if it is a member.
    pub fn team_pe(&self, pe: Pe) -> Option<TeamPe> {
        match &self.order {
            Order::Strided { start, stride } => {
                let distance = i64::from(pe.0) - i64::from(*start);
                let stride = i64::from(*stride);
                let index = distance / stride;
                if distance % stride != 0 || !self.has_index(index) {
                    return None;
                }
                Some(TeamPe(index as u32))
            }
            Order::Listed(list) => {
                let found = list
                    .by_pe
                    .binary_search_by_key(&pe.0, |&i| list.pes[i as usize])
                    .ok()?;
                Some(TeamPe(list.by_pe[found]))
            }
        }
    }

    /// Returns true if a member has this number.
    fn has_index(&self, index: i64) -> bool {
        (0..i64::from(self.n)).contains(&index)
    }

    /// Returns the members `start + i * stride` of this set for `i` below `size` (OpenSHMEM 1.6,
    /// §9.4.6). Returns `None` if `size` is not positive, if one of them is not a member, or if the
    /// stride is 0 and there are several.
    pub fn subset(&self, start: i32, stride: i32, size: i32) -> Option<Members> {
        // The stride of a single member is not used, so any is allowed.
        let stride = if size == 1 { 1 } else { stride };
        if size < 1 || stride == 0 {
            return None;
        }

        // All others are between the first and the last one.
        let last = i64::from(start) + (i64::from(size) - 1) * i64::from(stride);
        if !self.has_index(start.into()) || !self.has_index(last) {
            return None;
        }

        match &self.order {
            Order::Strided { stride: step, .. } => {
                let first = self.world_pe(start as u32).0;
                let stride = i32::try_from(i64::from(*step) * i64::from(stride)).ok()?;
                Some(Members::strided(first, stride, size as u32))
            }
            Order::Listed(list) => {
                let mut pes = Vec::with_capacity(size as usize);
                for i in 0..i64::from(size) {
                    let member = i64::from(start) + i * i64::from(stride);
                    pes.push(list.pes[member as usize]);
                }
                Some(Members::listed(pes))
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
                let ascending = list.by_pe.iter().map(|&i| list.pes[i as usize]);
                Members::listed(ascending.collect())
            }
        }
    }

    /// Returns, for each dimension of a grid of `ranges`, the members that differ from `team_pe`
    /// only in that coordinate. Members fill the grid with the first coordinate varying fastest. If
    /// the grid has more positions than members, the last positions are empty. Returns `None` if
    /// `team_pe` is not in the grid.
    pub fn axes<const D: usize>(&self, ranges: [u32; D], team_pe: TeamPe) -> Option<[Members; D]> {
        let n = u64::from(self.n);
        let me = u64::from(team_pe.0);
        let mut positions = 1u64;
        for range in ranges {
            positions = positions.saturating_mul(range.into());
        }
        if me >= positions {
            return None;
        }

        // The distance of neighbors in the dimension. It saturates at a value that exceeds all
        // numbers of members, so a greater one would have the same effect.
        let mut step = 1u64;
        Some(ranges.map(|range| {
            let range = u64::from(range);
            let coordinate = me / step % range;
            let start = me - coordinate * step;
            let size = range.min((n - start).div_ceil(step));
            let pes = (0..size).map(|i| self.world_pe((start + i * step) as u32).0);
            let members = Members::listed(pes.collect());
            step = step.saturating_mul(range);
            members
        }))
    }

    /// Returns the row and the column of `team_pe` in a grid with rows of `xrange` members
    /// (§9.4.7); `None` unless `xrange` is positive.
    pub fn row_and_column(&self, xrange: i32, team_pe: TeamPe) -> Option<RowAndColumn> {
        if xrange < 1 {
            return None;
        }

        let n = self.n as i32;
        let xrange = xrange.min(n);
        let x = team_pe.0 as i32 % xrange;
        let y = team_pe.0 as i32 / xrange;
        let row_start = y * xrange;
        Some(RowAndColumn {
            // The last row may be shorter.
            row: self.subset(row_start, 1, xrange.min(n - row_start))?,
            column: self.subset(x, xrange, (n - x + xrange - 1) / xrange)?,
        })
    }
}

/// The members of the row and of the column of a member in a grid.
#[derive(Debug, PartialEq, Eq)]
pub struct RowAndColumn {
    /// The members with the same second coordinate.
    pub row: Members,
    /// The members with the same first coordinate.
    pub column: Members,
}

/// Returns the distance of neighbors in the list if all have the same; 1 for a single PE.
fn common_stride(pes: &[u32]) -> Option<i32> {
    let mut strides = pes
        .windows(2)
        .map(|pair| i64::from(pair[1]) - i64::from(pair[0]));
    let first = strides.next().unwrap_or(1);
    if strides.any(|stride| stride != first) {
        return None;
    }
    // The distance of two numbers of PEs may need more than 32 bits.
    first.try_into().ok()
}

#[cfg(test)]
mod tests;
