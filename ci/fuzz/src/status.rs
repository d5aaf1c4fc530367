//! libFuzzer on the statuses of PEs, which are in memory that the program may overwrite, and on the
//! explanations that are derived from them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rushmem_explain::explain;
use rushmem_explain::snapshot::{PeSnapshot, ProcessState};
use rushmem_explain::status::Status;
use rushmem_explain::{status_slot, writes};

const N_PES: u32 = 4;
const READ_AT: u64 = 1 << 40;

fuzz_target!(|input: &[u8]| {
    status_slot::read(|nbytes| input.get(..nbytes.min(input.len())).map(<[u8]>::to_vec));
    let mut rest = input;
    let mut snapshots = Vec::new();
    for pe in 0..N_PES {
        let Some((&nbytes, later)) = rest.split_first() else {
            break;
        };
        let (bytes, later) = later.split_at(later.len().min(nbytes.into()));
        let status = Status::decode(bytes).ok();
        if let Some(status) = &status {
            assert_eq!(Status::decode(&status.encode()).as_ref(), Ok(status));
        }
        rest = later;
        let writes = writes::read(|| Some(rest.to_vec()));
        let snapshot = PeSnapshot::new(pe, ProcessState::Sleeps);
        snapshots.push(PeSnapshot {
            status,
            read_at: READ_AT,
            writes,
            ..snapshot
        });
    }
    explain(N_PES, &snapshots);
});
