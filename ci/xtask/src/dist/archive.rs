//! Archives with reproducible bytes: files are sorted and have one time and owner, so equal
//! contents make equal archives.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use task_support::process::run;
use task_support::workspace::Workspace;

use super::release::{self, VERSION, empty_dir, make_atomically, with_path};

/// The configuration that makes cargo take dependencies from the directory `vendor`.
const VENDORED: &str = "[source.crates-io]\nreplace-with = \"vendored-sources\"\n\n\
                        [source.vendored-sources]\ndirectory = \"vendor\"\n";

/// Returns a command of tar with the options that make archives reproducible.
fn tar(epoch: &str) -> Command {
    let mut tar = Command::new("tar");
    tar.args([
        "--sort=name",
        "--owner=0",
        "--group=0",
        "--numeric-owner",
        "--format=gnu",
    ]);
    tar.arg(format!("--mtime=@{epoch}"))
        .args(["--use-compress-program", "gzip -9n"]);
    tar
}

/// Makes an archive of the directory `name` of `parent`, beside it. Returns the path of the
/// archive.
pub fn pack_dir(parent: &Path, name: &str, epoch: &str) -> Result<PathBuf> {
    let file = parent.join(format!("{name}.tar.gz"));
    make_atomically(&file, |new| {
        run(tar(epoch)
            .arg("-C")
            .arg(parent)
            .arg("-cf")
            .arg(new)
            .arg(name))
    })?;
    Ok(file)
}

/// The sources of a release.
pub struct PackedSources {
    pub archive: PathBuf,
    /// The directory that was packed.
    pub dir: PathBuf,
}

/// Makes an archive of the sources, in a checkout those of the last commit, and of the sources of
/// all dependencies, so that cargo builds them without a network.
pub fn pack_sources(workspace: &Workspace, output: &Path, epoch: &str) -> Result<PackedSources> {
    let name = format!("rushmem-{VERSION}-source");
    let dir = output.join(&name);
    empty_dir(&dir)?;

    let archive = output.join("sources.tar");
    if workspace.is_checkout() {
        run(workspace
            .git()
            .arg("archive")
            .arg("-o")
            .arg(&archive)
            .arg("HEAD"))?;
    } else {
        // The workspace is an unpacked archive, which contains the dependencies.
        run(Command::new("tar")
            .args(["--exclude=./target", "-cf"])
            .arg(&archive)
            .arg("-C")
            .arg(&workspace.root)
            .arg("."))?;
    }

    run(Command::new("tar")
        .arg("-xf")
        .arg(&archive)
        .arg("-C")
        .arg(&dir))?;
    with_path(std::fs::remove_file(&archive), &archive)?;
    if workspace.is_checkout() {
        vendor(&dir)?;
    }
    release::permit_all(&dir)?;
    Ok(PackedSources {
        archive: pack_dir(output, &name, epoch)?,
        dir,
    })
}

/// Adds the sources of all dependencies to `dir`, and the configuration with which cargo uses them.
fn vendor(dir: &Path) -> Result<()> {
    let vendor = [
        "vendor",
        "--locked",
        "--versioned-dirs",
        "--quiet",
        "vendor",
    ];
    run(Command::new("cargo").args(vendor).current_dir(dir))?;

    let cargo = dir.join(".cargo");
    with_path(std::fs::create_dir_all(&cargo), &cargo)?;
    let file = cargo.join("config.toml");
    let known = std::fs::read_to_string(&file).unwrap_or_default();
    with_path(std::fs::write(&file, format!("{known}\n{VENDORED}")), &file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_that_is_not_complete_has_not_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("release.tar.gz");
        // tar writes an archive before it fails.
        pack_dir(dir.path(), "release", "0").unwrap_err();
        assert!(!file.exists());

        std::fs::create_dir(dir.path().join("release")).unwrap();
        assert_eq!(pack_dir(dir.path(), "release", "0").unwrap(), file);
        assert!(file.exists() && !dir.path().join("new-release.tar.gz").exists());
    }
}
