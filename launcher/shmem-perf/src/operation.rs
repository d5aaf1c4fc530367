//! Looks up an operation by its name: its kind, and the floors that bound it.

use std::cmp::Ordering;

use crate::record::{Point, Series};

/// A floor is invalid if it takes longer than the operation that it bounds by more than this
/// factor. Without a margin, noise would discard the floor of an operation that is as fast as it.
const NOISE: f64 = 1.02;

/// Returns the kind of an operation, by which charts are grouped; empty if it has none.
pub fn kind_of(operation: &str) -> &'static str {
    let routine = operation.trim_end_matches("_nbi");
    let begins = |starts: &[&str]| starts.iter().any(|start| routine.starts_with(start));
    match routine {
        _ if operation.ends_with("round trip") => "round trips",
        "p" | "g" | "put" | "get" => "puts and gets",
        "add" | "inc" | "set" | "swap" | "compare_swap" | "and" | "or" | "xor" | "fetch" => {
            "atomics"
        }
        _ if begins(&["fetch_"]) => "atomics",
        _ if begins(&["wait", "signal", "test"]) => "waits and signals",
        _ if begins(&["iput", "iget", "ibput", "ibget", "put_", "get_"]) => "other transfers",
        _ => "",
    }
}

/// Returns true if an operation does at least what a floor of the same measure and size does.
pub fn bounds(floor: &str, operation: &str) -> bool {
    let routine = operation.trim_end_matches("_nbi");
    let is_amo = kind_of(operation) == "atomics";
    let returns = routine.starts_with("fetch") || routine.ends_with("swap");
    let writes = matches!(routine, "put" | "iput");
    let reads = matches!(routine, "get" | "iget");
    match floor {
        "store" => matches!(routine, "p" | "set"),
        "load" => matches!(routine, "g" | "fetch"),
        "CPU fetch_add" => is_amo && !matches!(routine, "set" | "fetch"),
        "memcpy to peer" => writes,
        "memcpy from peer" => reads,
        "cache line round trip" | "socket round trip" => operation.ends_with("round trip"),
        "socket" | "socket transfer" => writes || reads || is_amo || matches!(routine, "p" | "g"),
        "ucp_put" | "fi_write" => writes || routine == "p" || (is_amo && !returns),
        "ucp_get" | "fi_read" => reads || routine == "g" || (is_amo && returns),
        _ => false,
    }
}

/// A floor of an operation at a size: its name, its point, and how many times as long the operation
/// takes.
pub struct Bound<'a> {
    /// The floor's name.
    pub floor: &'a str,
    pub point: &'a Point,
    /// The time of the operation, divided by its floor.
    pub ratio: f64,
}

/// Of the valid floors that bound a point, returns the one that takes longest. `all` are the series
/// of the run. Operations of several pairs or threads have no floor, because floors are measured
/// with one of each.
pub fn bound<'a>(all: &'a [Series], series: &Series, point: &Point) -> Option<Bound<'a>> {
    let cost = |point: &Point| series.measure.cost(point.summary.p50);
    let mut highest: Option<Bound> = None;
    for floor in all.iter().filter(|floor| is_bounded(series, floor)) {
        for found in &floor.points {
            // A coarse clock measures a short floor as 0, which bounds nothing.
            let is_valid =
                found.nbytes == point.nbytes && cost(found) > 0.0 && !is_invalid(all, floor, found);
            let is_higher =
                |other: &Bound| cost(found).total_cmp(&cost(other.point)) != Ordering::Less;
            if is_valid && highest.as_ref().is_none_or(is_higher) {
                highest = Some(Bound {
                    floor: &floor.operation,
                    point: found,
                    ratio: cost(point) / cost(found),
                });
            }
        }
    }
    highest
}

/// Returns true if this point of `floor` takes longer, beyond noise, than an operation that it
/// should bound; false if `floor` is not a floor.
pub fn is_invalid(all: &[Series], floor: &Series, point: &Point) -> bool {
    let cost = |point: &Point| floor.measure.cost(point.summary.p50);
    for series in all {
        if !is_bounded(series, floor) {
            continue;
        }
        for other in &series.points {
            if other.nbytes == point.nbytes && cost(point) > NOISE * cost(other) {
                return true;
            }
        }
    }
    false
}

/// Returns true if `series` is of an operation, and `floor` of a floor that bounds it.
fn is_bounded(series: &Series, floor: &Series) -> bool {
    // Floors are measured with one pair and one thread.
    let is_single = series.shape.pairs == "one" && series.shape.threads <= 1;
    is_single
        && floor.is_floor
        && !series.is_floor
        && floor.measure == series.measure
        && bounds(&floor.operation, &series.operation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::record::Measure;

    #[test]
    fn a_floor_bounds_what_does_the_same_and_more() {
        assert!(bounds("store", "p") && bounds("memcpy to peer", "put_nbi"));
        assert!(bounds("socket transfer", "fetch_add") && bounds("fi_read", "fetch_add_nbi"));
        assert!(bounds("cache line round trip", "p round trip"));
        for other in [
            "p round trip",
            "put_signal round trip",
            "get",
            "lock",
            "quiet",
        ] {
            assert!(
                !bounds("store", other) && !bounds("memcpy to peer", other),
                "{other}"
            );
        }
        assert!(!bounds("cache line round trip", "put") && !bounds("ucp_put", "get"));
    }

    #[test]
    fn a_floor_above_the_measurement_is_invalid() {
        let rng = &mut fastrand::Rng::with_seed(1);
        let mut series = |measure, operation: &str, is_floor, value| {
            let shape = fixture::pair("one", 2);
            let made = fixture::series(rng, measure, operation, shape, [(8, value)]);
            Series { is_floor, ..made }
        };
        for (measure, good, bad) in [
            (Measure::Latency, 50.0, 150.0),
            (Measure::Bandwidth, 150.0, 50.0),
        ] {
            for (value, is_wrong) in [(good, false), (bad, true)] {
                let all = [
                    series(measure, "put", false, 100.0),
                    series(measure, "memcpy to peer", true, value),
                    series(measure, "memcpy from peer", true, bad),
                ];
                let [put, to_peer, from_peer] = &all;
                assert_eq!(
                    is_invalid(&all, to_peer, &to_peer.points[0]),
                    is_wrong,
                    "{measure:?}"
                );
                // It bounds no put.
                assert!(!is_invalid(&all, from_peer, &from_peer.points[0]));

                let found = bound(&all, put, &put.points[0]);
                let expected = if is_wrong {
                    None
                } else {
                    Some("memcpy to peer")
                };
                assert_eq!(found.map(|found| found.floor), expected);

                let several = Series {
                    shape: fixture::pair("all", 2),
                    ..put.clone()
                };
                assert!(bound(&all, &several, &several.points[0]).is_none());
            }
        }
    }
}
