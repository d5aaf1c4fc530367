//! libFuzzer on the statuses of PEs, which are in memory that the program may overwrite, and on
//! what is explained from them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rushmem_explain::explain;
use rushmem_explain::report::{OtherThreads, PeReport, ProcessState};
use rushmem_explain::status::Status;
use rushmem_explain::{place, writes};

const N_PES: u32 = 4;
const READ_AT: u64 = 1 << 40;

fuzz_target!(|input: &[u8]| {
    place::read(|nbytes| input.get(..nbytes.min(input.len())).map(<[u8]>::to_vec));
    let mut rest = input;
    let mut reports = Vec::new();
    for pe in 0..N_PES {
        let Some((&nbytes, later)) = rest.split_first() else { break };
        let (bytes, later) = later.split_at(later.len().min(nbytes.into()));
        let status = Status::decode(bytes).ok();
        if let Some(status) = &status {
            assert_eq!(Status::decode(&status.encode()).as_ref(), Ok(status));
        }
        rest = later;
        let (process, values, symbols) = (ProcessState::Sleeps, Vec::new(), Vec::new());
        let (writes, other_threads) =
            (writes::read(|| Some(rest.to_vec())), OtherThreads::default());
        reports.push(PeReport {
            pe,
            process,
            status,
            read_at: READ_AT,
            values,
            symbols,
            writes,
            other_threads,
        });
    }
    explain(N_PES, &reports);
});
