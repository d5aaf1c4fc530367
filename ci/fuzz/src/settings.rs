//! libFuzzer on the values of environment variables: each is accepted or refused without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rushmem_runtime::settings::{ALL, Settings};

fuzz_target!(|input: (u8, &str)| {
    // The number of a variable, and its value. All other variables are unset.
    let (number, text) = input;
    let set = ALL[usize::from(number) % ALL.len()].name;
    let settings = Settings::read(|name| {
        if name == set {
            Some(text.to_owned())
        } else {
            None
        }
    });

    if let Ok(settings) = settings {
        let sizes = settings.virtual_nodes.sizes(64);
        assert!(
            sizes.is_none_or(|sizes| sizes.iter().sum::<u32>() == 64),
            "all PEs have a node"
        );
    }
});
