//! The kernel of the guests: that of Debian, with its modules, unpacked from its package without an
//! installation.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use task_support::process;

/// The variable that names a directory with `boot/vmlinuz*` and `lib/modules`, to be used instead.
const KERNEL: &str = "RUSHMEM_VERBS_KERNEL";

/// The parts of the package to unpack.
const PARTS: &[&str] = &[
    "./boot/vmlinuz*",
    "./lib/modules/*/modules.*",
    "./lib/modules/*/kernel/arch/x86/crypto/*",
    "./lib/modules/*/kernel/crypto/*",
    "./lib/modules/*/kernel/drivers/infiniband/*",
    "./lib/modules/*/kernel/drivers/net/net_failover*",
    "./lib/modules/*/kernel/drivers/net/v*",
    "./lib/modules/*/kernel/drivers/virtio/*",
    "./lib/modules/*/kernel/fs/9p/*",
    "./lib/modules/*/kernel/fs/configfs/*",
    "./lib/modules/*/kernel/fs/fscache/*",
    "./lib/modules/*/kernel/fs/netfs/*",
    "./lib/modules/*/kernel/fs/overlayfs/*",
    "./lib/modules/*/kernel/lib/*",
    "./lib/modules/*/kernel/net/*",
];

/// Returns the directory with the kernel and its modules: that which [`KERNEL`] names, or one below
/// `dir`, for which this downloads the package at the first call.
pub fn tree(dir: &Path) -> Result<PathBuf> {
    if let Some(named) = std::env::var_os(KERNEL) {
        return Ok(PathBuf::from(named));
    }
    let tree = dir.join("kernel");
    if tree.is_dir() {
        return Ok(tree);
    }
    if process::on_path("apt-get").is_none() {
        bail!("{KERNEL} can name a directory with boot/vmlinuz* and lib/modules");
    }

    let work = dir.join("kernel.new");
    if work.is_dir() {
        fs::remove_dir_all(&work)?;
    }
    fs::create_dir_all(&work)?;
    let package = download(&work)?;
    unpack(&package, &work)?;
    fs::remove_file(&package)?;

    // The directory gets its name when it is complete.
    fs::rename(&work, &tree)?;
    Ok(tree)
}

/// Downloads the package into an empty directory. Returns its path.
fn download(dir: &Path) -> Result<PathBuf> {
    let package = newest()?;
    println!("Downloading {package} for the guests");
    let mut download = process::limited(Duration::from_secs(600), "apt-get");
    download.args(["download", "-q", &package]);
    process::run(download.current_dir(dir))?;

    let mut files = fs::read_dir(dir)?;
    let file = files.next().context("apt-get downloaded nothing")??;
    Ok(file.path())
}

/// Unpacks [`PARTS`] of the package into a directory, and lists the dependencies of the modules for
/// modprobe.
fn unpack(package: &Path, dir: &Path) -> Result<()> {
    let mut unpack = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(package)
        .stdout(Stdio::piped())
        .spawn()?;
    let archive = unpack.stdout.take().context("dpkg-deb has no output")?;

    // tar fails if this kernel lacks one of the parts. Without modules, `version` fails; without an
    // image, `image` does.
    let _ = Command::new("tar")
        .args(["-x", "--wildcards", "-C"])
        .arg(dir)
        .args(PARTS)
        .stdin(archive)
        .stderr(Stdio::null())
        .status()?;
    unpack.wait()?;

    let mut depmod = Command::new("depmod");
    process::run(depmod.arg("-b").arg(dir).arg(version(dir)?))
}

/// Returns the path of the kernel's image.
pub fn image(tree: &Path) -> Result<PathBuf> {
    for entry in fs::read_dir(tree.join("boot"))? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with("vmlinuz") {
            return Ok(entry.path());
        }
    }
    bail!("{} has no boot/vmlinuz*", tree.display())
}

/// Returns the version of the kernel, which is the name of the directory of its modules.
fn version(tree: &Path) -> Result<String> {
    let mut dirs = fs::read_dir(tree.join("lib/modules"))?;
    let dir = dirs.next().context("no modules")??;
    Ok(dir.file_name().to_string_lossy().into_owned())
}

/// Returns the name of the package of Debian's current kernel.
fn newest() -> Result<String> {
    let mut cache = Command::new("apt-cache");
    let listed = process::capture(cache.args(["depends", "linux-image-amd64"]))?;
    let mut lines = listed.lines();
    let package = lines.find_map(|line| line.trim().strip_prefix("Depends: "));
    let package = package.context("the package manager knows no linux-image-amd64")?;
    Ok(package.to_owned())
}
