//! The nodes of a job and their PEs.
//!
//! The map is stored and sent as runs of consecutive PEs on one node, so that it is small for the
//! usual placements of even a million PEs.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

/// Consecutive PEs on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NodeRun {
    /// The first PE of the run.
    first: u32,
    /// Number of PEs in the run, never 0.
    len: u32,
    /// The node of the PEs.
    node: u32,
    /// Index of the first PE of the run among the PEs of its node.
    local: u32,
}

/// The node of every PE. PEs are numbered from 0 without gaps, and so are nodes, in the order of
/// their first PE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<(u32, u32)>", into = "Vec<(u32, u32)>")]
pub struct NodeMap {
    runs: Vec<NodeRun>,
    /// Number of PEs on each node.
    sizes: Vec<u32>,
}

/// The error of a list of runs that is not a node map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a node map needs at least one PE, fewer than 2^32, and nodes numbered in the order of their first PE"
)]
pub struct InvalidNodes;

impl NodeMap {
    /// Creates a map of `n_pes` PEs on one node.
    ///
    /// # Errors
    /// If `n_pes` is 0.
    pub fn one_node(n_pes: u32) -> Result<NodeMap, InvalidNodes> {
        NodeMap::from_runs([(0, n_pes)])
    }

    /// Creates a map from runs of (node, number of consecutive PEs on it), in the order of PEs.
    ///
    /// # Errors
    /// If a run is empty, if there are no PEs or more than 2^32 - 1, or if a node appears before
    /// one with a lower number.
    pub fn from_runs(runs: impl IntoIterator<Item = (u32, u32)>) -> Result<NodeMap, InvalidNodes> {
        let mut map = NodeMap {
            runs: Vec::new(),
            sizes: Vec::new(),
        };

        let mut first = 0_u32;
        for (node, len) in runs {
            let index = node as usize;
            if len == 0 || index > map.sizes.len() {
                return Err(InvalidNodes);
            }
            if index == map.sizes.len() {
                map.sizes.push(0);
            }

            let local = map.sizes[index];
            map.runs.push(NodeRun {
                first,
                len,
                node,
                local,
            });

            // No node has more PEs than the job, so this check also covers the sum of the node.
            first = first.checked_add(len).ok_or(InvalidNodes)?;
            map.sizes[index] = local + len;
        }

        if map.runs.is_empty() {
            Err(InvalidNodes)
        } else {
            Ok(map)
        }
    }

    /// Creates a map from a mark for each PE, in the order of PEs. PEs with equal marks are on one
    /// node.
    ///
    /// # Errors
    /// If there are no PEs.
    pub fn from_marks<M: std::hash::Hash + Eq>(
        marks: impl IntoIterator<Item = M>,
    ) -> Result<NodeMap, InvalidNodes> {
        // The node that each mark denotes, numbered in the order in which the marks appear.
        let mut numbers = HashMap::new();
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for mark in marks {
            let next = u32::try_from(numbers.len()).map_err(|_| InvalidNodes)?;
            let node = *numbers.entry(mark).or_insert(next);

            match runs.last_mut() {
                Some((last, len)) if *last == node => {
                    *len = len.checked_add(1).ok_or(InvalidNodes)?
                }
                _ => runs.push((node, 1)),
            }
        }
        NodeMap::from_runs(runs)
    }

    /// Returns the number of PEs in the job.
    pub fn n_pes(&self) -> u32 {
        match self.runs.last() {
            Some(last) => last.first + last.len,
            None => 0,
        }
    }

    /// Returns the number of nodes in the job.
    pub fn n_nodes(&self) -> u32 {
        self.sizes.len() as u32
    }

    /// Returns the node of `pe`.
    ///
    /// # Panics
    /// If `pe` is not below [`NodeMap::n_pes`].
    pub fn node_of(&self, pe: u32) -> u32 {
        self.run_of(pe).node
    }

    /// Returns the index of `pe` among the PEs of its node, counted from 0 in the order of PEs.
    ///
    /// # Panics
    /// If `pe` is not below [`NodeMap::n_pes`].
    pub fn local_index(&self, pe: u32) -> u32 {
        let run = self.run_of(pe);
        run.local + (pe - run.first)
    }

    /// Returns the number of PEs on `node`; 0 for a node that is not in the job.
    pub fn size(&self, node: u32) -> u32 {
        self.sizes.get(node as usize).copied().unwrap_or(0)
    }

    /// Returns the PEs of `node` in ascending order.
    pub fn members(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        self.runs
            .iter()
            .filter(move |run| run.node == node)
            .flat_map(|run| run.first..run.first + run.len)
    }

    fn run_of(&self, pe: u32) -> &NodeRun {
        assert!(
            pe < self.n_pes(),
            "PE {pe} is not in a job of {} PEs",
            self.n_pes()
        );

        // The first run begins at PE 0, so at least one run begins at or before `pe`.
        let n_begun = self.runs.partition_point(|run| run.first <= pe);
        &self.runs[n_begun - 1]
    }
}

impl TryFrom<Vec<(u32, u32)>> for NodeMap {
    type Error = InvalidNodes;

    fn try_from(runs: Vec<(u32, u32)>) -> Result<NodeMap, InvalidNodes> {
        NodeMap::from_runs(runs)
    }
}

impl From<NodeMap> for Vec<(u32, u32)> {
    fn from(map: NodeMap) -> Vec<(u32, u32)> {
        map.runs.iter().map(|run| (run.node, run.len)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_a_plain_list(marks in prop::collection::vec(0_u8..5, 1..60)) {
            let map = NodeMap::from_marks(&marks).expect("not empty");
            prop_assert_eq!(map.n_pes() as usize, marks.len());
            for (pe, mark) in marks.iter().enumerate() {
                let mates: Vec<u32> = (0..map.n_pes()).filter(|&other| marks[other as usize] == *mark).collect();

                let node = map.node_of(pe as u32);
                prop_assert_eq!(map.members(node).collect::<Vec<_>>(), mates.clone());
                prop_assert_eq!(map.size(node) as usize, mates.len());
                prop_assert_eq!(mates[map.local_index(pe as u32) as usize], pe as u32);
            }

            let firsts = (0..map.n_nodes()).map(|node| map.members(node).next().expect("no node is empty"));
            prop_assert!(firsts.is_sorted());

            let wire = postcard::to_stdvec(&map).expect("plain data");
            prop_assert_eq!(postcard::from_bytes::<NodeMap>(&wire).expect("own bytes"), map);
        }

        #[test]
        fn invalid_input_is_refused_or_consistent(runs in prop::collection::vec((0_u32..4, prop::num::u32::ANY), 0..6)) {
            let total: u64 = runs.iter().map(|(_, len)| u64::from(*len)).sum();
            if let Ok(map) = NodeMap::from_runs(runs) {
                prop_assert_eq!(u64::from(map.n_pes()), total);
                prop_assert_eq!(map.node_of(0), 0);
                prop_assert_eq!(map.local_index(map.n_pes() - 1) + 1, map.size(map.node_of(map.n_pes() - 1)));
            }
        }
    }

    #[test]
    fn bad_runs_are_refused() {
        for runs in [
            vec![],
            vec![(0, 0)],
            vec![(1, 1)],
            vec![(0, 1), (2, 1)],
            vec![(0, u32::MAX), (0, 1)],
        ] {
            assert_eq!(
                NodeMap::from_runs(runs.clone()),
                Err(InvalidNodes),
                "{runs:?}"
            );
        }
        assert_eq!(NodeMap::one_node(0), Err(InvalidNodes));
    }

    #[test]
    fn blocks_stay_compact() {
        let map = NodeMap::from_marks((0..1 << 20).map(|pe| pe / 128)).expect("not empty");
        assert_eq!(
            (
                map.runs.len(),
                map.n_nodes(),
                map.node_of(129),
                map.local_index(129)
            ),
            (8192, 8192, 1, 1)
        );
    }
}
