//! `shmem-perf` built for Open MPI's OpenSHMEM, which has version 1.4 of the standard.

use std::path::Path;

use shmem_perf::record::{Measure, Record};
use testkit::{Job, absent, prefix};

/// The operations on active sets that both libraries have.
const SETS: &str = "max_to_all,broadcast64,fcollect64";

mod mpirun {
    use super::*;

    /// Uses absolute paths, since another library may be earlier in PATH.
    pub fn measures_another_library() {
        let oshcc = "/usr/bin/oshcc";
        let launcher = "/usr/bin/mpirun.openmpi";
        for path in [oshcc, launcher] {
            if !Path::new(path).exists() {
                absent(
                    "Open MPI's OpenSHMEM is not here (the packages openmpi-bin and libopenmpi-dev)",
                );
            }
        }

        let dir = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let program = dir.join("perf-open-mpi");
        let record = dir.join("open-mpi.json");
        let outcome = Job::direct(prefix().join("bin/shmem-perf"))
            .args(["build", "--oshcc", oshcc, "-o"])
            .arg(program.display())
            .run();
        assert_eq!(outcome.code(), 0, "{outcome}");

        let measured = |words: &[&str]| -> Record {
            let outcome = Job::direct(launcher)
                .args(["--allow-run-as-root", "--oversubscribe", "-n", "2"])
                .arg(program.display())
                .arg("-o")
                .arg(record.display())
                .args(words)
                // Its memory hooks crash in finalize on some systems.
                .env("OMPI_MCA_memory", "^patcher")
                .run();
            assert_eq!(outcome.code(), 0, "{outcome}");
            let text = std::fs::read_to_string(&record).expect("a record");
            serde_json::from_str(&text).expect("a record")
        };

        let sets = measured(&["--time", "1", "--operations", SETS, "--sizes", "8,8k"]);
        let mut names: Vec<&str> = sets
            .series
            .iter()
            .map(|one| one.operation.as_str())
            .collect();
        names.sort_unstable();
        let expected = [
            "broadcast64 and barrier_all",
            "fcollect64 and barrier_all",
            "max_to_all",
        ];
        assert_eq!(names, expected);

        let record = measured(&[
            &["--time", "2", "--max-bytes", "4k"][..],
            &["--growth", "8", "--contexts", "1"],
        ]
        .concat());
        assert!(record.complete);
        let name = &record.library.name;
        assert!(name.starts_with("Open MPI "), "{name}");
        for (measure, operation) in [
            (Measure::Latency, "put"),
            (Measure::Latency, "put_fence_p round trip"),
            (Measure::Bandwidth, "put_nbi"),
            (Measure::Collective, "sum_reduce"),
        ] {
            let is_measured = record
                .series
                .iter()
                .any(|series| series.measure == measure && series.operation == operation);
            assert!(is_measured, "{measure:?} of {operation}");
        }
    }
}

testkit::module_tests!(; ignored "part of `cargo xtask test --providers`" => mpirun::measures_another_library,);
