//! How many messages must follow one another until a plan is done.

use crate::call::Call::{self, *};
use crate::simulator::run;

fn depth(n: u32, call: Call) -> u32 {
    run(n, &[call], false, 0).expect("a plan that works")
}

/// The logarithm, rounded up.
fn log2(n: u32) -> u32 {
    n.next_power_of_two().ilog2()
}

#[test]
fn rounds_are_as_documented() {
    for n in (1..=130_u32).chain([255, 256, 257, 511, 512, 513, 1023, 1024, 1025]) {
        let fold = if n.is_power_of_two() { 0 } else { 2 };
        let credit = u32::from(n > 1);
        assert_eq!(depth(n, Dissemination), log2(n), "n = {n}");
        assert_eq!(depth(n, Bruck), log2(n), "n = {n}");
        assert!(depth(n, AllReduce) <= n.ilog2() + fold, "n = {n}");
        assert!(depth(n, Broadcast { root: n / 3 }) <= log2(n), "n = {n}");
        assert!(depth(n, InclusiveScan) <= log2(n) + credit, "n = {n}");
        assert!(depth(n, ExclusiveScan) <= log2(n) + 2 * credit, "n = {n}");
        assert!(depth(n, GatherSync) <= 2 * log2(n), "n = {n}");
    }
}

#[test]
fn linear_plans_are_no_worse_than_linear() {
    for n in 1..=40 {
        assert_eq!(depth(n, Ring), n - 1);
        assert_eq!(depth(n, AllToAll), u32::from(n > 1));
    }
}
