//! Records for tests: plausible runs of 16 PEs on 4 hosts, made from a seed.

use fastrand::Rng;

use crate::record::*;
use crate::statistics::{quantile, sorted};

/// The hosts of the runs. The last name is too long for any chart.
pub const HOSTS: [&str; 4] = [
    "node-a01",
    "node-a02",
    "node-b17",
    "gpu-rack7-node12.cluster.example",
];
/// The number of PEs of the runs.
pub const N_PES: u32 = 16;
/// The index in [`HOSTS`] of the host whose NIC is slow.
pub const SLOW: usize = 2;

/// Returns a run with puts, gets, AMOs, rates, collectives, events, floors and matrices. The times
/// of operations are multiplied by `factor`; those of floors and of the slow NIC are not.
pub fn run(seed: u64, factor: f64) -> Record {
    let rng = &mut Rng::with_seed(seed);
    Record {
        series: [
            transfers(rng, factor),
            rates(rng, factor),
            collectives(rng, factor),
        ]
        .concat(),
        matrices: matrices(rng, factor),
        ..empty()
    }
}

/// Returns a complete run without results.
pub fn empty() -> Record {
    let hosts = HOSTS.map(|name| HostInfo {
        name: name.into(),
        cpu: "AMD EPYC 9354 32-Core Processor".into(),
        n_cpus: 64,
        load: 0.0,
        kernel: "6.1.0-18-amd64".into(),
        numa_nodes: vec!["0-31".into(), "32-63".into()],
        nics: vec!["mlx5_0 (NUMA node 1)".into()],
    });
    let pes = (0..N_PES).map(|pe| PeInfo {
        host: pe / 4,
        node: None,
        cpus: format!("{}", pe % 4),
    });
    let setting = |name: &str, value: &str, origin: &str| SettingInfo {
        name: name.into(),
        value: value.into(),
        origin: origin.into(),
    };

    Record {
        format: FORMAT,
        tool: "0.1.0".into(),
        date: "2026-11-21T20:15:00Z".into(),
        command: ["shmem-perf", "-o", "a run.json"].map(String::from).into(),
        launcher: ["oshrun", "-n", "16"].map(String::from).into(),
        library: Library {
            name: "Rushmem 0.1.0".into(),
            standard: "1.6".into(),
            thread_level: Some("single".into()),
            transport: Some("ofi (tcp;ofi_rxm)".into()),
            why: Some("SHMEM_TRANSPORT is ofi".into()),
            below: vec!["ofi: libfabric 1.17".into()],
        },
        job: JobInfo {
            hosts: hosts.into(),
            pes: pes.collect(),
        },
        pairs: vec![Pair { from: 0, to: 1 }],
        settings: vec![
            setting("SHMEM_TRANSPORT", "ofi", "environment"),
            setting("SHMEM_SYMMETRIC_SIZE", "512M", "default"),
        ],
        clock: Clock {
            name: "CLOCK_MONOTONIC".into(),
            overhead_ns: 18.4,
            resolution_ns: 1.0,
        },
        warnings: Vec::new(),
        floors: Vec::new(),
        validated: false,
        complete: true,
        series: Vec::new(),
        matrices: Vec::new(),
    }
}

/// Returns a series with a point for each size and median, whose values vary around the median.
pub fn series(
    rng: &mut Rng,
    measure: Measure,
    operation: &str,
    shape: Shape,
    medians: impl IntoIterator<Item = (u64, f64)>,
) -> Series {
    let is_rate = matches!(
        measure,
        Measure::Bandwidth | Measure::BidirectionalBandwidth | Measure::MessageRate
    );
    let mut points = Vec::new();
    for (nbytes, median) in medians {
        // The tail of the noise is on the bad side: long times, low rates.
        let mut value = || {
            if is_rate {
                median / noise(rng)
            } else {
                median * noise(rng)
            }
        };
        points.push(point(nbytes, (0..400).map(|_| value()).collect()));
    }
    Series {
        measure,
        operation: operation.into(),
        is_floor: false,
        shape,
        points,
    }
}

/// Returns a point with these values, divided into at most 20 batches.
pub fn point(nbytes: u64, values: Vec<f64>) -> Point {
    let batches: Vec<f64> = values
        .chunks(values.len().div_ceil(20).max(1))
        .map(|batch| quantile(&sorted(batch), 0.5))
        .collect();

    let sorted_values = sorted(&values);
    let mut histogram: Vec<ValueCount> = Vec::new();
    for value in &sorted_values {
        let bucket = 10f64.powf((value.max(1e-3).log10() * 40.0).round() / 40.0);
        match histogram.last_mut() {
            Some(last) if last.value == bucket => last.count += 1,
            _ => histogram.push(ValueCount {
                value: bucket,
                count: 1,
            }),
        }
    }

    let sorted_batches = sorted(&batches);
    let mut interval = None;
    if batches.len() >= 6 {
        interval = Some(Interval {
            low: quantile(&sorted_batches, 0.1),
            high: quantile(&sorted_batches, 0.9),
        });
    }

    let q = |part| quantile(&sorted_values, part);
    let mut p999 = None;
    if values.len() >= 1000 {
        p999 = Some(q(0.999));
    }
    let summary = Summary {
        n: values.len() as u64,
        mean: values.iter().sum::<f64>() / values.len().max(1) as f64,
        min: q(0.0),
        p50: quantile(&sorted_batches, 0.5),
        p90: q(0.9),
        p99: q(0.99),
        p999,
        max: q(1.0),
        interval,
        batches,
        ended: Ended::Narrow,
    };

    Point {
        nbytes,
        summary,
        histogram,
        by_pe: None,
        samples: Vec::new(),
    }
}

/// Returns a random factor near 1, which varies by a few percent and has a long tail above.
fn noise(rng: &mut Rng) -> f64 {
    let normal = (0..6).map(|_| rng.f64()).sum::<f64>() - 3.0;
    match rng.u32(0..100) {
        0 => 2.0 + 6.0 * rng.f64(),
        _ => (0.06 * normal).exp(),
    }
}

/// Returns the usual shape of transfers of `n_pes` PEs.
pub fn pair(pairs: &str, n_pes: u32) -> Shape {
    Shape {
        n_pes,
        pairs: pairs.into(),
        contexts: 1,
        threads: 1,
        window: 1,
        memory: "heap".into(),
        ..Shape::default()
    }
}

fn sizes(from: u32, to: u32) -> impl Iterator<Item = u64> {
    (from..=to).map(|log| 1 << log)
}

/// Returns the series of puts, gets and AMOs, and their floors.
fn transfers(rng: &mut Rng, factor: f64) -> Vec<Series> {
    let mut all = latencies(rng, factor);
    // One series lacks a size.
    all[1].points.remove(10);
    all.extend(floors(rng));
    all.extend(bandwidths(rng, factor));
    all.push(overlap(rng, factor));
    all
}

fn latencies(rng: &mut Rng, factor: f64) -> Vec<Series> {
    let mut all = Vec::new();
    let one = pair("one", 2);

    // By the microseconds of the smallest transfer.
    let transfers = [
        ("put", 1.4),
        ("get", 2.3),
        ("put_nbi", 1.2),
        ("get_nbi", 2.2),
        ("put_signal", 1.9),
        ("iput", 3.5),
        ("iget", 9.0),
    ];
    for (operation, start) in transfers {
        let time = |nbytes: u64| factor * (start * 1e3 + nbytes as f64 / 12.0);
        let medians = sizes(0, 22).map(|nbytes| (nbytes, time(nbytes)));
        all.push(series(
            rng,
            Measure::Latency,
            operation,
            one.clone(),
            medians,
        ));
    }

    let amos = [
        "fetch_add",
        "fetch_inc",
        "add",
        "inc",
        "compare_swap",
        "swap",
        "set",
        "fetch",
        "and",
        "fetch_xor",
    ];
    for (i, operation) in amos.into_iter().enumerate() {
        let time = factor * (1100.0 + 160.0 * i as f64);
        all.push(series(
            rng,
            Measure::Latency,
            operation,
            one.clone(),
            [(8, time)],
        ));
    }

    for operation in ["p", "g", "p round trip"] {
        all.push(series(
            rng,
            Measure::Latency,
            operation,
            one.clone(),
            [(8, factor * 1500.0)],
        ));
    }
    all
}

fn floors(rng: &mut Rng) -> [Series; 3] {
    let one = pair("one", 2);
    let mut memcpy = series(
        rng,
        Measure::Latency,
        "memcpy to peer",
        one.clone(),
        sizes(0, 22).map(|nbytes| (nbytes, 6.0 + nbytes as f64 / 14.0)),
    );
    // A coarse clock measures a copy of one byte as 0.
    memcpy.points[0] = point(1, vec![0.0; 40]);

    let socket = series(
        rng,
        Measure::Latency,
        "socket transfer",
        one.clone(),
        sizes(0, 22).map(|nbytes| (nbytes, 9000.0 + nbytes as f64 / 4.0)),
    );
    let line = series(
        rng,
        Measure::Latency,
        "cache line round trip",
        one,
        [(8, 140.0)],
    );
    [memcpy, socket, line].map(|series| Series {
        is_floor: true,
        ..series
    })
}

fn bandwidths(rng: &mut Rng, factor: f64) -> Vec<Series> {
    let mut all = Vec::new();
    for (measure, limit) in [
        (Measure::Bandwidth, 11.5e9),
        (Measure::BidirectionalBandwidth, 21e9),
    ] {
        for (operation, start) in [("put", 2e8), ("get", 1.2e8)] {
            for pairs in ["one", "all"] {
                let shape = Shape {
                    window: 64,
                    ..pair(pairs, if pairs == "one" { 2 } else { 16 })
                };
                let medians = sizes(3, 22).map(|nbytes| {
                    // A message takes the time of 8 bytes at the rate `start`, and the time of all
                    // its bytes at the rate `limit`.
                    let seconds_per_byte = 1.0 / limit + 8.0 / (start * nbytes as f64);
                    (nbytes, 1.0 / factor / seconds_per_byte)
                });
                all.push(series(rng, measure, operation, shape, medians));
            }
        }
    }
    all
}

fn overlap(rng: &mut Rng, factor: f64) -> Series {
    let medians =
        sizes(10, 22).map(|nbytes| (nbytes, (96.0 - 5e4 / nbytes as f64 / factor).max(0.0)));
    let mut overlap = series(rng, Measure::Overlap, "put_nbi", pair("one", 2), medians);
    // No noise exceeds 100 %.
    for point in &mut overlap.points {
        let summary = &mut point.summary;
        for value in [
            &mut summary.mean,
            &mut summary.p50,
            &mut summary.p90,
            &mut summary.p99,
            &mut summary.max,
            &mut summary.interval.as_mut().expect("of 20 batches").high,
        ] {
            *value = value.min(100.0);
        }
    }
    overlap
}

fn rates(rng: &mut Rng, factor: f64) -> Vec<Series> {
    let mut all = Vec::new();
    for (operation, rate) in [
        ("put", 8e6),
        ("get", 5e6),
        ("p", 9e6),
        ("inc", 3e6),
        ("fetch_add", 1.1e6),
    ] {
        for threads in [1, 4] {
            let shape = Shape {
                threads,
                contexts: threads,
                window: 64,
                ..pair("neighbors", 16)
            };

            let rate = f64::from(threads).powf(0.8) * rate / factor;
            let medians = [
                (8, rate),
                (64, rate * 0.97),
                (512, rate * 0.6),
                (4096, rate * 0.15),
            ];
            let n_sizes = if ["inc", "fetch_add", "p"].contains(&operation) {
                1
            } else {
                4
            };

            all.push(series(
                rng,
                Measure::MessageRate,
                operation,
                shape,
                medians.into_iter().take(n_sizes),
            ));
        }
    }
    all
}

fn collectives(rng: &mut Rng, factor: f64) -> Vec<Series> {
    let mut all = Vec::new();
    let operations = [
        ("broadcast", 1.0),
        ("sum_reduce", 2.1),
        ("collect", 3.0),
        ("fcollect", 2.8),
        ("alltoall", 5.0),
    ];

    for team in [2u32, 4, 8, 16] {
        let shape = |pairs: &str| Shape {
            team_size: Some(team),
            ..pair(pairs, 16)
        };

        let rounds = f64::from(team).log2();
        for (operation, cost) in operations {
            let time = |nbytes: u64| factor * cost * rounds * (1800.0 + nbytes as f64 / 9.0);
            let medians = sizes(3, 20).map(|nbytes| (nbytes, time(nbytes)));
            all.push(series(
                rng,
                Measure::Collective,
                operation,
                shape(""),
                medians,
            ));
        }

        for operation in ["barrier", "sync"] {
            let time = factor * 1700.0 * rounds;
            all.push(series(
                rng,
                Measure::Collective,
                operation,
                shape(""),
                [(0, time)],
            ));
        }
    }

    for (operation, time) in [
        ("init", 2.4e8),
        ("finalize", 9e6),
        ("team_split_strided", 6e4),
    ] {
        let shape = Shape {
            n_pes: 16,
            ..Shape::default()
        };
        all.push(series(
            rng,
            Measure::Event,
            operation,
            shape,
            [(0, time * factor)],
        ));
    }
    all
}

fn matrices(rng: &mut Rng, factor: f64) -> Vec<Matrix> {
    let bandwidth = PathFigures {
        within_host: 2.4e10 / factor,
        between_hosts: 1.15e10 / factor,
        slow_host: 4.2e9,
        bad_cable: 1.15e10 / factor / 6.0,
    };
    let latency = PathFigures {
        within_host: 320.0 * factor,
        between_hosts: 1450.0 * factor,
        slow_host: 3900.0,
        bad_cable: 1450.0 * factor * 6.0,
    };

    let bandwidth = matrix(rng, Measure::Bandwidth, 1 << 20, &bandwidth);
    let latency = matrix(rng, Measure::Latency, 8, &latency);
    vec![latency, bandwidth]
}

/// The figures of a matrix by the path between two PEs.
struct PathFigures {
    within_host: f64,
    between_hosts: f64,
    /// From or to the host whose NIC is slow.
    slow_host: f64,
    /// Of a single pair of PEs.
    bad_cable: f64,
}

fn matrix(rng: &mut Rng, measure: Measure, nbytes: u64, figures: &PathFigures) -> Matrix {
    let mut values = Vec::new();
    for from in 0..N_PES as usize {
        let mut row = Vec::new();
        for to in 0..N_PES as usize {
            if from == to {
                row.push(None);
                continue;
            }

            let hosts = [from / 4, to / 4];
            let figure = if (from, to) == (1, 14) {
                figures.bad_cable
            } else if hosts[0] == hosts[1] {
                figures.within_host
            } else if hosts.contains(&SLOW) {
                figures.slow_host
            } else {
                figures.between_hosts
            };

            let noise = 0.97 + 0.06 * rng.f64();
            // One pair has no value, as if there had been no time for it.
            let is_measured = (from, to) != (15, 0);
            row.push(if is_measured {
                Some(figure * noise)
            } else {
                None
            });
        }
        values.push(row);
    }

    Matrix {
        measure,
        operation: "put".into(),
        nbytes,
        values,
    }
}
