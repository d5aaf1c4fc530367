//! Which PEs are active with which others.

use crate::options::Pairs;

/// Returns the pairs, each the PE that issues and its peer. A PE is in one pair at most; a PE that
/// is alone is its own peer.
pub fn pairs(n_pes: u32, which: Pairs, one: Option<(u32, u32)>, seed: u64) -> Vec<(u32, u32)> {
    if n_pes == 1 {
        return vec![(0, 0)];
    }
    let half = n_pes / 2;
    match which {
        Pairs::One => vec![one.unwrap_or((0, 1))],
        Pairs::Neighbors => (0..half).map(|pair| (2 * pair, 2 * pair + 1)).collect(),
        Pairs::All => (0..half).map(|pair| (pair, pair + half)).collect(),
        Pairs::Random => {
            // All PEs draw the same.
            let mut pes: Vec<u32> = (0..n_pes).collect();
            fastrand::Rng::with_seed(seed).shuffle(&mut pes);
            pes.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pe_is_in_one_pair_at_most() {
        for which in [Pairs::One, Pairs::Neighbors, Pairs::Random, Pairs::All] {
            for n in 2..20 {
                let pairs = pairs(n, which, None, 7);
                let mut pes: Vec<u32> = pairs.iter().flat_map(|&(a, b)| [a, b]).collect();
                pes.sort_unstable();
                let n_pes = pes.len();
                pes.dedup();
                assert_eq!(pes.len(), n_pes, "{which:?} of {n}");
                assert!(pes.iter().all(|&pe| pe < n));
                assert_eq!(n_pes as u32, if which == Pairs::One { 2 } else { n / 2 * 2 });
            }
        }
    }

    #[test]
    fn one_pe_is_its_own_peer() {
        assert_eq!(pairs(1, Pairs::All, None, 1), [(0, 0)]);
        assert_eq!(pairs(4, Pairs::One, Some((3, 0)), 1), [(3, 0)]);
    }
}
