//! Unit tests of `members`.

use super::*;
use proptest::prelude::*;

fn list(members: impl std::borrow::Borrow<Members>) -> Vec<u32> {
    let members = members.borrow();
    (0..members.n).map(|i| members.world_pe(i).0).collect()
}

#[test]
fn the_grid_of_ten_in_rows_of_three() {
    let world = Members::world(10);
    let of_pe = |xrange, pe| {
        world
            .row_and_column(xrange, TeamPe(pe))
            .expect("a positive range")
    };

    let inside = of_pe(3, 4);
    assert_eq!(list(inside.row), [3, 4, 5]);
    assert_eq!(list(inside.column), [1, 4, 7]);

    let last = of_pe(3, 9);
    assert_eq!(list(last.row), [9]);
    assert_eq!(list(last.column), [0, 3, 6, 9]);

    assert_eq!(list(of_pe(99, 4).row), list(&world), "as 10");
    assert_eq!(world.row_and_column(0, TeamPe(4)), None);
}

#[test]
fn triplets_that_leave_the_parent_are_refused() {
    let parent = Members::world(8);
    for (start, stride, size) in [
        (3, 3, 3),
        (-1, 1, 2),
        (0, 1, 9),
        (0, 0, 2),
        (0, 1, 0),
        (1, -1, 3),
        (8, 1, 1),
    ] {
        assert_eq!(
            parent.subset(start, stride, size),
            None,
            "{start} {stride} {size}"
        );
    }
    assert_eq!(list(parent.subset(6, -2, 3).expect("valid")), [6, 4, 2]);
    assert_eq!(list(parent.subset(5, 0, 1).expect("valid")), [5]);

    let i = i32::MAX;
    assert_eq!(parent.subset(i, i, i), None);
}

#[test]
fn a_grid_of_three_dimensions_with_places_and_members_to_spare() {
    let world = Members::world(11);
    let axes = |ranges, pe| {
        let axes: [Members; 3] = world.axes(ranges, TeamPe(pe))?;
        Some(axes.map(list))
    };

    let inside = Some([vec![4, 5], vec![5, 7], vec![1, 5]]);
    assert_eq!(axes([2, 2, 2], 5), inside);
    assert_eq!(axes([2, 2, 2], 8), None, "the grid has 8 positions");

    let beside_empty_positions = Some([vec![10], vec![6, 8, 10], vec![4, 10]]);
    assert_eq!(axes([2, 3, 2], 10), beside_empty_positions);
    assert_eq!(axes([2, 0, 2], 0), None, "the grid has no position");

    // The number of positions exceeds 64 bits.
    let huge = u32::MAX >> 1;
    let everybody: Vec<u32> = (0..11).collect();
    let one_row = Some([everybody, vec![3], vec![3]]);
    assert_eq!(axes([huge, huge, huge], 3), one_row);
}

#[test]
fn a_list_that_is_a_triplet_becomes_one() {
    assert_eq!(
        Members::listed(vec![2, 4, 6]),
        Members::world(8).subset(2, 2, 3).unwrap()
    );
    assert_eq!(Members::listed(vec![6, 3, 0]).triplet(), Some((6, -3)));
    assert_eq!(
        Members::listed(vec![5]),
        Members::world(6).subset(5, 1, 1).unwrap()
    );
    assert_eq!(Members::listed(vec![0, 1, 3]).triplet(), None);
}

proptest! {
    /// Lists in any order, their subsets and the order of the world.
    #[test]
    fn lists_number_their_pes(
        pes in Just((0u32..12).collect::<Vec<_>>()).prop_shuffle(),
        n in 1usize..12,
        (start, stride, size) in (0i32..12, -4i32..4, 1i32..12),
    ) {
        let pes = pes[..n].to_vec();
        let members = Members::listed(pes.clone());
        prop_assert_eq!(list(members.clone()), pes.clone());

        for pe in 0..12 {
            let index = pes.iter().position(|&p| p == pe);
            prop_assert_eq!(members.team_pe(Pe(pe)).map(TeamPe::index), index);
        }

        if let Some(subset) = members.subset(start, stride, size) {
            let indices = (0..size).map(|i| start + i * stride);
            let expected: Vec<u32> = indices.map(|i| pes[i as usize]).collect();
            prop_assert_eq!(list(subset), expected);
        }

        let mut sorted = pes;
        sorted.sort_unstable();
        prop_assert_eq!(list(members.ascending()), sorted);
    }

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
            prop_assert_eq!(list(members.clone()), expected.clone());
            for pe in 0..n {
                let index = expected.iter().position(|&e| e == pe);
                prop_assert_eq!(members.team_pe(Pe(pe)).map(TeamPe::index), index);
            }
        }
    }
}
