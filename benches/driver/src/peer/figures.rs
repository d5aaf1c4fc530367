//! The names of a record's figures as rows, and their units.

use shmem_perf::record::{Measure, Record};

/// Returns the median of each figure by `MEASURE OPERATION BYTES PES`: nanoseconds, millions of
/// operations per second, GB per second; of a rate or bandwidth also the nanoseconds of one
/// operation, as `time in a stream of OPERATION BYTES PES`. An operation that is issued on contexts
/// or has its target in static memory is one of its own.
pub fn of(found: &Record) -> Vec<(String, f64)> {
    let mut all = Vec::new();
    for series in &found.series {
        let shape = &series.shape;
        let by = if shape.contexts > 0 { " by contexts" } else { "" };
        let to = if shape.memory == "static" { " to static" } else { "" };
        for point in &series.points {
            let value = point.summary.p50;
            let n_pes = found.job.pes.len();
            let which = format!("{}{by}{to} {} {n_pes}", series.operation, point.nbytes);
            let streamed = |ns| (format!("time in a stream of {which}"), ns);
            let (measure, value) = match series.measure {
                Measure::Latency => ("latency", value),
                Measure::Collective => ("collective", value),
                Measure::Event => ("event", value),
                Measure::Overlap => ("overlap", value),
                Measure::MessageRate => {
                    all.push(streamed(1e9 / value));
                    ("rate", value / 1e6)
                }
                Measure::BidirectionalBandwidth => ("bidirectional", value / 1e9),
                Measure::Bandwidth => {
                    all.push(streamed(point.nbytes as f64 / value * 1e9));
                    ("bandwidth", value / 1e9)
                }
            };
            all.push((format!("{measure} {which}"), value));
        }
    }
    all
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Returns a record of two PEs with these series: measure, operation, bytes, median, whether it
    /// is a floor.
    pub fn record(series: &[(&str, &str, u64, f64, bool)]) -> Record {
        let shape = json!({ "n_pes": 2, "pairs": "one", "team_size": null, "contexts": 0, "threads": 1,
            "window": 1, "memory": "heap" });
        let one = |&(measure, operation, nbytes, median, is_floor): &(
            &str,
            &str,
            u64,
            f64,
            bool,
        )| {
            let summary = json!({ "n": 10, "mean": median, "min": median, "p50": median, "p90": median,
                "p99": median, "p999": median, "max": median, "interval": [median, median],
                "batches": [median], "ended": "narrow" });
            let point = json!({ "nbytes": nbytes, "summary": summary, "histogram": [] });
            json!({ "measure": measure, "operation": operation, "is_floor": is_floor,
                "shape": shape.clone(), "points": [point] })
        };
        let series: Vec<Value> = series.iter().map(one).collect();
        let pe = json!({ "host": 0, "cpus": "0" });
        let record = json!({ "format": 1, "tool": "", "date": "", "command": [],
            "library": { "name": "", "standard": "1.4", "transport": null },
            "job": { "hosts": [], "pes": [pe.clone(), pe] }, "settings": [],
            "clock": { "name": "", "overhead_ns": 1.0, "resolution_ns": 1.0 }, "warnings": [],
            "complete": true, "series": series, "matrices": [] });
        serde_json::from_value(record).expect("a record")
    }

    #[test]
    fn figures_have_names_and_units() {
        let found = of(&record(&[
            ("latency", "put", 8, 250.0, false),
            ("message_rate", "put_nbi", 8, 2e6, false),
            ("bandwidth", "socket", 1000, 2e9, true),
        ]));
        let expected = [
            ("latency put 8 2", 250.0),
            ("time in a stream of put_nbi 8 2", 500.0),
            ("rate put_nbi 8 2", 2.0),
            ("time in a stream of socket 1000 2", 500.0),
            ("bandwidth socket 1000 2", 2.0),
        ];
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value)));
    }
}
