//! The seed of tests that draw random numbers.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the seed of RUSHMEM_SEED, or else another one in each run. Prints it, so that the output
/// of a test that fails says how to repeat it.
///
/// # Panics
/// If that variable is no number.
pub fn seed() -> u64 {
    let seed = requested().unwrap_or_else(|| {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        since_1970.expect("the clock is set after 1970").as_nanos() as u64
    });
    println!("RUSHMEM_SEED={seed}");
    seed
}

fn requested() -> Option<u64> {
    let text = std::env::var("RUSHMEM_SEED").ok()?;
    match text.parse() {
        Ok(seed) => Some(seed),
        Err(_) => panic!("RUSHMEM_SEED is no number: {text}"),
    }
}
