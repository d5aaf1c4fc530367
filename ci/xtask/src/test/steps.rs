//! The steps of the tiers, one function each. The lists at the top are what grows.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::tools::{self, run_tests};
use super::{Outcome, Session};
use crate::needs::{
    BINUTILS, C_COMPILER, CLANG, CXX_COMPILER, FORTRAN_COMPILER, GDB, HWLOC, VALGRIND,
};
use crate::{codegen, counts, install, needs, process, symbols, tidy};

/// Tests that need no process, as arguments of `cargo miri test`.
const MIRI: &[&[&str]] = &[
    &["-p", "rushmem-collectives", "--lib"],
    // A record of the largest size takes Miri two minutes.
    &["-p", "rushmem-bootstrap", "--lib", "proto", "--", "--skip", "the_largest_record"],
    &["-p", "rushmem-runtime", "--lib", "combine"],
];

/// For each line of [`MIRI`], in the short tier and in the full one: how long it may take, and how many
/// cases a property is tried with.
const MIRI_EFFORT: [(Duration, &str); 2] =
    [(Duration::from_secs(300), "4"), (Duration::from_secs(3600), "64")];

pub fn needs(_: &Session) -> Result<Outcome> {
    needs::ensure(&[&C_COMPILER, &CXX_COMPILER, &BINUTILS])?;
    // Without them some tests are skipped, no more: a developer who is not root can do with that.
    match needs::ensure(&[&VALGRIND, &FORTRAN_COMPILER, &CLANG, &GDB, &HWLOC]) {
        Ok(()) => Ok(Outcome::Passed),
        Err(error) => Ok(Outcome::Skipped(format!("in part: {error:#}"))),
    }
}

pub fn format(session: &Session) -> Result<Outcome> {
    passed(session.workspace.cargo().args(["fmt", "--all", "--check"]))
}

pub fn clippy(session: &Session) -> Result<Outcome> {
    let mut cargo = session.workspace.cargo();
    passed(cargo.args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}

pub fn docs(session: &Session) -> Result<Outcome> {
    let mut cargo = session.workspace.cargo();
    passed(cargo.args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))
}

pub fn tidy(_: &Session) -> Result<Outcome> {
    tidy::run(&[]).map(|()| Outcome::Passed)
}

pub fn generated(_: &Session) -> Result<Outcome> {
    codegen::run(&["--check".to_owned()])?;
    Ok(Outcome::Passed)
}

pub fn install(session: &Session) -> Result<Outcome> {
    install::into(&session.workspace, &session.prefix)?;
    println!("{}", session.prefix.display());
    Ok(Outcome::Passed)
}

pub fn tests(session: &Session) -> Result<Outcome> {
    let mut cargo = session.workspace.cargo();
    passed(
        cargo
            .args(["test", "--workspace", "--no-fail-fast"])
            .env("RUSHMEM_PREFIX", &session.prefix),
    )
}

pub fn symbols(session: &Session) -> Result<Outcome> {
    let prefix = session.prefix.to_str().context("the prefix is no UTF-8")?;
    symbols::run(&[prefix.to_owned()])?;
    Ok(Outcome::Passed)
}

pub fn counts(session: &Session) -> Result<Outcome> {
    if process::on_path(VALGRIND.program).is_none() {
        return Ok(Outcome::Skipped("valgrind is not here".into()));
    }
    counts::check(&session.workspace, &session.prefix).map(|()| Outcome::Passed)
}

pub fn miri(session: &Session) -> Result<Outcome> {
    if let Err(error) = tools::miri(session.full) {
        return Ok(Outcome::Skipped(format!("{error:#}")));
    }
    let (limit, cases) = MIRI_EFFORT[usize::from(session.full)];
    for arguments in MIRI {
        let mut cargo = process::limited(limit, "rustup");
        run_tests(
            cargo
                .args(["run", "nightly", "cargo", "miri", "test"])
                .args(*arguments)
                .current_dir(&session.workspace.root)
                .env("MIRIFLAGS", "-Zmiri-disable-isolation")
                .env("PROPTEST_CASES", cases)
                .env_remove("RUSTUP_TOOLCHAIN"),
        )?;
    }
    Ok(Outcome::Passed)
}

/// No PE shares memory with another.
pub fn off_node(session: &Session) -> Result<Outcome> {
    programs(session, "off_node::")
}

/// Some PEs share memory, some do not.
pub fn virtual_nodes(session: &Session) -> Result<Outcome> {
    programs(session, "virtual_nodes::")
}

/// The test programs in a setting that the plain tier leaves out.
fn programs(session: &Session, setting: &str) -> Result<Outcome> {
    let mut cargo = session.workspace.cargo();
    run_tests(
        cargo
            .args(["test", "-p", "rushmem-c", "--test", "programs", setting])
            .args(["--", "--ignored"])
            .env("RUSHMEM_PREFIX", &session.prefix),
    )?;
    Ok(Outcome::Passed)
}

pub fn soak(session: &Session) -> Result<Outcome> {
    let mut cargo = session.workspace.cargo();
    run_tests(
        cargo
            .args(["test", "--workspace", "--lib", "--bins", "--tests"])
            .args(["--", "--ignored"])
            .env("RUSHMEM_PREFIX", &session.prefix),
    )?;
    Ok(Outcome::Passed)
}

pub fn oldest_rust(session: &Session) -> Result<Outcome> {
    let version = session.workspace.rust_version()?;
    if let Err(error) = tools::toolchain(version) {
        return Ok(Outcome::Skipped(format!("{error:#}")));
    }
    let mut cargo = session.workspace.cargo_of(version);
    passed(
        cargo
            .args(["check", "--workspace", "--all-targets"])
            .env("CARGO_TARGET_DIR", session.workspace.target.join("oldest-rust")),
    )
}

fn passed(command: &mut Command) -> Result<Outcome> {
    process::run(command).map(|()| Outcome::Passed)
}
