//! Makes the files of a release, and compiles and runs a program with the archive, unpacked
//! elsewhere, with the wheel, in a new Python environment, and with the packages for Debian,
//! unpacked, if they were made. Also checks that the archive of the sources is complete.
//!
//! The test is ignored unless it is requested: it takes minutes.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use task_support::process;
use task_support::task::ABSENT;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Files of the packages that pkg-config, CMake and man find without PATH.
const FOUND_WITHOUT_PATH: [&str; 4] = [
    "usr/share/pkgconfig/rushmem.pc",
    "usr/lib/cmake/Rushmem/RushmemConfig.cmake",
    "usr/share/man/man3/shmem_long_put.3rushmem.gz",
    "usr/share/man/man7/rushmem.7.gz",
];

fn main() -> ExitCode {
    testkit::run(tests())
}

testkit::module_tests! {
    ; ignored "minutes; part of `cargo xtask test --full`" =>
    files_of_a_release,
}

fn files_of_a_release() {
    let output = Path::new(env!("CARGO_TARGET_TMPDIR")).join("release");
    test_files(&output, &make(&output)).unwrap();
}

/// Makes the files in `output`. Returns their checksums and names.
fn make(output: &Path) -> String {
    let mut dist = Command::new(env!("CARGO_BIN_EXE_xtask"));
    dist.args(["dist", "--output"]).arg(output);
    let Output {
        status,
        stdout,
        stderr,
    } = dist.output().unwrap();
    let said = String::from_utf8_lossy(&stderr);
    if status.code() == Some(ABSENT.into()) {
        testkit::absent(said.trim());
    }
    assert!(status.success(), "{said}");
    String::from_utf8(stdout).unwrap()
}

fn test_files(output: &Path, sums: &str) -> Result<()> {
    let named = |end: &str| -> Result<PathBuf> {
        // Each line has a checksum and a name.
        let mut names = sums
            .lines()
            .filter_map(|line| line.split_whitespace().nth(1));
        let name = names.find(|name| name.ends_with(end));
        let name = name.with_context(|| format!("there is no file ..{end}"))?;
        Ok(output.join(name))
    };
    let source = Path::new(ROOT).join("ci/fixtures/prefix/pes.c");

    let archive = named(&format!("{}.tar.gz", std::env::consts::ARCH))?;
    let dir = output.join("unpacked");
    unpack(&archive, &dir)?;
    compile_and_run(&dir, &source)?;

    let wheel = named(".whl")?;
    let environment = output.join("environment");
    process::run(
        Command::new("python3")
            .args(["-m", "venv", "--clear", "--system-site-packages"])
            .arg(&environment),
    )?;
    let mut pip = Command::new(environment.join("bin/pip"));
    process::run(
        pip.args(["install", "--quiet", "--no-index", "--no-deps"])
            .arg(wheel),
    )?;
    compile_and_run(&environment, &source)?;
    run_python(&environment)?;

    test_packages(output, &source)?;
    check_sources(&named("-source.tar.gz")?, &output.join("sources"))
}

/// Runs a Python program on two PEs by the wheel's package, if this machine has NumPy, which the
/// package needs.
fn run_python(environment: &Path) -> Result<()> {
    let python = environment.join("bin/python");
    if !process::succeeds(Command::new(&python).args(["-c", "import numpy"])) {
        return Ok(());
    }

    let program = "import rushmem as rm; x = rm.array(1, 'i8'); x.on(0); print(rm.n_pes(), 'PEs')";
    let limit = Duration::from_secs(60);
    let mut rushmem = process::limited(limit, &python);
    let printed = process::capture(rushmem.args(["-m", "rushmem", "-n", "2", "-c", program]))?;
    if printed != "2 PEs\n2 PEs\n" {
        bail!("the Python package printed {printed:?}");
    }
    Ok(())
}

/// Unpacks an archive into a directory, without the directory that is all that it contains.
fn unpack(archive: &Path, dir: &Path) -> Result<()> {
    process::run(Command::new("mkdir").arg("-p").arg(dir))?;
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(archive).arg("-C").arg(dir);
    process::run(tar.arg("--strip-components=1"))
}

/// Checks that the archive of the sources contains all packages that cargo would otherwise
/// download.
fn check_sources(archive: &Path, dir: &Path) -> Result<()> {
    unpack(archive, dir)?;
    let mut cargo = Command::new("cargo");
    cargo
        .args(["tree", "--offline", "--locked", "--workspace"])
        .current_dir(dir)
        // A directory without downloaded packages.
        .env("CARGO_HOME", dir.join("empty"));
    process::capture(&mut cargo).map(drop)
}

/// Tests the packages for Debian, if there are any, unpacked into one directory.
fn test_packages(output: &Path, source: &Path) -> Result<()> {
    let listed = process::capture(Command::new("find").arg(output).args([
        "-maxdepth",
        "1",
        "-name",
        "*.deb",
    ]))?;
    if listed.is_empty() {
        return Ok(());
    }

    let dir = output.join("debian");
    for package in listed.lines() {
        process::run(Command::new("dpkg-deb").arg("-x").arg(package).arg(&dir))?;
        if process::on_path("lintian").is_some() {
            let fail_on = ["--fail-on", "error,warning", "--allow-root"];
            process::run(Command::new("lintian").args(fail_on).arg(package))?;
        }
    }

    for file in FOUND_WITHOUT_PATH {
        dir.join(file)
            .canonicalize()
            .with_context(|| format!("the packages have no {file}"))?;
    }
    compile_and_run(&dir.join("usr/lib/rushmem"), source)
}

/// Compiles a program with the oshcc of a prefix, and runs it on two PEs.
fn compile_and_run(prefix: &Path, source: &Path) -> Result<()> {
    let program = prefix.join("pes");
    let mut oshcc = Command::new(prefix.join("bin/oshcc"));
    process::run(oshcc.arg(source).arg("-o").arg(&program))?;
    let limit = Duration::from_secs(60);
    let mut oshrun = process::limited(limit, prefix.join("bin/oshrun"));
    let printed = process::capture(oshrun.args(["-n", "2"]).arg(&program))?;
    if printed.trim() != "2 PEs" {
        bail!("{} printed {printed:?}", program.display());
    }
    Ok(())
}
