//! Files on their way into a prefix: each is replaced at once and listed, so that an installation
//! can be removed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};

/// The list of the installed paths, relative to the prefix, one on each line: the files, and the
/// directories that did not exist before.
pub const MANIFEST: &str = "share/rushmem/manifest";

/// A prefix that is being filled.
pub struct Prefix {
    root: PathBuf,
    /// Everything that was placed, relative to the prefix.
    placed: Vec<String>,
    /// The directories that were made for it.
    made: Vec<String>,
}

impl Prefix {
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), placed: Vec::new(), made: Vec::new() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Copies a file, its mode too.
    pub fn copy_file(&mut self, from: &Path, name: &str) -> Result<()> {
        let to = self.add(name)?;
        copy_file(from, &to)
    }

    /// Copies a directory with all that is in it.
    pub fn copy_tree(&mut self, from: &Path, name: &str) -> Result<()> {
        self.make_dir(name)?;
        self.list(from, name)?;
        copy_tree(from, &self.root.join(name))
    }

    /// Makes a link to a file of the same directory.
    pub fn link(&mut self, points_at: &str, name: &str) -> Result<()> {
        let to = self.add(name)?;
        place_link(points_at, &to)
    }

    /// Writes a file.
    pub fn write(&mut self, name: &str, text: &str) -> Result<()> {
        self.add(name)?;
        self.replace(name, text)
    }

    /// Lists a file that the caller makes at the returned path, in a directory that is there.
    pub fn add(&mut self, name: &str) -> Result<PathBuf> {
        if let Some((dir, _)) = name.rsplit_once('/') {
            self.make_dir(dir)?;
        }
        self.placed.push(name.to_owned());
        Ok(self.root.join(name))
    }

    /// Makes a directory, and those that it is in.
    pub fn make_dir(&mut self, name: &str) -> Result<()> {
        let dirs = Path::new(name).ancestors().filter(|dir| *dir != Path::new(""));
        let absent = dirs.filter(|dir| !self.root.join(dir).exists());
        self.made.extend(absent.map(|dir| dir.display().to_string()));
        let dir = self.root.join(name);
        fs::create_dir_all(&dir)
            .with_context(|| format!("could not make the directory {}", dir.display()))
    }

    /// Writes the list of all that was placed, itself included, and removes what only an earlier
    /// installation had.
    pub fn finish(mut self) -> Result<()> {
        let earlier = fs::read_to_string(self.path(MANIFEST)).unwrap_or_default();
        self.add(MANIFEST)?;
        self.placed.append(&mut self.made);
        // The contents of a directory precede the directory.
        let mut earlier: Vec<&str> = earlier.lines().collect();
        earlier.sort_unstable_by(|a, b| b.cmp(a));
        for name in earlier {
            let path = self.path(name);
            let is_inside = Path::new(name).components().all(|c| matches!(c, Component::Normal(_)));
            if !is_inside || self.placed.iter().any(|new| new == name) {
                continue;
            }
            match path.symlink_metadata() {
                Ok(kind) if !kind.is_dir() => fs::remove_file(&path)
                    .with_context(|| format!("could not remove {}", path.display()))?,
                // One that is still in use remains.
                Ok(_) if fs::remove_dir(&path).is_err() => self.placed.push(name.to_owned()),
                _ => {}
            }
        }
        self.placed.sort();
        let text = self.placed.join("\n") + "\n";
        self.replace(MANIFEST, &text)
    }

    fn replace(&self, name: &str, text: &str) -> Result<()> {
        let to = self.path(name);
        let new = beside(&to);
        fs::write(&new, text)
            .and_then(|()| fs::rename(&new, &to))
            .with_context(|| format!("could not write {}", to.display()))
    }

    fn list(&mut self, from: &Path, name: &str) -> Result<()> {
        let entries =
            fs::read_dir(from).with_context(|| format!("could not read {}", from.display()))?;
        for entry in entries {
            let entry = entry?;
            let name = format!("{name}/{}", entry.file_name().to_string_lossy());
            if entry.file_type()?.is_dir() {
                self.make_dir(&name)?;
                self.list(&entry.path(), &name)?;
            } else {
                self.placed.push(name);
            }
        }
        Ok(())
    }
}

/// Copies a directory with all that is in it; links stay links.
pub fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)
        .with_context(|| format!("could not make the directory {}", to.display()))?;
    let entries =
        fs::read_dir(from).with_context(|| format!("could not read {}", from.display()))?;
    for entry in entries {
        let entry = entry?;
        let target = to.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy_tree(&entry.path(), &target)?;
        } else if kind.is_symlink() {
            place_link(fs::read_link(entry.path())?, &target)?;
        } else {
            copy_file(&entry.path(), &target)?;
        }
    }
    Ok(())
}

/// Copies a file, its mode too. What was there is replaced at once, never written into: programs
/// that run from it keep what they have mapped.
pub fn copy_file(from: &Path, to: &Path) -> Result<()> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn what_only_an_earlier_installation_had_is_removed() {
        let root = std::env::temp_dir().join(format!("rushmem-files-{}", std::process::id()));
        let install = |names: &[&str]| {
            let mut prefix = Prefix::new(&root);
            names.iter().for_each(|name| prefix.write(name, "text").unwrap());
            prefix.finish().unwrap();
        };
        install(&["bin/old", "bin/kept", "old/file"]);
        fs::write(root.join("bin/users"), "").unwrap();
        install(&["bin/kept", "lib/new"]);
        let left = ["bin/old", "bin/kept", "bin/users", "lib/new", "old"];
        let left = left.map(|name| root.join(name).exists());
        let manifest = fs::read_to_string(root.join(MANIFEST)).unwrap();
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(left, [false, true, true, true, false]);
        let dirs = "share\nshare/rushmem\n";
        assert_eq!(manifest, format!("bin\nbin/kept\nlib\nlib/new\n{dirs}{MANIFEST}\n"));
    }

    #[test]
    fn what_the_documents_say_removes_all_of_it_and_no_more() {
        let root = std::env::temp_dir().join(format!("rushmem-removed-{}", std::process::id()));
        fs::create_dir_all(root.join("bin")).unwrap();
        let mut prefix = Prefix::new(&root);
        let names = ["bin/oshcc", "lib/pkgconfig/rushmem.pc"];
        names.iter().for_each(|name| prefix.write(name, "text").unwrap());
        prefix.finish().unwrap();
        let command = format!("sort -r {MANIFEST} | xargs rm -fd");
        let removed = Command::new("sh").args(["-c", &command]).current_dir(&root).output();
        let left = ["bin", "bin/oshcc", "lib", "share"].map(|name| root.join(name).exists());
        fs::remove_dir_all(&root).unwrap();
        assert!(removed.unwrap().stderr.is_empty());
        assert_eq!(left, [true, false, false, false]);
        let page = include_str!("../../../../docs/installing.md");
        assert!(page.contains(&command.replace(" | ", "\n| ")) || page.contains(&command));
    }
}
