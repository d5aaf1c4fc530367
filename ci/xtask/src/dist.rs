//! `cargo xtask dist`: makes the files of a release, under target/dist unless `--output` names
//! another directory: the prefix as an archive, as a Python wheel and as packages for Debian and
//! RPM; the sources with those of all dependencies; checksums.
//!
//! The programs are linked against the symbols of an old C library, by zig (`cargo zigbuild`), so
//! that they run on every distribution that has this version or a newer one. [`check`] verifies
//! that they need no newer symbol, and no library that a machine may lack. Two runs with the same
//! sources and tools make equal files.

mod archive;
mod check;
mod dependencies;
mod packages;
mod release;
mod wheel;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result};
use task_support::installation::{self, Release, Toolchain};
use task_support::process::{self, capture};
use task_support::task::Absent;
use task_support::workspace::Workspace;

use packages::Packages;
use release::{GLIBC, VERSION, empty_dir, make_atomically, with_path};

#[derive(clap::Args)]
pub struct DistFlags {
    /// The processor: x86_64 or aarch64
    #[arg(long, default_value = std::env::consts::ARCH)]
    arch: String,
    /// Directory of the files
    #[arg(long, value_name = "DIR", default_value = "target/dist")]
    output: PathBuf,
    /// Make only this, and leave out the licenses of dependencies where a tool for them is missing
    #[arg(long, value_enum, value_name = "KIND")]
    only: Option<FileKind>,
}

/// A kind of files of a release.
#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum FileKind {
    Archive,
    Source,
    Wheel,
    Deb,
    Rpm,
}

/// Makes the files of a release, or only those of one kind, and prints their checksums and names.
pub fn run(DistFlags { arch, output, only }: DistFlags) -> Result<()> {
    let output = std::path::absolute(output)?;
    let sums = make(&Workspace::open()?, &arch, &output, only)?;
    print!("{sums}");
    Ok(())
}

/// Returns a message about the first missing tool that a release needs; those that make packages
/// may be missing.
fn missing() -> Option<String> {
    dependencies::missing().or_else(|| tools_missing(None))
}

/// Returns a message about the first missing tool, of those that build programs and the one that
/// makes packages of the kind `only`. The sources need none of these.
fn tools_missing(only: Option<FileKind>) -> Option<String> {
    let packager = match only {
        Some(FileKind::Source) => return None,
        Some(FileKind::Deb) => Some("dpkg-deb"),
        Some(FileKind::Rpm) => Some("rpmbuild"),
        _ => None,
    };
    if let Some(tool) = packager
        && process::on_path(tool).is_none()
    {
        return Some(format!("{tool} is not here, which makes these packages"));
    }
    if process::on_path("gfortran").is_none() {
        return Some("gfortran is not here, which makes the module of Fortran".to_owned());
    }
    for (name, command) in [
        ("cargo-zigbuild", &["cargo-zigbuild", "--version"][..]),
        ("ziglang", &["python3", "-m", "ziglang", "version"]),
        ("wheel", &["python3", "-m", "wheel", "version"]),
    ] {
        if !process::succeeds(Command::new(command[0]).args(&command[1..])) {
            return Some(format!("{name} is not here: pip install {name}"));
        }
    }
    None
}

/// Makes all files, or one kind of them, in `output`. Returns their checksums and names. If all are
/// made, leaves out packages whose tool is missing.
fn make(
    workspace: &Workspace,
    arch: &str,
    output: &Path,
    only: Option<FileKind>,
) -> Result<String> {
    let no_licenses = dependencies::missing();
    let missing = if only.is_some() {
        tools_missing(only)
    } else {
        missing()
    };
    if let Some(missing) = missing {
        return Err(Absent(missing).into());
    }

    with_path(std::fs::create_dir_all(output), output)?;
    let epoch = epoch(workspace)?;
    if only == Some(FileKind::Source) {
        let sources = archive::pack_sources(workspace, output, &epoch)?;
        return write_sums(output, &[sources.archive]);
    }

    let name = format!("rushmem-{VERSION}-linux-{arch}");
    let prefix = output.join(&name);
    empty_dir(&prefix)?;
    install(workspace, arch, &prefix, &epoch)?;

    let mut made = Vec::new();
    if let Some(missing) = no_licenses {
        eprintln!("The licenses of dependencies are left out, so do not publish this: {missing}");
    } else {
        let sources = archive::pack_sources(workspace, output, &epoch)?;
        dependencies::install(workspace, &sources.dir, &prefix, arch, &epoch)?;
        dependencies::license_linked(workspace, &prefix)?;
        if only.is_none() {
            made.push(sources.archive);
        }
    }
    release::permit_all(&prefix)?;

    let is_wanted = |kind| only.is_none_or(|only| only == kind);
    if is_wanted(FileKind::Archive) {
        made.push(archive::pack_dir(output, &name, &epoch)?);
    }
    if is_wanted(FileKind::Wheel) {
        made.push(wheel::pack_prefix(
            workspace, &prefix, output, arch, &epoch,
        )?);
    }

    let packages = Packages {
        workspace,
        prefix: &prefix,
        output,
        arch,
        epoch: &epoch,
    };
    if is_wanted(FileKind::Deb) && is_here("dpkg-deb") {
        made.extend(packages.build_deb()?);
    }
    if is_wanted(FileKind::Rpm) && is_here("rpmbuild") {
        made.extend(packages.build_rpm()?);
    }
    write_sums(output, &made)
}

/// Writes the checksums of files to SHA256SUMS in `output`. Returns the text, which has the names
/// of the files, too.
fn write_sums(output: &Path, made: &[PathBuf]) -> Result<String> {
    let names = made.iter().filter_map(|path| path.file_name());
    let sums = capture(Command::new("sha256sum").args(names).current_dir(output))?;
    let list = output.join("SHA256SUMS");
    make_atomically(&list, |new| with_path(std::fs::write(new, &sums), new))?;
    Ok(sums)
}

/// Returns the time that all files of the release get, in seconds: that of the last commit, or in
/// an unpacked archive of the sources that of its files.
fn epoch(workspace: &Workspace) -> Result<String> {
    if workspace.is_checkout() {
        let time = capture(workspace.git().args(["log", "-1", "--format=%ct"]))?;
        return Ok(time.trim().to_owned());
    }
    let file = workspace.root.join("Cargo.lock");
    let time = with_path(file.metadata().and_then(|found| found.modified()), &file)?;
    let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(since_epoch.as_secs().to_string())
}

/// Returns true if a tool that makes packages is installed; otherwise prints that it is missing.
fn is_here(tool: &str) -> bool {
    let is_here = process::on_path(tool).is_some();
    if !is_here {
        eprintln!("{tool} is not here: no packages of its kind are made");
    }
    is_here
}

/// Returns the directory in which cargo keeps the sources of dependencies. Messages of panics name
/// paths in it.
fn home() -> Result<String> {
    if let Ok(home) = std::env::var("CARGO_HOME") {
        return Ok(home);
    }
    let home = std::env::var("HOME")
        .context("neither CARGO_HOME nor HOME is set: set one to where cargo keeps its files")?;
    Ok(format!("{home}/.cargo"))
}

/// Builds the release for the old C library, installs it without debug information, and checks it.
fn install(workspace: &Workspace, arch: &str, prefix: &Path, epoch: &str) -> Result<()> {
    let target = format!("{arch}-unknown-linux-gnu");
    let paths = format!(
        "target.{target}.rustflags = [\"--remap-path-prefix={}=/cargo\"]",
        home()?
    );
    let build = [
        "zigbuild",
        "--release",
        "--config",
        &paths,
        "--target",
        &format!("{target}.{GLIBC}"),
    ];
    let release = Release::build(workspace, &build)?;

    let mut tools = Toolchain {
        compiler: format!("python3 -m ziglang cc -lunwind -target {arch}-linux-gnu.{GLIBC}"),
        binutils: String::new(),
        runner: String::new(),
        keeps_debug_information: false,
        epoch: Some(epoch.to_owned()),
    };
    if arch != std::env::consts::ARCH {
        tools.binutils = format!("{arch}-linux-gnu-");
        tools.runner = format!("qemu-{arch} -L /usr/{arch}-linux-gnu");
    }
    installation::install_release(workspace, &release, prefix, &tools)?;
    for file in ["LICENSE-MIT", "LICENSE-APACHE", "README.md", "CHANGELOG.md"] {
        installation::copy_file(
            &workspace.root.join(file),
            &prefix.join("share/rushmem").join(file),
        )?;
    }
    check::check_prefix(prefix, GLIBC, &tools)
}
