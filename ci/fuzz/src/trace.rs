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
    let (first, second) = input.split_at(input.len() / 2);
    let Some(first) = trace(first) else {
        return;
    };
    let mut job = JobTrace { pes: vec![first] };
    if let Some(second) = trace(second) {
        job.add(second);
    }

    chrome::write(&job, &mut std::io::sink()).expect("nothing fails");
    job.longest_waits(3);
    job.matrix(job.n_pes().div_ceil(2));
    job.missing();
});

/// Returns the trace of a file that is made of a part of the input, if it is one.
fn trace(part: &[u8]) -> Option<PeTrace> {
    let file = file(part)?;
    PeTrace::of_file(&file).ok()
}

/// Returns a file without names, whose header and records are those of a part of the input; `None`
/// if the part is too short for a header.
fn file(part: &[u8]) -> Option<Vec<u8>> {
    let (of_header, records) = part.split_at_checked(IN_HEADER)?;
    let mut file = MAGIC.to_ne_bytes().to_vec();
    file.extend(of_header);
    file.resize(RECORDS * WORD, 0);
    file.extend(records);

    // The right number of records, without which a file is refused before they are read.
    let capacity = (records.len() / (RECORD_WORDS * WORD)) as u64;
    file[header::CAPACITY * WORD..][..WORD].copy_from_slice(&capacity.to_ne_bytes());
    Some(file)
}
