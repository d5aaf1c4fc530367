//! What one PE has recorded, read from its file.

use crate::layout::{
    MAGIC, N_NAMES, NAME_WORDS, NAMES, RECORD_WORDS, RECORDS, TraceRecord, WORD, header, record,
};

/// The records of a PE, with all times on the clock of PE 0.
#[derive(Debug)]
pub struct PeTrace {
    /// The number of the job.
    pub job: u64,
    /// The PE.
    pub pe: u32,
    /// The PEs of the job.
    pub n_pes: u32,
    /// Its node.
    pub node: u32,
    /// Records that the ring had no room for: the oldest ones.
    pub dropped: u64,
    /// The others, by begin.
    pub records: Vec<TraceRecord>,
    pub(crate) names: Vec<String>,
}

impl PeTrace {
    /// The records in the bytes of a file.
    ///
    /// # Errors
    /// A sentence, when they are no trace.
    pub fn of_file(bytes: &[u8]) -> Result<PeTrace, String> {
        let words: Vec<u64> = bytes
            .chunks_exact(WORD)
            .map(|word| u64::from_ne_bytes(word.try_into().expect("a word")))
            .collect();
        if words.first() != Some(&MAGIC) || words.len() < RECORDS {
            return Err("it is not the trace of a PE of this version on such a machine".into());
        }
        let begun = words[header::BEGUN];
        let capacity = words[header::CAPACITY] as usize;
        let ring = words[RECORDS..].chunks_exact(RECORD_WORDS);
        if capacity == 0 || ring.len() != capacity {
            return Err("it is damaged: it has another size than it says".into());
        }
        let clock = Clock::of_words(&words[header::CLOCKS..][..4]);
        let oldest = begun.saturating_sub(capacity as u64);
        let is_valid = |number: u64| number > oldest && number <= begun;
        let whole = ring.filter(|words| is_valid(words[record::NUMBER]));
        let mut records: Vec<TraceRecord> = whole.filter_map(TraceRecord::of_words).collect();
        for record in &mut records {
            record.begin = clock.aligned(record.begin);
            record.end = record.end.map(|end| clock.aligned(end));
        }
        records.sort_by_key(|record| {
            (record.begin, std::cmp::Reverse(record.end.unwrap_or(u64::MAX)))
        });
        let names = words[NAMES..][..N_NAMES * NAME_WORDS].chunks_exact(NAME_WORDS).map(name);
        Ok(PeTrace {
            job: words[header::JOB],
            pe: words[header::PE] as u32,
            n_pes: words[header::N_PES] as u32,
            node: words[header::NODE] as u32,
            dropped: oldest,
            records,
            names: names.collect(),
        })
    }

    /// The function that a record names.
    pub fn name(&self, record: &TraceRecord) -> &str {
        self.names.get(usize::from(record.name)).map_or("", String::as_str)
    }
}

fn name(words: &[u64]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// What is to be added to times of a PE: between two known offsets in proportion.
struct Clock {
    first: (f64, f64),
    /// Nanoseconds per nanosecond after the first time.
    drift: f64,
}

impl Clock {
    fn of_words(words: &[u64]) -> Clock {
        let [begin, offset, end, last] = [0, 1, 2, 3].map(|i| words[i].cast_signed() as f64);
        let drift = if end > begin { (last - offset) / (end - begin) } else { 0.0 };
        Clock { first: (begin, offset), drift }
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
        assert_eq!([1000, 1500, 2000].map(|time| clock.aligned(time)), [900, 1500, 2100]);
        let clock = Clock::of_words(&[1000, offset(50), 0, 0]);
        assert_eq!(clock.aligned(5000), 5050);
    }

    #[test]
    fn no_trace_is_refused() {
        assert!(PeTrace::of_file(b"RMTRACE1").is_err());
        assert!(PeTrace::of_file(&[0; 1 << 17]).is_err());
    }
}
