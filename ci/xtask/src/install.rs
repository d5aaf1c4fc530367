//! `cargo xtask install --prefix DIR`: builds a release and installs it as a prefix, a directory
//! that can be moved.

use std::path::{Path, PathBuf};

use anyhow::Result;
use task_support::installation::{self, MANIFEST};
use task_support::process;
use task_support::workspace::Workspace;

/// The version of all packages.
const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(clap::Args)]
pub struct InstallFlags {
    /// Directory to install into, below the one that the variable DESTDIR may name
    #[arg(long, value_name = "DIR")]
    prefix: PathBuf,
}

pub fn run(InstallFlags { prefix }: InstallFlags) -> Result<()> {
    let prefix = std::path::absolute(prefix)?;
    let root = std::env::var_os("DESTDIR").map(PathBuf::from);
    let staged = staged(&prefix, root);
    installation::into(&Workspace::open()?, &staged)?;

    if staged != prefix {
        println!(
            "The files for {} are in {}.",
            prefix.display(),
            staged.display()
        );
        return Ok(());
    }
    print!("{}", summary(&prefix.display().to_string()));
    if process::on_path("gfortran").is_none() {
        println!("There is no module for Fortran: install gfortran, and run this again.");
    }
    Ok(())
}

/// Returns the directory into which the files of a prefix are installed: below `root` if the
/// variable DESTDIR names one, of which the user makes a package.
fn staged(prefix: &Path, root: Option<PathBuf>) -> PathBuf {
    match root {
        // An absolute path would replace the root, so it is joined without its slash.
        Some(root) if !root.as_os_str().is_empty() => {
            root.join(prefix.strip_prefix("/").unwrap_or(prefix))
        }
        _ => prefix.to_owned(),
    }
}

/// Returns the text that is printed after an installation: the contents and the user's next steps.
fn summary(prefix: &str) -> String {
    format!(
        r#"Rushmem {VERSION} is installed in {prefix}, which may be moved:

  bin       oshcc, oshcxx (also oshc++ and oshCC), oshfort, oshrun, shmem-info, shmem-perf
  include   headers for C, C++ and Fortran
  lib       the library, shared and static, and what pkg-config and CMake read
  share     man pages and completions for shells

To use it:

  export PATH="{prefix}/bin:$PATH"
  oshcc program.c -o program
  oshrun -n 4 ./program

`man oshrun` then works, too; docs/installing.md describes build systems and completions. To remove it, delete the
directory, or only what was installed: (cd "{prefix}" && sort -r {MANIFEST} | xargs rm -fd)
"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_for_packages_is_put_before_the_prefix() {
        let staged = |root| staged(Path::new("/usr/lib/rushmem"), root);
        assert_eq!(
            staged(Some("/tmp/root".into())),
            Path::new("/tmp/root/usr/lib/rushmem")
        );
        assert_eq!(staged(Some("".into())), Path::new("/usr/lib/rushmem"));
        assert_eq!(staged(None), Path::new("/usr/lib/rushmem"));
    }
}
