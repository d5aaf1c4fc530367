//! The interface through which a job's data must go: a path through memory would be fast and wrong.

use std::fs;

use anyhow::{Context, Result, bail};
use shmem_perf::record::{Measure, Record};

/// Returns the bytes that all programs have sent through an interface.
pub fn carried(interface: &str) -> Result<u64> {
    let file = format!("/sys/class/net/{interface}/statistics/tx_bytes");
    let text = fs::read_to_string(&file).with_context(|| format!("could not read {file}"))?;
    text.trim().parse().with_context(|| format!("{file}: {text}"))
}

/// Checks that an interface has carried at least what the puts of a job moved, since it had carried
/// `before` bytes.
pub fn check(interface: &str, before: u64, found: &Record) -> Result<()> {
    let (carried, moved) = (carried(interface)? - before, moved(found));
    if carried < moved {
        bail!(
            "puts of {moved} bytes do not go through {interface}, which has carried {carried} bytes meanwhile"
        );
    }
    Ok(())
}

fn moved(found: &Record) -> u64 {
    let is_put = |operation: &str| operation == "put" || operation == "put_nbi";
    let puts = found.series.iter().filter(|one| one.measure == Measure::Latency);
    let puts = puts.filter(|one| !one.is_floor && is_put(&one.operation));
    puts.flat_map(|one| &one.points).map(|point| point.nbytes * point.summary.n).sum()
}

#[cfg(test)]
mod tests {
    use super::super::figures::tests::record;
    use super::*;

    #[test]
    fn puts_that_an_interface_has_not_carried_are_refused() {
        let before = carried("lo").expect("every machine has a loopback interface");
        let puts = record(&[
            ("latency", "put", 1 << 40, 1.0, false),
            ("latency", "get", 1 << 41, 1.0, false),
            ("latency", "put", 1 << 42, 1.0, true),
        ]);
        assert_eq!(moved(&puts), 10 << 40);
        let refused = check("lo", before, &puts).expect_err("it is much").to_string();
        assert!(refused.contains("do not go through lo"), "{refused}");
        check("lo", before, &record(&[])).expect("nothing was moved");
        assert!(carried("no-such-interface").is_err());
    }
}
