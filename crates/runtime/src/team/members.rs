//! Which PEs a team has, and in which order.

use rushmem_transport::{Pe, TeamPe};

/// The PEs `start + i * stride` of the world for `i` below `n`. Every split of such a set is such a
/// set again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Members {
    /// World PE of member 0.
    pub start: u32,
    /// World PEs from one member to the next; negative where a split reversed the order. Never 0.
    pub stride: i32,
    /// How many members.
    pub n: u32,
}

impl Members {
    /// All PEs of a world of `n_pes`.
    pub(crate) fn world(n_pes: u32) -> Members {
        Members { start: 0, stride: 1, n: n_pes }
    }

    /// The world PE of a member.
    #[inline]
    pub(crate) fn world_pe(&self, team_pe: u32) -> Pe {
        debug_assert!(team_pe < self.n);
        Pe((self.start as i64 + team_pe as i64 * self.stride as i64) as u32)
    }

    /// The member that a world PE is, if it is one.
    pub(crate) fn team_pe(&self, pe: Pe) -> Option<TeamPe> {
        let distance = i64::from(pe.0) - i64::from(self.start);
        let stride = i64::from(self.stride);
        let index = distance / stride;
        let exact = distance % stride == 0 && (0..i64::from(self.n)).contains(&index);
        exact.then_some(TeamPe(index as u32))
    }

    /// The members `start + i * stride` of this set for `i` below `size` (OpenSHMEM 1.6, §9.4.6);
    /// `None` unless all of them are members and the stride is not 0. With one member any stride
    /// will do.
    pub(crate) fn subset(&self, start: i32, stride: i32, size: i32) -> Option<Members> {
        let stride = if size == 1 { 1 } else { stride };
        let last = i64::from(start) + (i64::from(size) - 1) * i64::from(stride);
        let inside = |i: i64| (0..i64::from(self.n)).contains(&i);
        if size < 1 || stride == 0 || !inside(start.into()) || !inside(last) {
            return None;
        }
        let stride = i32::try_from(i64::from(self.stride) * i64::from(stride)).ok()?;
        Some(Members { start: self.world_pe(start as u32).0, stride, n: size as u32 })
    }

    /// Row and column of the member `team_pe` when members are laid out in rows of `xrange`
    /// (§9.4.7); `None` unless `xrange` is positive.
    pub(crate) fn row_and_column(
        &self,
        xrange: i32,
        team_pe: TeamPe,
    ) -> Option<(Members, Members)> {
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn list(members: Members) -> Vec<u32> {
        (0..members.n).map(|i| members.world_pe(i).0).collect()
    }

    #[test]
    fn the_grid_of_ten_in_rows_of_three() {
        let world = Members::world(10);
        let at = |pe| world.row_and_column(3, TeamPe(pe)).expect("a positive range");
        assert_eq!(list(at(4).0), [3, 4, 5]);
        assert_eq!(list(at(4).1), [1, 4, 7]);
        assert_eq!(list(at(9).0), [9]);
        assert_eq!(list(at(9).1), [0, 3, 6, 9]);
        assert_eq!(list(world.row_and_column(99, TeamPe(4)).expect("as 10").0), list(world));
        assert_eq!(world.row_and_column(0, TeamPe(4)), None);
    }

    #[test]
    fn triplets_that_leave_the_parent_are_refused() {
        let parent = Members::world(8);
        for (start, stride, size) in
            [(3, 3, 3), (-1, 1, 2), (0, 1, 9), (0, 0, 2), (0, 1, 0), (1, -1, 3), (8, 1, 1)]
        {
            assert_eq!(parent.subset(start, stride, size), None, "{start} {stride} {size}");
        }
        assert_eq!(list(parent.subset(6, -2, 3).expect("valid")), [6, 4, 2]);
        assert_eq!(list(parent.subset(5, 0, 1).expect("valid")), [5]);
        let i = i32::MAX;
        assert_eq!(parent.subset(i, i, i), None);
    }

    proptest! {
        /// Splits of splits number the PEs that a list would.
        #[test]
        fn subsets_compose(
            n in 1u32..60,
            a in (0i32..60, -9i32..9, 1i32..60),
            b in (0i32..60, -9i32..9, 1i32..60),
        ) {
            let mut expected: Vec<u32> = (0..n).collect();
            let mut members = Members::world(n);
            for (start, stride, size) in [a, b] {
                let indices: Vec<i32> = (0..size).map(|i| start + i * stride).collect();
                let stays = indices.iter().all(|&i| (0..members.n as i32).contains(&i));
                let valid = stays && (stride != 0 || size == 1);
                let subset = members.subset(start, stride, size);
                prop_assert_eq!(subset.is_some(), valid);
                let Some(subset) = subset else { return Ok(()) };
                expected = indices.iter().map(|&i| expected[i as usize]).collect();
                members = subset;
                prop_assert_eq!(list(members), expected.clone());
                for pe in 0..n {
                    let index = expected.iter().position(|&e| e == pe);
                    prop_assert_eq!(members.team_pe(Pe(pe)).map(TeamPe::index), index);
                }
            }
        }
    }
}
