//! Tests of the floors of UCX and libfabric: they are measured in jobs that these libraries
//! connect, and on request.

use std::path::Path;

use shmem_perf::record::{Measure, Record};
use testkit::{Job, absent, prefix};

/// The sizes that `--sizes` names.
const SIZES: [u64; 3] = [8, 8 << 10, 1 << 20];

/// The operations of all floors of networks.
const NETWORKS: [&str; 4] = ["ucp_put", "ucp_get", "fi_write", "fi_read"];

/// Checks that a job of two PEs without shared memory has exactly these floors of networks.
#[track_caller]
fn has_floors(transport: &str, variable: (&str, &str), words: &[&str], names: &[&str]) {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = dir.join(format!("floors-{transport}{}.json", words.len()));
    let outcome = Job::new(prefix().join("bin/shmem-perf"))
        .n(2)
        .args(["--time", "2", "--operations", "put,get"])
        .args(["--sizes", "8,8k,1m"])
        .args(words)
        .arg("--output")
        .arg(file.display())
        .env("SHMEM_ONNODE", "off")
        .env("SHMEM_TRANSPORT", transport)
        .envs(&[variable])
        .run();
    assert_eq!(outcome.code(), 0, "{outcome}");

    let text = std::fs::read_to_string(&file).expect("a record");
    let record: Record = serde_json::from_str(&text).expect("a record");
    assert!(record.complete);
    // A network has two floors, over one path.
    let n_paths = names.len() / 2;
    assert_eq!(record.floors.len(), n_paths, "{outcome}");
    let n_printed = outcome.stdout.matches("\nfloor: ").count();
    assert_eq!(n_printed, n_paths, "{outcome}");

    for measure in [Measure::Latency, Measure::Bandwidth] {
        let mut rows = Vec::new();
        let mut found = Vec::new();
        for series in &record.series {
            let operation = series.operation.as_str();
            if series.measure == measure && NETWORKS.contains(&operation) {
                rows.push(series);
                found.push(operation);
            }
        }
        assert_eq!(found, names, "{measure:?}\n{outcome}");

        for row in rows {
            let sizes: Vec<u64> = row.points.iter().map(|point| point.nbytes).collect();
            assert!(row.is_floor, "{row:?}");
            assert_eq!(sizes, SIZES, "{row:?}");
            for point in &row.points {
                let summary = &point.summary;
                assert!(summary.n > 0 && summary.min > 0.0 && summary.max.is_finite());
            }

            // A megabyte takes at least a microsecond through a socket.
            let large = &row.points[SIZES.len() - 1].summary;
            let is_slow = match measure {
                Measure::Latency => large.min > 1000.0,
                _ => large.max < 1e12,
            };
            assert!(is_slow, "{row:?}");
        }
    }
}

/// Skips the test if a library is not installed, which a program of its package shows.
fn needs(program: &str) {
    if !Path::new("/usr/bin").join(program).exists() {
        absent(format!("{program} is not here"));
    }
}

const UCX: (&str, &str) = ("UCX_TLS", "tcp,self");
const LIBFABRIC: (&str, &str) = ("SHMEM_OFI_PROVIDER", "tcp;ofi_rxm");

mod ucx_sample {
    use super::*;

    pub fn floors_of_ucx_are_beside_it() {
        needs("ucx_info");
        has_floors("ucx", UCX, &[], &["ucp_put", "ucp_get"]);
    }

    pub fn floors_of_ucx_are_had_on_request() {
        needs("ucx_info");
        has_floors("tcp", UCX, &["--floors", "ucx"], &["ucp_put", "ucp_get"]);
        has_floors("tcp", UCX, &[], &[]);
    }

    /// `UCX_TLS=self` does not connect two processes.
    pub fn floors_that_cannot_be_say_why() {
        needs("ucx_info");
        let outcome = Job::new(prefix().join("bin/shmem-perf"))
            .n(2)
            .args(["--time", "0.3", "--operations", "put"])
            .args(["--sizes", "8", "--floors", "ucx"])
            .env("UCX_TLS", "self")
            .run();
        assert_eq!(outcome.code(), 0, "{outcome}");
        let reason = "ucp_put and ucp_get are left out: ";
        assert!(outcome.stdout.contains(reason), "{outcome}");
    }
}

mod ofi_sample {
    use super::*;

    pub fn floors_of_libfabric_are_beside_it() {
        needs("fi_info");
        has_floors("ofi", LIBFABRIC, &[], &["fi_write", "fi_read"]);
    }

    pub fn floors_of_libfabric_are_had_on_request() {
        needs("fi_info");
        has_floors(
            "tcp",
            LIBFABRIC,
            &["--floors", "libfabric"],
            &["fi_write", "fi_read"],
        );
    }
}

testkit::module_tests!(;
    ignored "part of `cargo xtask test --providers`" =>
    ucx_sample::floors_of_ucx_are_beside_it,
    ucx_sample::floors_of_ucx_are_had_on_request,
    ucx_sample::floors_that_cannot_be_say_why,
    ofi_sample::floors_of_libfabric_are_beside_it,
    ofi_sample::floors_of_libfabric_are_had_on_request,
);
