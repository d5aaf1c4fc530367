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
    let package = newest()?;
    println!("Downloading {package} for the guests");
    let work = dir.join("kernel.new");
    if work.is_dir() {
        fs::remove_dir_all(&work)?;
    }
    fs::create_dir_all(&work)?;
    let mut download = process::limited(Duration::from_secs(600), "apt-get");
    process::run(
        download
            .args(["download", "-q", &package])
            .current_dir(&work),
    )?;
    let file = fs::read_dir(&work)?
        .next()
        .context("apt-get downloaded nothing")??
        .path();
    let mut unpack = Command::new("dpkg-deb")
        .arg("--fsys-tarfile")
        .arg(&file)
        .stdout(Stdio::piped())
        .spawn()?;
    let archive = unpack.stdout.take().context("dpkg-deb has no output")?;
    // tar fails if this kernel lacks one of the parts. Those that are essential are checked below.
    let _ = Command::new("tar")
        .args(["-x", "--wildcards", "-C"])
        .arg(&work)
        .args(PARTS)
        .stdin(archive)
        .stderr(Stdio::null())
        .status()?;
    unpack.wait()?;
    fs::remove_file(&file)?;
    process::run(
        Command::new("depmod")
            .arg("-b")
            .arg(&work)
            .arg(version(&work)?),
    )?;
    fs::rename(&work, &tree)?;
    Ok(tree)
}

/// Returns the path of the kernel's image.
pub fn image(tree: &Path) -> Result<PathBuf> {
    fs::read_dir(tree.join("boot"))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| {
            path.file_name()
                .is_some_and(|n| n.to_string_lossy().starts_with("vmlinuz"))
        })
        .with_context(|| format!("{} has no boot/vmlinuz*", tree.display()))
}

fn version(tree: &Path) -> Result<String> {
    let dir = fs::read_dir(tree.join("lib/modules"))?
        .next()
        .context("no modules")??;
    Ok(dir.file_name().to_string_lossy().into_owned())
}

/// Returns the name of the package of Debian's current kernel.
fn newest() -> Result<String> {
    process::capture(Command::new("apt-cache").args(["depends", "linux-image-amd64"]))?
        .lines()
        .find_map(|line| line.trim().strip_prefix("Depends: "))
        .map(str::to_owned)
        .context("the package manager knows no linux-image-amd64")
}
