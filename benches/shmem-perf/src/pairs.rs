//! Which PEs are active with which others.

use crate::options::Pairs;

/// The pairs, each the PE that issues and its peer. A PE is in one pair at most; a PE that is alone is its own peer.
pub fn pairs(n_pes: u32, which: Pairs, one: Option<(u32, u32)>, seed: u64) -> Vec<(u32, u32)> {
    if n_pes == 1 {
        return vec![(0, 0)];
    }
    let half = n_pes / 2;
    match which {
        Pairs::One => vec![one.unwrap_or((0, 1))],
        Pairs::Neighbours => (0..half).map(|pair| (2 * pair, 2 * pair + 1)).collect(),
        Pairs::All => (0..half).map(|pair| (pair, pair + half)).collect(),
        Pairs::Random => {
            let mut pes: Vec<u32> = (0..n_pes).collect();
            let mut state = seed;
            for last in (1..pes.len()).rev() {
                pes.swap(last, (next(&mut state) % (last as u64 + 1)) as usize);
            }
            pes.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
        }
    }
}

/// SplitMix64: all PEs draw the same.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut value = *state;
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pe_is_in_one_pair_at_most() {
        for which in [Pairs::One, Pairs::Neighbours, Pairs::Random, Pairs::All] {
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
