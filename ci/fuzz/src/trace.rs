//! libFuzzer on the trace files of PEs, which may be incomplete if the PE has died, and on the
//! reports that are made of them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rushmem_trace::chrome;
use rushmem_trace::job::JobTrace;
use rushmem_trace::layout::{MAGIC, RECORD_WORDS, RECORDS, WORD, header};
use rushmem_trace::pe::PeTrace;

/// Bytes of an input that are used as the header, after its first word.
const IN_HEADER: usize = (header::WORDS - 1) * WORD;

fuzz_target!(|input: &[u8]| {
    let halves = input.split_at(input.len() / 2);
    let of = |part| PeTrace::of_file(&file(part)?).ok();
    let (Some(first), second) = (of(halves.0), of(halves.1)) else {
        return;
    };
    let mut job = JobTrace { pes: vec![first] };
    second.into_iter().for_each(|trace| job.add(trace));
    chrome::write(&job, &mut std::io::sink()).expect("nothing fails");
    job.longest_waits(3);
    job.matrix(job.n_pes().div_ceil(2));
    job.missing();
});

/// Returns a file without names that has this header and these records.
fn file(part: &[u8]) -> Option<Vec<u8>> {
    let (of_header, records) = part.split_at_checked(IN_HEADER)?;
    let mut file = MAGIC.to_ne_bytes().to_vec();
    file.extend(of_header);
    file.resize(RECORDS * WORD, 0);
    file.extend(records);
    let capacity = (records.len() / (RECORD_WORDS * WORD)) as u64;
    file[header::CAPACITY * WORD..][..WORD].copy_from_slice(&capacity.to_ne_bytes());
    Some(file)
}
