//! libFuzzer on the statuses of PEs, which are in memory that the program may overwrite, and on the
//! explanations that are derived from them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rushmem_explain::explain;
use rushmem_explain::snapshot::{PeSnapshot, ProcessState};
use rushmem_explain::status::Status;
use rushmem_explain::{status_slot, writes};

const N_PES: u32 = 4;
/// The time at which the statuses are read. Those of an input may be before it and after it.
const READ_AT: u64 = 1 << 40;

fuzz_target!(|input: &[u8]| {
    status_slot::read(|nbytes| Some(input[..nbytes.min(input.len())].to_vec()));

    // For each PE the input has the size of its status and the status. What follows is also taken
    // as the record of its writes.
    let mut rest = input;
    let mut snapshots = Vec::new();
    for pe in 0..N_PES {
        let Some((&nbytes, later)) = rest.split_first() else {
            break;
        };
        let nbytes = usize::from(nbytes).min(later.len());
        let (bytes, later) = later.split_at(nbytes);
        rest = later;

        let status = Status::decode(bytes);
        if let Some(status) = &status {
            assert_eq!(Status::decode(&status.encode()).as_ref(), Some(status));
        }
        snapshots.push(PeSnapshot {
            status,
            read_at: READ_AT,
            writes: writes::read(|| Some(rest.to_vec())),
            ..PeSnapshot::new(pe, ProcessState::Sleeps)
        });
    }
    explain(N_PES, &snapshots);
});
