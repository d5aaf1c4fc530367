//! libFuzzer on the wire format of the TCP provider.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| rushmem_transport_tcp::fuzzing::run(input));
