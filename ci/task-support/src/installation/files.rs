//! The files of a prefix during an installation. They are made in a directory of their own within
//! the prefix, and at the end moved to their places and listed, so that the installation can be
//! removed. An installation that fails before that changes nothing.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};

/// The list of the installed paths, relative to the prefix, one on each line: the files, and the
/// directories that this installation or an earlier one has made.
pub const MANIFEST: &str = "share/rushmem/manifest";

/// The directory of a prefix in which the files are made.
const STAGE: &str = ".rushmem-new";

/// A prefix into which files are being installed. It does not change before [`Prefix::finish`].
pub struct Prefix {
    root: PathBuf,
    /// The prefix and the directories around it that did not exist, the innermost first.
    missing: Vec<PathBuf>,
}

impl Prefix {
    /// Creates the prefix, if it does not exist, and the directory for new files.
    pub fn new(root: &Path) -> Result<Self> {
        let missing = root.ancestors().filter(|dir| !dir.exists());
        let prefix = Self {
            root: root.to_owned(),
            missing: missing.map(Path::to_owned).collect(),
        };

        // An installation that was killed may have left its files. Usually there are none.
        let stage = root.join(STAGE);
        let _ = fs::remove_dir_all(&stage);
        make_dirs(&stage)?;
        Ok(prefix)
    }

    /// Returns the path of a file until [`Prefix::finish`] moves it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(STAGE).join(name)
    }

    /// Copies a file with its mode.
    pub fn copy_file(&self, from: &Path, name: &str) -> Result<()> {
        copy_file(from, &self.add(name)?)
    }

    /// Copies a directory with all of its contents.
    pub fn copy_tree(&self, from: &Path, name: &str) -> Result<()> {
        copy_tree(from, &self.path(name))
    }

    /// Makes a link to a file of the same directory.
    pub fn link(&self, points_at: &str, name: &str) -> Result<()> {
        place_link(points_at, &self.add(name)?)
    }

    /// Writes a file.
    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        write(&self.add(name)?, text)
    }

    /// Makes the directory of a file. Returns the path at which the caller makes the file.
    pub fn add(&self, name: &str) -> Result<PathBuf> {
        let path = self.path(name);
        make_dirs(path.parent().unwrap_or(&self.root))?;
        Ok(path)
    }

    /// Makes a directory and its parent directories.
    pub fn make_dir(&self, name: &str) -> Result<()> {
        make_dirs(&self.path(name))
    }

    /// Moves all files to their places, lists them, and removes files that only an earlier
    /// installation had. All users may read the installed files, whatever the umask.
    pub fn finish(self) -> Result<()> {
        // The list is among the files that it lists. Its text follows.
        self.write(MANIFEST, "")?;
        let stage = self.root.join(STAGE);
        let mut dirs = Vec::new();
        let mut files = Vec::new();
        for name in below(&stage)? {
            if is_dir(&stage.join(&name)) {
                dirs.push(name);
            } else {
                files.push(name);
            }
        }

        let remaining = self.remove_earlier(&files)?;
        let mut made = dirs.clone();
        made.retain(|dir| !self.root.join(dir).exists());
        let mut listed = [&files[..], &remaining, &made].concat();
        listed.sort();
        listed.dedup();
        self.write(MANIFEST, &(listed.join("\n") + "\n"))?;

        for dir in &dirs {
            make_dirs(&self.root.join(dir))?;
        }
        // Directories that existed keep their permissions.
        for dir in &self.missing {
            permit(dir, 0o755)?;
        }
        for dir in &made {
            permit(&self.root.join(dir), 0o755)?;
        }

        for name in &files {
            let from = stage.join(name);
            let to = self.root.join(name);
            if !from.is_symlink() {
                let is_program = from.metadata()?.permissions().mode() & 0o100 != 0;
                permit(&from, if is_program { 0o755 } else { 0o644 })?;
            }
            // A running program keeps the old file, which it has mapped.
            fs::rename(&from, &to).with_context(|| format!("could not place {}", to.display()))?;
        }
        Ok(())
    }

    /// Removes the files of an earlier installation that are not among `files`. Returns the
    /// directories that it made and that remain, since they are not empty.
    fn remove_earlier(&self, files: &[String]) -> Result<Vec<String>> {
        // Without a list there was no installation.
        let earlier = fs::read_to_string(self.root.join(MANIFEST)).unwrap_or_default();
        // The contents of a directory precede the directory.
        let mut earlier: Vec<&str> = earlier.lines().collect();
        earlier.sort_unstable();
        earlier.reverse();

        let mut remaining = Vec::new();
        for name in earlier {
            // The list may have been changed. No line leads out of the prefix.
            let is_inside = Path::new(name)
                .components()
                .all(|part| matches!(part, Component::Normal(_)));
            if !is_inside || files.iter().any(|new| new == name) {
                continue;
            }

            let path = self.root.join(name);
            if is_dir(&path) {
                if fs::remove_dir(&path).is_err() {
                    remaining.push(name.to_owned());
                }
            } else if path.symlink_metadata().is_ok() {
                fs::remove_file(&path)
                    .with_context(|| format!("could not remove {}", path.display()))?;
            }
        }
        Ok(remaining)
    }
}

impl Drop for Prefix {
    fn drop(&mut self) {
        // What cannot be removed is removed by the next installation.
        let _ = fs::remove_dir_all(self.root.join(STAGE));
        for dir in &self.missing {
            // It fails if the directory is not empty, as after an installation.
            let _ = fs::remove_dir(dir);
        }
    }
}

/// Returns the paths of all contents of a directory, relative to it, each directory before its
/// contents.
fn below(dir: &Path) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).with_context(|| format!("could not read {}", dir.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        all.push(name.clone());
        if is_dir(&entry.path()) {
            for inner in below(&entry.path())? {
                all.push(format!("{name}/{inner}"));
            }
        }
    }
    Ok(all)
}

/// Returns true if the path is a directory, but not if it is a link to one.
fn is_dir(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_dir())
}

fn make_dirs(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir)
        .with_context(|| format!("could not make the directory {}", dir.display()))
}

fn permit(path: &Path, mode: u32) -> Result<()> {
    fs::set_permissions(path, Permissions::from_mode(mode))
        .with_context(|| format!("could not set the permissions of {}", path.display()))
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("could not write {}", path.display()))
}

/// Copies a directory with all of its contents; links stay links.
pub fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    make_dirs(to)?;
    for name in below(from)? {
        let from = from.join(&name);
        let to = to.join(&name);
        if is_dir(&from) {
            make_dirs(&to)?;
        } else if from.is_symlink() {
            place_link(fs::read_link(&from)?, &to)?;
        } else {
            copy_file(&from, &to)?;
        }
    }
    Ok(())
}

/// Copies a file with its mode, in place of an existing one.
pub fn copy_file(from: &Path, to: &Path) -> Result<()> {
    // Usually there is none. A copy into an existing file would change it for a program that has
    // mapped it.
    let _ = fs::remove_file(to);
    fs::copy(from, to)
        .with_context(|| format!("could not copy {} to {}", from.display(), to.display()))?;
    Ok(())
}

/// Makes a link, in place of an existing file.
fn place_link(points_at: impl AsRef<Path>, to: &Path) -> Result<()> {
    // Usually there is none.
    let _ = fs::remove_file(to);
    symlink(points_at, to).with_context(|| format!("could not make the link {}", to.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Installs files of these names.
    fn install(root: &Path, names: &[&str]) {
        let prefix = Prefix::new(root).unwrap();
        for name in names {
            prefix.write(name, "text").unwrap();
        }
        prefix.finish().unwrap();
    }

    /// Returns those of these names that exist.
    fn existing<'a>(root: &Path, names: &[&'a str]) -> Vec<&'a str> {
        let mut existing = names.to_vec();
        existing.retain(|name| root.join(name).exists());
        existing
    }

    #[test]
    fn what_only_an_earlier_installation_had_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("prefix");
        let first = ["bin/old", "bin/kept", "old/file", "share/rushmem/old"];
        install(&root, &first);
        fs::write(root.join("bin/users"), "").unwrap();
        install(&root, &["bin/kept", "lib/new"]);

        let names = ["bin/old", "bin/kept", "bin/users", "lib/new", "old", STAGE];
        let left = existing(&root, &names);
        assert_eq!(left, ["bin/kept", "bin/users", "lib/new"]);

        let manifest = fs::read_to_string(root.join(MANIFEST)).unwrap();
        let listed: Vec<&str> = manifest.lines().collect();
        let bin_and_lib = ["bin", "bin/kept", "lib", "lib/new"];
        assert_eq!(listed[..4], bin_and_lib);
        assert_eq!(listed[4..], ["share", "share/rushmem", MANIFEST]);
    }

    #[test]
    fn what_the_documents_say_removes_all_of_it_and_no_more() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir_all(root.join("bin")).unwrap();
        install(root, &["bin/oshcc", "lib/pkgconfig/rushmem.pc"]);

        let command = format!("sort -r {MANIFEST} | xargs rm -fd");
        let mut shell = Command::new("sh");
        let removed = shell.args(["-c", &command]).current_dir(root).output();
        assert!(removed.unwrap().stderr.is_empty());
        let left = existing(root, &["bin", "bin/oshcc", "lib", "share"]);
        assert_eq!(left, ["bin"]);

        // The page may have a line break in the command.
        let page = include_str!("../../../../docs/installing.md").replace("\n|", " |");
        assert!(page.contains(&command));
    }

    #[test]
    fn an_installation_that_fails_leaves_everything_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("new/prefix");
        fail_to_install(&root);
        assert!(!dir.path().join("new").exists());

        install(&root, &["bin/oshrun"]);
        fail_to_install(&root);
        assert_eq!(fs::read_to_string(root.join("bin/oshrun")).unwrap(), "text");
        assert!(existing(&root, &["bin/shmem-info", STAGE]).is_empty());
    }

    /// Begins an installation that ends with an error.
    fn fail_to_install(root: &Path) {
        let prefix = Prefix::new(root).unwrap();
        prefix.write("bin/oshrun", "new").unwrap();
        let missing = Path::new("/no/such/file");
        prefix.copy_file(missing, "bin/shmem-info").unwrap_err();
    }

    /// Runs in a process of its own, since the umask is shared by all tests of a process.
    #[test]
    fn everybody_may_use_what_is_installed_under_any_umask() {
        if let Some(root) = std::env::var_os("INSTALL_UNDER_UMASK").map(PathBuf::from) {
            let prefix = Prefix::new(&root).unwrap();
            for name in ["share/text", "bin/program"] {
                prefix.write(name, "text").unwrap();
            }
            permit(&prefix.path("bin/program"), 0o700).unwrap();
            return prefix.finish().unwrap();
        }

        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("new/prefix");
        let name = concat!(
            "installation::files::tests::",
            "everybody_may_use_what_is_installed_under_any_umask"
        );
        let mut strict = Command::new("sh");
        strict.args(["-c", "umask 077; exec \"$@\"", "sh"]);
        strict.arg(std::env::current_exe().unwrap());
        strict.args(["--exact", name]);
        strict.env("INSTALL_UNDER_UMASK", &root);
        assert!(strict.output().unwrap().status.success());

        for dir in ["..", "", "bin", "share", "share/rushmem"] {
            assert_eq!(mode(&root.join(dir)), 0o755, "{dir}");
        }
        assert_eq!(mode(&root.join("bin/program")), 0o755);
        assert_eq!(mode(&root.join("share/text")), 0o644);
        assert_eq!(mode(&root.join(MANIFEST)), 0o644);
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }
}
