//! The records of all PEs in an exchange. Most PEs of a job send equal or similar records.
//! Therefore equal records of consecutive PEs are stored once, and a record is sent without the
//! bytes at its start and at its end that equal those of the record before. So a PE of a large job
//! receives much less than the records of all PEs.

use std::iter::repeat_n;
use std::ops::{Index, Range};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Maximum size of the record of one PE in bytes. It keeps a PE from filling the launcher's memory.
pub const MAX_RECORD: usize = 64 * 1024;

/// Maximum size of the records of all PEs in bytes; equal records of consecutive PEs count once. A
/// PE accepts no more from its launcher.
pub const MAX_RECORDS: usize = 256 * 1024 * 1024;

/// One record of each PE, or a value that was computed from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Records<T = Vec<u8>> {
    n_pes: u32,
    runs: Vec<Run<T>>,
}

/// Consecutive PEs with equal records. A run ends where the next one begins.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Run<T> {
    /// The first PE of the run.
    first: u32,
    record: T,
}

impl<T> Records<T> {
    /// Returns the number of PEs.
    pub fn n_pes(&self) -> u32 {
        self.n_pes
    }

    /// Returns the runs of consecutive PEs whose records are equal.
    pub fn runs(&self) -> impl Iterator<Item = (Range<u32>, &T)> {
        let next_firsts = self.runs.iter().skip(1).map(|run| run.first);
        let ends = next_firsts.chain([self.n_pes]);
        self.runs
            .iter()
            .zip(ends)
            .map(|(run, end)| (run.first..end, &run.record))
    }

    /// Returns the record of every PE, in the order of PEs.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.runs()
            .flat_map(|(pes, record)| repeat_n(record, pes.len()))
    }

    /// Returns the first PE whose record fulfills the condition.
    pub fn position(&self, condition: impl Fn(&T) -> bool) -> Option<u32> {
        self.runs
            .iter()
            .find(|run| condition(&run.record))
            .map(|run| run.first)
    }

    /// Converts the records. Consecutive equal ones are converted once.
    ///
    /// # Errors
    /// The error of `convert`, with the first PE of the record.
    pub fn try_map<U, E>(
        self,
        mut convert: impl FnMut(T) -> Result<U, E>,
    ) -> Result<Records<U>, (u32, E)> {
        let mut runs = Vec::with_capacity(self.runs.len());
        for Run { first, record } in self.runs {
            let record = convert(record).map_err(|error| (first, error))?;
            runs.push(Run { first, record });
        }
        Ok(Records {
            n_pes: self.n_pes,
            runs,
        })
    }
}

impl<T: PartialEq> Records<T> {
    /// Appends the equal records of `n_pes` PEs. Returns `None` if there would be too many PEs.
    fn push(&mut self, n_pes: u32, record: T) -> Option<()> {
        let first = self.n_pes;
        self.n_pes = first.checked_add(n_pes)?;
        if self.runs.last().is_none_or(|last| last.record != record) {
            self.runs.push(Run { first, record });
        }
        Some(())
    }
}

impl<T: PartialEq> FromIterator<T> for Records<T> {
    fn from_iter<I: IntoIterator<Item = T>>(records: I) -> Records<T> {
        let mut all = Records {
            n_pes: 0,
            runs: Vec::new(),
        };
        for record in records {
            all.push(1, record).expect("a job has fewer than 2^32 PEs");
        }
        all
    }
}

impl<T> Index<u32> for Records<T> {
    type Output = T;

    fn index(&self, pe: u32) -> &T {
        assert!(
            pe < self.n_pes,
            "PE {pe} is not among {} records",
            self.n_pes
        );

        // The first run begins at PE 0, so at least one run begins at or before `pe`.
        let n_begun = self.runs.partition_point(|run| run.first <= pe);
        &self.runs[n_begun - 1].record
    }
}

/// A run of equal records as it is sent.
#[derive(Serialize, Deserialize)]
struct SentRun {
    n_pes: u32,
    /// Number of bytes at the start that equal those of the record before.
    start: u32,
    /// Number of bytes at the end that equal those of the record before.
    end: u32,
    /// The bytes between these.
    middle: Vec<u8>,
}

impl Serialize for Records {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut before: &[u8] = &[];
        serializer.collect_seq(self.runs().map(|(pes, record)| {
            let start = n_equal(before.iter(), record.iter());
            // Only the bytes behind these are compared from the end, so that none counts twice.
            let end = n_equal(before[start..].iter().rev(), record[start..].iter().rev());
            before = record;

            SentRun {
                n_pes: pes.end - pes.start,
                start: start as u32,
                end: end as u32,
                middle: record[start..record.len() - end].to_vec(),
            }
        }))
    }
}

/// Returns the number of equal bytes before the first difference.
fn n_equal<'a>(one: impl Iterator<Item = &'a u8>, other: impl Iterator<Item = &'a u8>) -> usize {
    one.zip(other)
        .take_while(|(one, other)| one == other)
        .count()
}

impl<'de> Deserialize<'de> for Records {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Records, D::Error> {
        let sent = Vec::<SentRun>::deserialize(deserializer)?;
        restore(&sent).ok_or_else(|| de::Error::custom("records that refer to what is not there"))
    }
}

/// Restores the records from their sent form; `None` if it is invalid. The size of the records is
/// limited, since few bytes can describe large ones.
fn restore(sent: &[SentRun]) -> Option<Records> {
    let mut all: Records = Records {
        n_pes: 0,
        runs: Vec::new(),
    };
    let mut nbytes = 0;
    for run in sent {
        let before: &[u8] = match all.runs.last() {
            Some(last) => &last.record,
            None => &[],
        };
        let head_end = run.start as usize;
        let tail_start = before.len().checked_sub(run.end as usize)?;
        if head_end > tail_start {
            return None;
        }
        let record = [&before[..head_end], &run.middle, &before[tail_start..]].concat();

        nbytes += record.len();
        if run.n_pes == 0 || record.len() > MAX_RECORD || nbytes > MAX_RECORDS {
            return None;
        }
        all.push(run.n_pes, record)?;
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sent(records: &Records) -> Vec<u8> {
        postcard::to_stdvec(records).expect("plain data")
    }

    proptest! {
        #[test]
        fn records_survive_and_are_found(
            records in prop::collection::vec(prop::collection::vec(0..3_u8, 0..6), 1..40),
        ) {
            let all: Records = records.iter().cloned().collect();
            prop_assert_eq!(all.n_pes() as usize, records.len());
            prop_assert_eq!(all.iter().cloned().collect::<Vec<_>>(), records.clone());
            prop_assert!((0..).zip(&records).all(|(pe, record)| all[pe] == *record));

            let is_long = |record: &Vec<u8>| record.len() > 3;
            let first = records.iter().position(is_long).map(|pe| pe as u32);
            prop_assert_eq!(all.position(is_long), first);

            prop_assert_eq!(postcard::from_bytes(&sent(&all)), Ok(all));
        }

        #[test]
        fn invalid_input_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(records) = postcard::from_bytes::<Records>(&bytes) {
                prop_assert_eq!(postcard::from_bytes(&sent(&records)), Ok(records));
            }
        }
    }

    #[test]
    fn what_is_equal_is_sent_once() {
        let common = vec![7; 1000];
        let equal: Records = (0..10_000).map(|_| common.clone()).collect();
        assert!(sent(&equal).len() < 1010);

        let differs_within = |pe: u32| [&common[..], &pe.to_le_bytes(), &common].concat();
        let nearly: Records = (0..10_000).map(differs_within).collect();
        assert!(sent(&nearly).len() < 2010 + 10_000 * 11);
        assert_eq!(nearly[9_999], differs_within(9_999));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let run = |n_pes, start, end, middle: usize| SentRun {
            n_pes,
            start,
            end,
            middle: vec![1; middle],
        };
        assert!(restore(&[run(1, 0, 0, 4), run(1, 2, 2, 0)]).is_some());
        assert_eq!(
            restore(&[run(1, 1, 0, 4)]),
            None,
            "there is no record before"
        );
        assert_eq!(
            restore(&[run(1, 0, 0, 4), run(1, 3, 2, 0)]),
            None,
            "they overlap"
        );
        assert_eq!(restore(&[run(0, 0, 0, 4)]), None, "of nobody");
        assert_eq!(
            restore(&[run(u32::MAX, 0, 0, 4), run(1, 0, 0, 4)]),
            None,
            "too many PEs"
        );
        assert_eq!(restore(&[run(1, 0, 0, MAX_RECORD + 1)]), None, "too long");

        let n_runs = MAX_RECORDS / MAX_RECORD + 2;
        let many = |i| {
            if i == 0 {
                run(1, 0, 0, MAX_RECORD - 1)
            } else {
                run(1, MAX_RECORD as u32 - 2, 0, 1 + i % 2)
            }
        };
        assert_eq!(
            restore(&(0..n_runs).map(many).collect::<Vec<_>>()),
            None,
            "too many bytes"
        );
    }
}
