//! Makes the rows of a file for `SHMEM_COLL_TUNING` from the times that were measured.

use std::fmt::Write;

use rushmem_collectives::choice::{ChoiceFacts, Table};

/// The measurements of an operation on a team.
pub struct MeasuredRow {
    pub operation: &'static str,
    pub facts: ChoiceFacts,
    /// The numbers of bytes, each with the seconds that a call takes by each algorithm.
    pub times: Vec<(usize, Vec<(&'static str, f64)>)>,
}

/// The factor within which an algorithm counts as being as fast as the fastest, so that the
/// algorithm changes less often with the size.
const AS_FAST: f64 = 1.05;

impl MeasuredRow {
    /// Returns the rows for teams of `least` members up to the number that was measured, or without
    /// an upper limit if `and_larger`. The times are in comments.
    pub fn rows(&self, least: u32, and_larger: bool) -> String {
        let ChoiceFacts {
            members,
            oversubscribed,
            ..
        } = self.facts;
        let one_node = self.facts.one_node();
        let mut text = format!("# {} of {members} PEs, in microseconds\n", self.operation);
        for (nbytes, times) in &self.times {
            let times: Vec<String> = times
                .iter()
                .map(|(name, seconds)| format!("{name} {:.2}", seconds * 1e6))
                .collect();
            let _ = writeln!(text, "# {nbytes:>10} B: {}", times.join(", "));
        }
        let members = if and_larger {
            format!("{least}+")
        } else {
            format!("{least}-{members}")
        };
        let nodes = if one_node { "one" } else { "several" };
        let shared = if oversubscribed { "yes" } else { "no" };
        let changes = self.changes();
        for (at, (from, algorithm)) in changes.iter().enumerate() {
            let bytes = match changes.get(at + 1) {
                Some((next, _)) => format!("{from}-{}", next - 1),
                None if *from == 0 => "any".to_owned(),
                None => format!("{from}+"),
            };
            let _ = writeln!(
                text,
                "{:13} {bytes:13} {members:8} {nodes:8} any       {shared:15} {algorithm}",
                self.operation
            );
        }
        text
    }

    /// Returns the algorithms by ascending sizes, each with the size from which on it is used. Of
    /// those that are as fast as the fastest ([`AS_FAST`]), the one of the next smaller size has
    /// precedence, then the built-in choice.
    fn changes(&self) -> Vec<(usize, &'static str)> {
        let mut built_in = Table::default();
        built_in.complete();
        let mut changes: Vec<(usize, &'static str)> = Vec::new();
        for (nbytes, times) in &self.times {
            let fastest = times
                .iter()
                .map(|&(_, seconds)| seconds)
                .fold(f64::INFINITY, f64::min);
            let is_fast = |name: &str| {
                times
                    .iter()
                    .any(|&(n, t)| n == name && t <= fastest * AS_FAST)
            };
            let usual = built_in.chosen(self.operation, *nbytes, &self.facts);
            let former = changes
                .last()
                .map(|&(_, name)| name)
                .filter(|name| is_fast(name));
            let known = former.or(usual.filter(|name| is_fast(name)));
            let best = known.or_else(|| times.iter().find(|(name, _)| is_fast(name)).map(|t| t.0));
            let Some(best) = best else { continue };
            if changes.last().is_none_or(|&(_, name)| name != best) {
                changes.push((if changes.is_empty() { 0 } else { *nbytes }, best));
            }
        }
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(times: &[(usize, f64, f64)]) -> MeasuredRow {
        let facts = ChoiceFacts {
            members: 4,
            per_node: 4,
            oversubscribed: false,
            receive_buffer_bytes: 32 << 10,
            pair_flags: true,
            lines: false,
        };
        let times = times.iter().map(|&(nbytes, bruck, ring)| {
            (nbytes, vec![("bruck", bruck * 1e-6), ("ring", ring * 1e-6)])
        });
        MeasuredRow {
            operation: "collect",
            facts,
            times: times.collect(),
        }
    }

    fn rows(text: &str) -> Vec<Vec<&str>> {
        let rows = text.lines().filter(|line| !line.starts_with('#'));
        rows.map(|row| row.split_whitespace().collect()).collect()
    }

    #[test]
    fn the_faster_algorithm_gets_the_sizes_up_to_where_the_other_one_is() {
        let text = measured(&[(8, 1.0, 2.0), (64, 3.0, 2.0), (512, 9.0, 4.0)]).rows(3, false);
        assert!(
            text.contains("#         64 B: bruck 3.00, ring 2.00\n"),
            "{text}"
        );
        assert_eq!(
            rows(&text),
            [
                ["collect", "0-63", "3-4", "one", "any", "no", "bruck"],
                ["collect", "64+", "3-4", "one", "any", "no", "ring"]
            ]
        );
        Table::default().read(&text).expect("the library reads it");
    }

    #[test]
    fn an_algorithm_that_is_as_fast_changes_nothing() {
        let text = measured(&[(8, 1.02, 1.0), (64, 1.03, 1.0), (1 << 20, 1.04, 1.0)]).rows(2, true);
        assert_eq!(
            rows(&text),
            [["collect", "any", "2+", "one", "any", "no", "bruck"]]
        );
    }
}
