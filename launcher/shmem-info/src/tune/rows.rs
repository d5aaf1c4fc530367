//! Makes the rows of a file for `SHMEM_COLL_TUNING` from the times that were measured.

use rushmem_collectives::choice::{ChoiceFacts, Table};

/// The measurements of an operation on a team.
pub struct MeasuredRow {
    pub operation: &'static str,
    pub facts: ChoiceFacts,
    /// The measurements of each size, in ascending order.
    pub sizes: Vec<MeasuredSize>,
}

/// The measurements of an operation on a number of bytes.
pub struct MeasuredSize {
    pub nbytes: usize,
    pub times: Vec<CallTime>,
}

/// The time of a call by an algorithm.
#[derive(Clone, Copy)]
pub struct CallTime {
    pub algorithm: &'static str,
    pub seconds: f64,
}

/// The algorithm that is used from a size on.
struct Change {
    nbytes: usize,
    algorithm: &'static str,
}

/// The factor within which an algorithm counts as being as fast as the fastest, so that the
/// algorithm changes less often with the size.
const AS_FAST: f64 = 1.05;

impl MeasuredRow {
    /// Returns the rows for teams of `least` members up to the number that was measured, or without
    /// an upper limit if `and_larger`. The times are in comments.
    pub fn rows(&self, least: u32, and_larger: bool) -> String {
        let members = self.facts.members;
        let mut text = format!("# {} of {members} PEs, in microseconds\n", self.operation);
        for MeasuredSize { nbytes, times } in &self.sizes {
            let mut words = Vec::new();
            for time in times {
                words.push(format!("{} {:.2}", time.algorithm, time.seconds * 1e6));
            }
            text += &format!("# {nbytes:>10} B: {}\n", words.join(", "));
        }

        let members = if and_larger {
            format!("{least}+")
        } else {
            format!("{least}-{members}")
        };
        let nodes = if self.facts.one_node() {
            "one"
        } else {
            "several"
        };
        let shared = if self.facts.oversubscribed {
            "yes"
        } else {
            "no"
        };

        let changes = self.changes();
        for (index, change) in changes.iter().enumerate() {
            let from = change.nbytes;
            let bytes = match changes.get(index + 1) {
                Some(next) => format!("{from}-{}", next.nbytes - 1),
                None if from == 0 => "any".to_owned(),
                None => format!("{from}+"),
            };
            text += &format!(
                "{:15} {bytes:13} {members:8} {nodes:8} any       {shared:15} {}\n",
                self.operation, change.algorithm
            );
        }
        text
    }

    /// Returns the algorithms by ascending sizes, each with the size from which on it is used. Of
    /// those that are as fast as the fastest ([`AS_FAST`]), the one of the next smaller size has
    /// precedence, then the built-in choice.
    fn changes(&self) -> Vec<Change> {
        let mut built_in = Table::default();
        built_in.complete();

        let mut changes: Vec<Change> = Vec::new();
        for MeasuredSize { nbytes, times } in &self.sizes {
            let seconds = times.iter().map(|time| time.seconds);
            let fastest = seconds.fold(f64::INFINITY, f64::min);
            let mut fast = Vec::new();
            for time in times {
                if time.seconds <= fastest * AS_FAST {
                    fast.push(time.algorithm);
                }
            }

            let former = changes.last().map(|change| change.algorithm);
            let usual = built_in.chosen(self.operation, *nbytes, &self.facts);
            let preferred = [former, usual, fast.first().copied()].into_iter().flatten();
            let mut as_fast = preferred.filter(|algorithm| fast.contains(algorithm));
            let Some(algorithm) = as_fast.next() else {
                continue;
            };

            if former != Some(algorithm) {
                // The first algorithm also gets the sizes below those that were measured.
                let nbytes = if changes.is_empty() { 0 } else { *nbytes };
                changes.push(Change { nbytes, algorithm });
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
        let time = |algorithm, microseconds: f64| CallTime {
            algorithm,
            seconds: microseconds * 1e-6,
        };
        let sizes = times.iter().map(|&(nbytes, bruck, ring)| MeasuredSize {
            nbytes,
            times: vec![time("bruck", bruck), time("ring", ring)],
        });
        MeasuredRow {
            operation: "collect",
            facts,
            sizes: sizes.collect(),
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
