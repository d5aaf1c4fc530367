//! libFuzzer on the parsers of text from users and the kernel: settings, tables of algorithms, sets
//! of CPUs.
#![no_main]

use std::time::Instant;

use libfuzzer_sys::fuzz_target;
use rushmem_bootstrap::time_limit;
use rushmem_collectives::choice::Table;
use rushmem_system::devices::NicName;
use rushmem_system::log::Filter;
use rushmem_topology::CpuSet;

fuzz_target!(|text: &str| {
    if let Some(limit) = time_limit::parse(text) {
        assert!(
            Instant::now().checked_add(3 * limit).is_some(),
            "a limit can be added to a time"
        );
    }
    if let Some(name) = NicName::parse(text) {
        assert_eq!(NicName::parse(&name.to_string()), Some(name));
    }
    if let Some(cpus) = CpuSet::parse(text) {
        assert_eq!(CpuSet::parse(&cpus.to_string()), Some(cpus));
    }
    Filter::parse(text);
    let _ = Table::default().read(text);
});
