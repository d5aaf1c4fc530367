//! Looks up an operation by its name: its kind, and the floors that bound it.

use crate::record::{Point, Series};

/// A floor is invalid if it takes longer than the operation that it bounds by more than this
/// factor.
const NOISE: f64 = 1.02;

/// Returns the kind of an operation, by which charts are grouped; empty if it has none.
pub fn kind_of(operation: &str) -> &'static str {
    let routine = operation.trim_end_matches("_nbi");
    match routine {
        _ if operation.ends_with("round trip") => "round trips",
        "p" | "g" | "put" | "get" => "puts and gets",
        "add" | "inc" | "set" | "swap" | "compare_swap" | "and" | "or" | "xor" | "fetch" => {
            "atomics"
        }
        _ if routine.starts_with("fetch_") => "atomics",
        _ if ["wait", "signal", "test"]
            .iter()
            .any(|start| routine.starts_with(start)) =>
        {
            "waits and signals"
        }
        _ if ["iput", "iget", "ibput", "ibget", "put_", "get_"]
            .iter()
            .any(|start| routine.starts_with(start)) =>
        {
            "other transfers"
        }
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
    let is_single = series.shape.pairs == "one" && series.shape.threads <= 1;
    let floors = all.iter().filter(|floor| {
        let is_one = floor.is_floor && floor.measure == series.measure;
        is_one && is_single && !series.is_floor && bounds(&floor.operation, &series.operation)
    });
    let points = floors.flat_map(|floor| floor.points.iter().map(move |point| (floor, point)));
    let valid = points.filter(|(floor, found)| {
        found.nbytes == point.nbytes && cost(found) > 0.0 && !is_invalid(all, floor, found)
    });
    let highest = valid.max_by(|a, b| cost(a.1).total_cmp(&cost(b.1)));
    highest.map(|(floor, found)| Bound {
        floor: &floor.operation,
        point: found,
        ratio: cost(point) / cost(found),
    })
}

/// Returns true if this point of `floor` takes longer, beyond noise, than an operation that it
/// should bound; false if `floor` is not a floor.
pub fn is_invalid(all: &[Series], floor: &Series, point: &Point) -> bool {
    let cost = |point: &Point| floor.measure.cost(point.summary.p50);
    floor.is_floor
        && all.iter().any(|series| {
            let bound =
                |other: &Point| other.nbytes == point.nbytes && cost(point) > NOISE * cost(other);
            let is_bounded =
                series.measure == floor.measure && bounds(&floor.operation, &series.operation);
            let is_single = series.shape.pairs == "one" && series.shape.threads <= 1;
            is_bounded && is_single && !series.is_floor && series.points.iter().any(bound)
        })
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
                assert_eq!(
                    is_invalid(&all, &all[1], &all[1].points[0]),
                    is_wrong,
                    "{measure:?}"
                );
                assert!(
                    !is_invalid(&all, &all[2], &all[2].points[0]),
                    "it bounds no put"
                );
                let found = bound(&all, &all[0], &all[0].points[0]);
                let expected = (!is_wrong).then_some("memcpy to peer");
                assert_eq!(found.map(|found| found.floor), expected);
                let several = Series {
                    shape: fixture::pair("all", 2),
                    ..all[0].clone()
                };
                assert!(bound(&all, &several, &several.points[0]).is_none());
            }
        }
    }
}
