//! The programs of the tests on aarch64, whose loads and stores are ordered less than those of
//! x86-64: compiled for it, and run by an emulator of user programs (QEMU).

use anyhow::Result;
use task_support::process;

use super::session::TestSession;
use super::steps;
use super::tools::StepOutcome;
use crate::install::{self, Release};
use crate::toolchain::Toolchain;

const TARGET: &str = "aarch64-unknown-linux-gnu";
const BINUTILS: &str = "aarch64-linux-gnu-";
const EMULATOR: &str = "qemu-aarch64 -L /usr/aarch64-linux-gnu";

/// Builds and installs the release, and runs the programs on 2 and 3 PEs.
pub fn programs(session: &TestSession) -> Result<StepOutcome> {
    let compiler = |name: &str| format!("{BINUTILS}{name}");
    for (tool, package) in
        [("qemu-aarch64".to_owned(), "qemu-user"), (compiler("gcc"), "gcc-aarch64-linux-gnu")]
    {
        if process::on_path(&tool).is_none() {
            return Ok(StepOutcome::Skipped(format!("{tool} is not here (the package {package})")));
        }
    }
    let tools = Toolchain {
        compiler: compiler("gcc"),
        binutils: BINUTILS.to_owned(),
        runner: EMULATOR.to_owned(),
        keeps_debug_information: false,
        epoch: None,
    };
    let prefix = session.workspace.target.join("aarch64-prefix");
    let linker = format!("target.{TARGET}.linker=\"{}\"", tools.compiler);
    let build = ["build", "--release", "--target", TARGET, "--config", &linker];
    let release = Release::build_by(&session.workspace, &build, &[])?;
    install::place_all_by(&session.workspace, &release, &prefix, &tools)?;
    let run = steps::emulated(session)?;
    run.env("RUSHMEM_PREFIX", &prefix)
        .env("RUSHMEM_LAUNCHER", steps::oshrun(session))
        .env("RUSHMEM_EMULATOR", EMULATOR)
        .env("OSHCC_CC", compiler("gcc"))
        .env("OSHCXX_CXX", compiler("g++"))
        .env("OSHFORT_FC", compiler("gfortran"))
        .args(["emulated::", "--ignored"])
        .run()
}
