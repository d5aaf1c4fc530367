//! Reads the records of one PE from its trace file.

use std::cmp::Reverse;

use crate::layout::{
    MAGIC, NAME_WORDS, NAMES, RECORD_WORDS, RECORDS, TraceRecord, WORD, header, record,
};

/// The reason why a file is refused that does not begin as a trace does.
const NO_TRACE: &str = "it is not the trace of a PE of this version on such a machine";

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
        let (words, _) = bytes.as_chunks::<WORD>();
        let Some((front, ring)) = words.split_at_checked(RECORDS) else {
            return Err(NO_TRACE.into());
        };

        let (header, names) = front.split_at(NAMES);
        let header: Vec<u64> = header
            .iter()
            .map(|word| u64::from_ne_bytes(*word))
            .collect();
        if header[header::MAGIC] != MAGIC {
            return Err(NO_TRACE.into());
        }

        let pe = header[header::PE] as u32;
        let n_pes = header[header::N_PES] as u32;
        let capacity = header[header::CAPACITY];
        if capacity == 0 || (ring.len() / RECORD_WORDS) as u64 != capacity || pe >= n_pes {
            return Err("it is damaged: its size is not that in its header".into());
        }

        let begun = header[header::BEGUN];
        let dropped = begun.saturating_sub(capacity);
        let (slots, _) = ring.as_chunks::<RECORD_WORDS>();
        let mut records: Vec<TraceRecord> = slots
            .iter()
            .map(|words| words.map(u64::from_ne_bytes))
            // A slot with another number is free, or was being written when the PE ended.
            .filter(|words| words[record::NUMBER] > dropped && words[record::NUMBER] <= begun)
            .filter_map(|words| TraceRecord::of_words(&words))
            .collect();

        let clock = Clock::of_words(&header[header::CLOCKS..][..4]);
        for record in &mut records {
            record.begin = clock.aligned(record.begin);
            // If two threads wrote to the same slot, the begin may be that of a later record.
            record.end = record.end.map(|end| clock.aligned(end).max(record.begin));
        }
        // Of records that begin together, the one that contains the others comes first.
        records.sort_by_key(|record| (record.begin, Reverse(record.end.unwrap_or(u64::MAX))));

        let names = names
            .chunks_exact(NAME_WORDS)
            .map(|words| name(words.as_flattened()))
            .collect();

        Ok(PeTrace {
            job: header[header::JOB],
            pe,
            n_pes,
            node: header[header::NODE] as u32,
            dropped,
            records,
            names,
        })
    }

    /// Returns the name of a record: the function, perhaps with the location of the call.
    pub fn name(&self, record: &TraceRecord) -> &str {
        self.names
            .get(usize::from(record.name))
            .map_or("", String::as_str)
    }
}

/// Returns the name in these bytes, which ends with a zero byte or at their end.
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
    /// The time of the PE of the first measurement.
    begin: f64,
    /// The number of nanoseconds to add to that time.
    offset: f64,
    /// The change of that number per nanosecond.
    drift: f64,
}

impl Clock {
    fn of_words(words: &[u64]) -> Clock {
        let [begin, offset, end, last_offset] = [0, 1, 2, 3].map(|i| words[i].cast_signed() as f64);
        let drift = if end > begin {
            (last_offset - offset) / (end - begin)
        } else {
            // A job that ended early has no second measurement.
            0.0
        };
        Clock {
            begin,
            offset,
            drift,
        }
    }

    fn aligned(&self, time: u64) -> u64 {
        let added = self.offset + self.drift * (time as f64 - self.begin);
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
