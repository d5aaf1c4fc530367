//! Writes lists of PEs and of waits as text that stays short in jobs of any size.

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::RangeInclusive;

/// Maximum number of ranges in a list. A longer list ends with the number of the other PEs.
const NAMED: usize = 8;

/// Maximum number of waits of a PE that are named. The others are counted.
const WAITS: usize = 3;

/// Minimum number of PEs at equal distances that are written as a progression.
const PROGRESSION: usize = 5;

/// Returns the PEs as a subject: `PE 3`, `PEs 0-2 and 5`. They are in ascending order.
pub fn pes(sorted: &[u32]) -> String {
    match sorted {
        [pe] => format!("PE {pe}"),
        _ => format!("PEs {}", enumerate(folded(sorted))),
    }
}

/// Returns the PEs with their number: `PE 3`, `4 PEs (0-2, 5)`.
pub fn counted(sorted: &[u32]) -> String {
    match sorted {
        [pe] => format!("PE {pe}"),
        _ => format!("{} PEs ({})", sorted.len(), folded(sorted).join(", ")),
    }
}

/// Returns the items as a list in a sentence: `a`, `a and b`, `a, b and c`.
pub fn enumerate(items: Vec<String>) -> String {
    match items.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) if !last.starts_with("and ") => {
            format!("{} and {last}", rest.join(", "))
        }
        Some((last, rest)) => format!("{} {last}", rest.join(", ")),
        None => "none".to_owned(),
    }
}

/// Returns different waits as a list in a sentence: the first `WAITS` of them, and the number of
/// the others. `further` is the number of waits that are counted without being items.
pub fn enumerate_once(items: impl Iterator<Item = String>, further: usize) -> String {
    let mut once = Vec::new();
    for item in items {
        if !once.contains(&item) {
            once.push(item);
        }
    }

    let more = once.len().saturating_sub(WAITS) + further;
    once.truncate(WAITS);
    if more > 0 {
        once.push(format!("{more} more"));
    }
    enumerate(once)
}

/// Returns the PEs in ascending order, each once.
pub fn sorted(pes: &[u32]) -> Vec<u32> {
    let mut sorted = pes.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    sorted
}

/// PEs that have something in common.
pub struct Group<K> {
    /// The property that the PEs have in common.
    pub key: K,
    /// The PEs, at least one.
    pub pes: Vec<u32>,
}

/// Groups the PEs by their key. The groups are in the order of their first PEs.
pub fn group_by<K: Clone + Eq + Hash>(pes: &[u32], key: impl Fn(u32) -> K) -> Vec<Group<K>> {
    let mut groups: Vec<Group<K>> = Vec::new();
    let mut index_of_key: HashMap<K, usize> = HashMap::new();
    for &pe in pes {
        let key = key(pe);
        let index = *index_of_key.entry(key.clone()).or_insert(groups.len());
        match groups.get_mut(index) {
            Some(group) => group.pes.push(pe),
            None => groups.push(Group { key, pes: vec![pe] }),
        }
    }
    groups
}

/// Returns the ranges of the PEs as texts. If there are more than `NAMED`, the last text is the
/// number of the PEs of the ranges that are left out.
fn folded(sorted: &[u32]) -> Vec<String> {
    if let Some(progression) = progression(sorted) {
        return vec![progression];
    }

    let mut ranges: Vec<RangeInclusive<u32>> = Vec::new();
    for &pe in sorted {
        match ranges.last_mut() {
            Some(range) if *range.end() + 1 == pe => *range = *range.start()..=pe,
            _ => ranges.push(pe..=pe),
        }
    }

    // The number of the others takes the place of one range, so that no list has one more text.
    let named = if ranges.len() > NAMED {
        NAMED - 1
    } else {
        ranges.len()
    };
    let mut texts: Vec<String> = ranges[..named].iter().map(text).collect();
    if named < ranges.len() {
        let n: u64 = ranges[named..]
            .iter()
            .map(|range| u64::from(range.end() - range.start()) + 1)
            .sum();
        texts.push(format!("and {n} more"));
    }
    texts
}

fn text(range: &RangeInclusive<u32>) -> String {
    let first = range.start();
    let last = range.end();
    if first == last {
        first.to_string()
    } else {
        format!("{first}-{last}")
    }
}

/// Returns `0, 2, 4, ..., 62` if the distance from each PE to the next is the same, and above 1.
fn progression(sorted: &[u32]) -> Option<String> {
    let [first, second, third, .., last] = sorted else {
        return None;
    };
    let distance = second - first;
    let is_even = sorted.windows(2).all(|pair| pair[1] - pair[0] == distance);
    // PEs at a distance of 1 are a range, which is shorter.
    if !is_even || distance == 1 || sorted.len() < PROGRESSION {
        return None;
    }
    Some(format!("{first}, {second}, {third}, ..., {last}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_named_once_and_then_counted() {
        let named = |texts: &[&str], further| {
            enumerate_once(texts.iter().map(|text| (*text).to_owned()), further)
        };
        assert_eq!(named(&["a", "b", "a"], 0), "a and b");
        assert_eq!(
            named(&["a", "b", "a", "c", "d", "e", "f"], 5),
            "a, b, c and 8 more"
        );
        assert_eq!(named(&["a"], 1), "a and 1 more");
    }

    #[test]
    fn lists_are_folded() {
        assert_eq!(pes(&[3]), "PE 3");
        assert_eq!(pes(&[0, 1, 2]), "PEs 0-2");
        assert_eq!(pes(&[0, 2]), "PEs 0 and 2");
        assert_eq!(pes(&[0, 1, 2, 5, 9]), "PEs 0-2, 5 and 9");
        assert_eq!(counted(&[0, 1, 2, 5]), "4 PEs (0-2, 5)");
        assert_eq!(pes(&[0, 2, 4, 6, 8]), "PEs 0, 2, 4, ..., 8");
        let many: Vec<u32> = (0..100).map(|pe| pe * pe).collect();
        assert_eq!(
            counted(&many),
            "100 PEs (0-1, 4, 9, 16, 25, 36, 49, and 92 more)"
        );
        assert_eq!(pes(&many), "PEs 0-1, 4, 9, 16, 25, 36, 49 and 92 more");
    }
}
