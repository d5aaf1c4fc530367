//! libFuzzer on the codec of the records and addresses that PEs exchange at start.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rushmem_system::codec::{decode, encode};

/// A value with all types that records consist of. A tuple, since only the types matter here.
type Parts = (
    u64,
    String,
    Option<bool>,
    [u8; 32],
    Vec<(u32, Vec<u8>)>,
    Option<(u32, i32, u64)>,
);

fuzz_target!(|input: &[u8]| {
    if let Ok(record) = decode::<Parts>(input) {
        assert_eq!(decode(&encode(&record)), Ok(record));
    }
});
