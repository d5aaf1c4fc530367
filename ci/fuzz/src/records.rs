//! libFuzzer on the codec of what PEs exchange at start: records and addresses of all kinds
//! are such values.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rushmem_wire::{RECORD, decode, encode};

/// The parts of a record.
type Parts = (u64, String, Option<bool>, [u8; 32], Vec<(u32, Vec<u8>)>, Option<(u32, i32, u64)>);

fuzz_target!(|input: &[u8]| {
    if let Ok(record) = decode::<Parts>(RECORD, input) {
        assert_eq!(decode(RECORD, &encode(RECORD, &record)), Ok(record));
    }
});
