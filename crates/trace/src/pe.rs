//! Reads the records of one PE from its trace file.

use crate::layout::{
    MAGIC, NAME_WORDS, NAMES, RECORD_WORDS, RECORDS, TraceRecord, WORD, header, record,
};

/// The records of a PE, with all times on the clock of PE 0.
#[derive(Debug)]
pub struct PeTrace {
    /// The number that distinguishes the job from others.
    pub job: u64,
    /// The number of the PE.
    pub pe: u32,
    /// The number of PEs of the job.
    pub n_pes: u32,
    /// The number of the PE's node.
    pub node: u32,
    /// The number of records that later ones have replaced in the ring.
    pub dropped: u64,
    /// The remaining records, in the order in which they began.
    pub records: Vec<TraceRecord>,
    pub(crate) names: Vec<String>,
}

impl PeTrace {
    /// Parses the bytes of the trace file of a PE.
    ///
    /// # Errors
    /// A sentence that says why they are no trace.
    pub fn of_file(bytes: &[u8]) -> Result<PeTrace, String> {
        let words = bytes.as_chunks::<WORD>().0;
        let header: Option<[u64; header::WORDS]> = words
            .first_chunk()
            .map(|words| words.map(u64::from_ne_bytes));
        let header = header.filter(|header| header[header::MAGIC] == MAGIC);
        let (Some(header), Some((names, ring))) = (
            header,
            words
                .split_at_checked(RECORDS)
                .map(|(front, ring)| (&front[NAMES..], ring)),
        ) else {
            return Err("it is not the trace of a PE of this version on such a machine".into());
        };
        let [pe, n_pes, node] =
            [header::PE, header::N_PES, header::NODE].map(|at| header[at] as u32);
        let capacity = header[header::CAPACITY];
        if capacity == 0 || (ring.len() / RECORD_WORDS) as u64 != capacity || pe >= n_pes {
            return Err("it is damaged: its size is not that in its header".into());
        }
        let begun = header[header::BEGUN];
        let oldest = begun.saturating_sub(capacity);
        let clock = Clock::of_words(&header[header::CLOCKS..][..4]);
        let mut records: Vec<TraceRecord> = ring
            .as_chunks::<RECORD_WORDS>()
            .0
            .iter()
            .map(|words| words.map(u64::from_ne_bytes))
            .filter(|words| words[record::NUMBER] > oldest && words[record::NUMBER] <= begun)
            .filter_map(|words| TraceRecord::of_words(&words))
            .collect();
        for record in &mut records {
            record.begin = clock.aligned(record.begin);
            // If two threads wrote to the same slot, the begin may be that of a later record.
            record.end = record.end.map(|end| clock.aligned(end).max(record.begin));
        }
        records.sort_by_key(|record| {
            (
                record.begin,
                std::cmp::Reverse(record.end.unwrap_or(u64::MAX)),
            )
        });
        let names = names
            .chunks_exact(NAME_WORDS)
            .map(|words| name(words.as_flattened()));
        Ok(PeTrace {
            job: header[header::JOB],
            pe,
            n_pes,
            node,
            dropped: oldest,
            records,
            names: names.collect(),
        })
    }

    /// Returns the name of a record: the function, perhaps with the location of the call.
    pub fn name(&self, record: &TraceRecord) -> &str {
        self.names
            .get(usize::from(record.name))
            .map_or("", String::as_str)
    }
}

fn name(bytes: &[u8]) -> String {
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Converts a PE's times to the clock of PE 0, by linear interpolation between two measured
/// offsets.
struct Clock {
    /// A time of the PE, and the number of nanoseconds to add to it.
    first: (f64, f64),
    /// The change of that number per nanosecond.
    drift: f64,
}

impl Clock {
    fn of_words(words: &[u64]) -> Clock {
        let [begin, offset, end, last] = [0, 1, 2, 3].map(|i| words[i].cast_signed() as f64);
        let drift = if end > begin {
            (last - offset) / (end - begin)
        } else {
            0.0
        };
        Clock {
            first: (begin, offset),
            drift,
        }
    }

    fn aligned(&self, time: u64) -> u64 {
        let (begin, offset) = self.first;
        let added = offset + self.drift * (time as f64 - begin);
        time.saturating_add_signed(added as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_drifts_is_aligned_in_proportion() {
        let offset = |number: i64| number.cast_unsigned();
        let clock = Clock::of_words(&[1000, offset(-100), 2000, offset(100)]);
        assert_eq!(
            [1000, 1500, 2000].map(|time| clock.aligned(time)),
            [900, 1500, 2100]
        );
        let clock = Clock::of_words(&[1000, offset(50), 0, 0]);
        assert_eq!(clock.aligned(5000), 5050);
    }

    #[test]
    fn no_trace_is_refused() {
        assert!(PeTrace::of_file(b"RMTRACE1").is_err());
        assert!(PeTrace::of_file(&[0; 1 << 17]).is_err());
    }
}
