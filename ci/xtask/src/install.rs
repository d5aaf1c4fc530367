//! `cargo xtask install --prefix DIR`: the release as one folder that can be moved.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use lexopt::Arg;

use crate::archive;
use crate::workspace::Workspace;

/// The package that makes librushmem.so and librushmem.a.
const LIBRARY: &str = "rushmem-c";
/// The programs that come with it; each is its package's.
const PROGRAMS: [&str; 2] = ["oshrun", "shmem-info"];
const WRAPPER: &str = "crates/shmem-c/wrappers/oshcc";
const HEADERS: &str = "crates/shmem-c/include";

pub fn run(args: &[String]) -> Result<()> {
    let mut prefix = None;
    let mut parser = lexopt::Parser::from_args(args);
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Long("prefix") => prefix = Some(PathBuf::from(parser.value()?)),
            other => return Err(other.unexpected().into()),
        }
    }
    let Some(prefix) = prefix else {
        bail!("where to? cargo xtask install --prefix DIR");
    };
    let prefix = std::path::absolute(prefix)?;
    into(&Workspace::open()?, &prefix)?;
    println!("Installed in {}", prefix.display());
    Ok(())
}

/// Builds the release and installs it under `prefix`, over whatever an earlier install left there.
pub fn into(workspace: &Workspace, prefix: &Path) -> Result<()> {
    let packages = ["-p", LIBRARY, "-p", PROGRAMS[0], "-p", PROGRAMS[1]];
    let made = workspace.build(&[&["build", "--release"][..], &packages].concat())?;
    let built = |name: &str| {
        made.iter()
            .find(|path| path.file_name().is_some_and(|file| file == name))
            .with_context(|| format!("the release build made no {name}"))
    };
    let bin = prefix.join("bin");
    let lib = prefix.join("lib");
    let include = prefix.join("include");
    for folder in [&bin, &lib, &include] {
        fs::create_dir_all(folder)
            .with_context(|| format!("could not make the folder {}", folder.display()))?;
    }

    let wrapper = workspace.root.join(WRAPPER);
    for name in ["oshcc", "oshcxx", "oshfort"] {
        place(&wrapper, &bin.join(name))?;
    }
    for name in PROGRAMS {
        place(built(name)?, &bin.join(name))?;
    }
    place(built("librushmem.so")?, &lib.join("librushmem.so.1"))?;
    place_link("librushmem.so.1", &lib.join("librushmem.so"))?;
    archive::pack(built("librushmem.a")?, &lib.join("librushmem.a"))?;
    place_tree(&workspace.root.join(HEADERS), &include)
}

/// Copies a folder with all that is in it; links stay links.
pub fn place_tree(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)
        .with_context(|| format!("could not make the folder {}", to.display()))?;
    let entries =
        fs::read_dir(from).with_context(|| format!("could not read {}", from.display()))?;
    for entry in entries {
        let entry = entry?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            place_tree(&entry.path(), &target)?;
        } else if kind.is_symlink() {
            place_link(fs::read_link(entry.path())?, &target)?;
        } else {
            place(&entry.path(), &target)?;
        }
    }
    Ok(())
}

/// Copies a file, its mode too. What was there is replaced at once, never written into: programs that
/// run from it keep what they have mapped.
pub fn place(from: &Path, to: &Path) -> Result<()> {
    let new = beside(to);
    fs::copy(from, &new)
        .and_then(|_| fs::rename(&new, to))
        .with_context(|| format!("could not copy {} to {}", from.display(), to.display()))
}

fn place_link(points_at: impl AsRef<Path>, to: &Path) -> Result<()> {
    let new = beside(to);
    symlink(points_at, &new)
        .and_then(|()| fs::rename(&new, to))
        .with_context(|| format!("could not make the link {}", to.display()))
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".new-{}", std::process::id()));
    PathBuf::from(name)
}
