//! The suites that there are, each a file.

mod collectives;
mod kernels;
mod network;
mod on_node;
mod start;

use self::collectives::{COLLECTIVES, COLLECTIVES_TCP};
use self::kernels::{KERNELS, KERNELS_TCP};
use self::network::{OFI, TCP, UCX};
pub use self::on_node::ON_NODE;
use self::start::START;
use super::suite::Suite;

/// All there are; the first is the usual one.
pub const ALL: [&Suite; 9] =
    [&ON_NODE, &TCP, &UCX, &OFI, &START, &COLLECTIVES, &COLLECTIVES_TCP, &KERNELS, &KERNELS_TCP];

pub fn named(name: &str) -> Option<&'static Suite> {
    ALL.into_iter().find(|suite| suite.name == name)
}

#[cfg(test)]
mod tests {
    use super::super::table::SuiteRow;
    use super::*;

    #[test]
    fn every_program_that_is_launched_is_built() {
        for suite in ALL {
            let launched = suite.launches.iter().map(|launch| launch.program);
            let programs = suite.programs.iter().map(|(program, _)| *program);
            let costs = suite.costs.iter().map(|(_, program)| *program);
            for program in launched.chain(costs).chain(programs) {
                assert!(
                    program.starts_with('/') || suite.sources.contains(&program),
                    "{program} is not among {:?}",
                    suite.sources
                );
            }
        }
    }

    #[test]
    fn rows_of_shmem_perf_are_of_a_job() {
        for suite in ALL {
            let jobs: Vec<String> = suite.measured.iter().map(|job| job.pes.to_string()).collect();
            let rows = SuiteRow::all(suite.rows);
            for row in rows.iter().filter(|row| row.name.contains(' ')) {
                let pes = row.name.rsplit(' ').next().expect("a word");
                assert!(
                    jobs.iter().any(|job| job == pes),
                    "{}: no job has this number of PEs",
                    row.name
                );
            }
            assert_eq!(jobs.is_empty(), rows.iter().all(|row| !row.name.contains(' ')));
        }
    }

    #[test]
    fn launches_and_costs_have_rows() {
        for suite in ALL {
            let rows = SuiteRow::all(suite.rows);
            let launched = suite.launches.iter().map(|launch| launch.row);
            let costs = suite.costs.iter().map(|(row, _)| *row);
            let kernels = suite.kernels.iter();
            let kernels = kernels.flat_map(|one| one.pes.iter().map(|pes| one.row(*pes)));
            for name in launched.chain(costs).map(str::to_owned).chain(kernels) {
                assert!(rows.iter().any(|row| row.name == name), "{name} has no row");
            }
        }
    }
}
