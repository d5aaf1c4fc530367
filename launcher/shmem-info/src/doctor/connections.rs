//! From which size on jobs use a provider of libfabric that needs no connections.

use rushmem_transport::MANY_PAIRS;

use super::finding::{Finding, Grade};

/// Returns the minimum number of PEs per node with which a job of two nodes would connect too many
/// pairs.
fn pes_per_node() -> u64 {
    MANY_PAIRS.isqrt() + 1
}

/// Returns the minimum number of nodes with which a job of this many PEs per node would: each PE of
/// a node makes a pair with each PE elsewhere.
fn nodes(pes_per_node: u64) -> u64 {
    MANY_PAIRS / (pes_per_node * pes_per_node) + 2
}

/// Returns what jobs with a PE on each of these CPUs do, where `provider` is the first that needs
/// no connections.
pub fn finding(cpus: usize, provider: Option<&str>) -> Finding {
    let (most, cpus) = (pes_per_node() - 1, cpus.max(1) as u64);
    let sizes = format!(
        "jobs of 2 nodes need more than {MANY_PAIRS} connections from a node with more than {most} PEs each, and with {cpus} \
         PEs each from {} nodes on",
        nodes(cpus)
    );
    match provider {
        Some(provider) => Finding::ok(
            "connections",
            format!("{sizes}; {provider}, which needs no connections, is used there"),
        ),
        None => Finding::new(
            "connections",
            Grade::Note,
            format!("{sizes}; if they fail, start fewer PEs per node"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_the_least_with_too_many_pairs() {
        let pairs = |pes: u64, nodes: u64| pes * pes * (nodes - 1);
        let pes = pes_per_node();
        assert!(pairs(pes, 2) > MANY_PAIRS && pairs(pes - 1, 2) <= MANY_PAIRS);
        for pes in [1, 2, 7, 33, 64] {
            let least = nodes(pes);
            assert!(pairs(pes, least) > MANY_PAIRS, "{pes}");
            assert!(pairs(pes, least - 1) <= MANY_PAIRS, "{pes}");
        }
        assert_eq!([65, 192].map(nodes), [2, 2], "a job of one node connects nothing");
    }

    #[test]
    fn the_provider_for_many_pairs_is_named_if_there_is_one() {
        let with = finding(192, Some("cxi")).to_string();
        assert!(with.contains("with more than 64 PEs each, and with 192 PEs each from 2 nodes on"));
        assert!(with.ends_with("; cxi, which needs no connections, is used there"), "{with}");
        let without = finding(2, None);
        assert_eq!(without.grade, Grade::Note);
        assert!(without.text.contains("with 2 PEs each from 1026 nodes on; if they fail"));
    }
}
