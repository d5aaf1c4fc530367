//! The prefix as three packages of Debian and of distributions that use RPM: the runtime, the files
//! that compile C and C++, and those that compile Fortran.
//!
//! The prefix stays one directory, /usr/lib/rushmem. Links in /usr/bin have names that other
//! OpenSHMEM libraries do not use, so that the packages of these can be installed at the same time.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use task_support::process::{capture, run};
use task_support::workspace::Workspace;

use super::release::{self, VERSION, empty_dir, make_atomically, with_path};

/// The directory of the prefix in a package.
const PREFIX: &str = "usr/lib/rushmem";
/// The packages: the names of Debian, which are also those of directories and templates here.
const PACKAGES: [&str; 3] = ["rushmem", "rushmem-dev", "rushmem-fortran"];
/// The indices of the packages.
const RUNTIME: usize = 0;
const DEVELOPMENT: usize = 1;
const FORTRAN: usize = 2;
/// The commands that have a link in /usr/bin, each with the name of the link.
const COMMANDS: [(&str, &str); 7] = [
    ("oshrun", "oshrun.rushmem"),
    ("shmem-info", "shmem-info"),
    ("shmem-perf", "shmem-perf"),
    ("shmem-verify", "shmem-verify"),
    ("oshcc", "oshcc.rushmem"),
    ("oshcxx", "oshcxx.rushmem"),
    ("oshfort", "oshfort.rushmem"),
];

/// The input of all packages, and where they are made.
pub struct Packages<'a> {
    /// The repository, which has the templates of the text files.
    pub workspace: &'a Workspace,
    /// The installed files.
    pub prefix: &'a Path,
    /// The directory in which the packages are made.
    pub output: &'a Path,
    /// The name of the processor in the Linux kernel.
    pub arch: &'a str,
    /// The time that all files get, in seconds.
    pub epoch: &'a str,
}

impl Packages<'_> {
    /// Builds the packages for Debian. Returns their paths.
    pub fn build_deb(&self) -> Result<Vec<PathBuf>> {
        let arch = if self.arch == "aarch64" {
            "arm64"
        } else {
            "amd64"
        };
        let mut packages = Vec::new();
        for (tree, name) in self.make_trees("deb")?.iter().zip(PACKAGES) {
            self.add_debian_files(tree, name, arch)?;
            self.set_times(tree)?;

            let file = self.output.join(format!("{name}_{VERSION}-1_{arch}.deb"));
            let mut deb = Command::new("dpkg-deb");
            deb.args(["--root-owner-group", "-Zxz", "--build"])
                .arg(tree)
                .env("SOURCE_DATE_EPOCH", self.epoch);
            make_atomically(&file, |new| capture(deb.arg(new)).map(drop))?;
            packages.push(file);
        }
        Ok(packages)
    }

    /// Adds the files by which Debian describes a package.
    fn add_debian_files(&self, tree: &Path, name: &str, arch: &str) -> Result<()> {
        let texts = self.workspace.root.join("ci/packaging/debian");
        let documents = tree.join("usr/share/doc").join(name);
        copy(&texts.join("copyright"), &documents.join("copyright"))?;
        self.write_changelog(name, &documents)?;

        let overrides = texts.join(format!("{name}.lintian-overrides"));
        let installed = tree.join("usr/share/lintian/overrides").join(name);
        copy(&overrides, &installed)?;

        let mut du = Command::new("du");
        let size = capture(du.args(["-sk", "--apparent-size"]).arg(tree))?;
        let size = size.split_whitespace().next().unwrap_or("0");
        let control = template(&texts.join(format!("{name}.control")))?
            .replace("@ARCH@", arch)
            .replace("@SIZE@", size)
            .replace("@MODULE@", &self.module()?);
        write(&tree.join("DEBIAN/control"), &control)?;

        if name == PACKAGES[RUNTIME] {
            // dpkg-shlibdeps reads this to make packages of programs depend on the library.
            let library = format!("librushmem 1 rushmem (>= {VERSION})\n");
            write(&tree.join("DEBIAN/shlibs"), &library)?;
        }
        write_sums(tree)
    }

    /// Builds the packages for RPM. Returns their paths.
    pub fn build_rpm(&self) -> Result<Vec<PathBuf>> {
        let dir = self.output.join("rpm");
        let lists = dir.join("lists");
        let trees = self.make_trees("rpm")?;

        // One tree has the files of all packages, and a list of each package names its own.
        let all = dir.join("all");
        with_path(std::fs::create_dir_all(&all), &all)?;
        for (tree, name) in trees.iter().zip(PACKAGES) {
            write(&lists.join(name), &rpm_list(tree)?)?;
            run(Command::new("cp").arg("-a").arg(tree.join(".")).arg(&all))?;
        }
        self.set_times(&all)?;

        let spec = self.workspace.root.join("ci/packaging/rpm/rushmem.spec");
        let spec = template(&spec)?
            .replace("@TREE@", &all.display().to_string())
            .replace("@LISTS@", &lists.display().to_string());
        let file = dir.join("rushmem.spec");
        write(&file, &spec)?;

        let top = format!("_topdir {}", dir.join("top").display());
        let built = dir.join("built");
        let rpms = format!("_rpmdir {}", built.display());
        let names = "_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm";
        let mut build = Command::new("rpmbuild");
        build.args(["-bb", "--quiet", "--target", self.arch]);
        for define in [&top, &rpms, names] {
            build.args(["--define", define]);
        }
        run(build.arg(&file).env("SOURCE_DATE_EPOCH", self.epoch))?;

        let mut packages = Vec::new();
        for name in ["rushmem", "rushmem-devel", "rushmem-fortran"] {
            let file = built.join(format!("{name}-{VERSION}-1.{}.rpm", self.arch));
            packages.push(release::place(&file, self.output)?);
        }
        Ok(packages)
    }

    /// Makes a directory with the files of each package, below the directory `kind` of the output.
    /// Returns these directories, in the order of [`PACKAGES`].
    fn make_trees(&self, kind: &str) -> Result<Vec<PathBuf>> {
        let dir = self.output.join(kind);
        empty_dir(&dir)?;
        let trees = PACKAGES.map(|name| dir.join(name));
        for path in paths(self.prefix)? {
            let file = self.prefix.join(&path);
            if !file.is_dir() {
                let packed = trees[package(&path)].join(PREFIX).join(&path);
                copy(&file, &packed)?;
            }
        }

        for (command, name) in COMMANDS {
            let tree = &trees[package(&Path::new("bin").join(command))];
            let bin = tree.join("usr/bin");
            let link = bin.join(name);
            with_path(std::fs::create_dir_all(&bin), tree)?;
            let points_at = format!("../lib/rushmem/bin/{command}");
            with_path(symlink(points_at, &link), &link)?;

            // The page may be a link to that of another command.
            let page = self.prefix.join(format!("share/man/man1/{command}.1"));
            let page = page.canonicalize().unwrap_or(page);
            let packed = tree.join(format!("usr/share/man/man1/{name}.1"));
            copy(&page, &packed)?;
            compress(&packed)?;
        }
        self.add_outside_prefix(&trees)?;
        Ok(trees.to_vec())
    }

    /// Adds the files outside the prefix by which pkg-config, CMake and man find the library
    /// without PATH. Man pages of routines are in the section `3rushmem`, since Open MPI has pages
    /// of the same routines.
    fn add_outside_prefix(&self, trees: &[PathBuf]) -> Result<()> {
        let development = &trees[DEVELOPMENT];
        let described = template(&self.prefix.join("lib/pkgconfig/rushmem.pc"))?
            .replace("${pcfiledir}/../..", &format!("/{PREFIX}"));
        let packed = development.join("usr/share/pkgconfig/rushmem.pc");
        write(&packed, &described)?;

        let cmake = development.join("usr/lib/cmake/Rushmem");
        with_path(std::fs::create_dir_all(cmake.with_file_name("")), &cmake)?;
        with_path(symlink("../rushmem/lib/cmake/Rushmem", &cmake), &cmake)?;

        for path in paths(&self.prefix.join("share/man"))? {
            let section = match path.extension() {
                Some(end) if end == "3" => "3rushmem",
                Some(end) if end == "7" => "7",
                // The pages of commands are beside the links to these.
                _ => continue,
            };
            let path = Path::new("share/man").join(&path);
            self.add_page(&path, section, &trees[package(&path)])?;
        }
        Ok(())
    }

    /// Adds a man page of the prefix to a section outside of it.
    fn add_page(&self, path: &Path, section: &str, tree: &Path) -> Result<()> {
        let page = self.prefix.join(path);
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let dir = tree.join("usr").join(path.with_file_name(""));
        with_path(std::fs::create_dir_all(&dir), &dir)?;

        if page.is_symlink() {
            let target = with_path(std::fs::read_link(&page), &page)?;
            let packed = target.with_extension(format!("{section}.gz"));
            let link = dir.join(format!("{name}.{section}.gz"));
            return with_path(symlink(packed, &link), &link);
        }

        let title = |section| format!(".TH {} {section} ", name.to_uppercase());
        let text = template(&page)?;
        // Pages of section 7 have no title of section 3, and stay as they are.
        let text = text.replacen(&title("3"), &title("3rushmem"), 1);
        let packed = dir.join(format!("{name}.{section}"));
        write(&packed, &text)?;
        compress(&packed)
    }

    /// Writes the changelog of a Debian package, which refers to that of the project.
    fn write_changelog(&self, name: &str, dir: &Path) -> Result<()> {
        let date = capture(Command::new("date").args(["-uRd", &format!("@{}", self.epoch)]))?;
        let file = dir.join("changelog.Debian");
        let text = format!(
            "{name} ({VERSION}-1) unstable; urgency=medium\n\n  * Release {VERSION}: see /{PREFIX}/share/rushmem/CHANGELOG.md.\n\n \
             -- Rushmem developers <maintainers@localhost.localdomain>  {}\n",
            date.trim()
        );
        write(&file, &text)?;
        compress(&file)
    }

    /// Returns the version of the format of gfortran's module. Each gfortran reads one version
    /// only.
    fn module(&self) -> Result<String> {
        let module = self.prefix.join("include/shmem.mod");
        let text = capture(Command::new("gzip").args(["-dc"]).arg(module))?;
        Ok(text.split('\'').nth(1).unwrap_or_default().to_owned())
    }

    /// Gives all files the time of the release, and permissions that do not depend on the umask.
    fn set_times(&self, tree: &Path) -> Result<()> {
        release::permit_all(tree)?;
        // A library is not a program.
        let libraries = ["-name", "*.so.1", "-exec", "chmod", "a-x", "{}", "+"];
        run(Command::new("find").arg(tree).args(libraries))?;
        let time = format!("@{}", self.epoch);
        let touch = ["-exec", "touch", "-h", "-d", &time, "{}", "+"];
        run(Command::new("find").arg(tree).args(touch))
    }
}

/// Writes the checksums by which `dpkg --verify` finds files that were changed.
fn write_sums(tree: &Path) -> Result<()> {
    let files = paths(tree)?.into_iter().filter(|path| {
        let full = tree.join(path);
        full.is_file() && !full.is_symlink() && !path.starts_with("DEBIAN")
    });
    let sums = capture(Command::new("md5sum").args(files).current_dir(tree))?;
    write(&tree.join("DEBIAN/md5sums"), &sums)
}

/// Copies a file or a link, and makes the directory of the copy.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let dir = to.parent().unwrap_or(to);
    with_path(std::fs::create_dir_all(dir), dir)?;
    if from.is_symlink() {
        let points_at = with_path(std::fs::read_link(from), from)?;
        return with_path(symlink(points_at, to), to);
    }
    with_path(std::fs::copy(from, to).map(drop), from)
}

/// Writes a file, and makes its directory.
fn write(path: &Path, text: &str) -> Result<()> {
    let dir = path.parent().unwrap_or(path);
    with_path(std::fs::create_dir_all(dir), dir)?;
    with_path(std::fs::write(path, text), path)
}

/// Returns the text of a file, with the placeholder of the version replaced.
fn template(path: &Path) -> Result<String> {
    let text = with_path(std::fs::read_to_string(path), path)?;
    Ok(text.replace("@VERSION@", VERSION))
}

/// The beginnings of the paths of files for the development of programs.
const OF_DEVELOPMENT: [&str; 11] = [
    "bin/oshc",
    "bin/oshC",
    "include/",
    "lib/pkgconfig",
    "lib/cmake",
    "share/man/man1/oshc",
    "share/man/man1/oshC",
    "share/man/man3",
    "share/rushmem/examples",
    "share/rushmem/race.specs",
    "share/rushmem/shmem-perf",
];

/// Returns the index in [`PACKAGES`] of the package that has this file of the prefix.
fn package(path: &Path) -> usize {
    let text = path.to_string_lossy();
    let has_end = |ends: &[&str]| ends.iter().any(|end| text.ends_with(end));

    // Examples in Fortran are with those in C.
    let is_example = text.starts_with("share/rushmem/examples");
    let is_fortran = text.contains("oshfort") || has_end(&[".fh", ".f90", ".mod"]);
    if is_fortran && !is_example {
        return FORTRAN;
    }

    // Programs need the library by its soname, which has a further end.
    let is_linked = has_end(&[".a", ".o", ".so"]);
    if is_linked || OF_DEVELOPMENT.iter().any(|start| text.starts_with(start)) {
        return DEVELOPMENT;
    }
    RUNTIME
}

/// Compresses a file. Its name and time are left out, so that equal files give equal archives.
fn compress(file: &Path) -> Result<()> {
    run(Command::new("gzip").args(["-9n", "--force"]).arg(file))
}

/// Returns the list of the files of a package for rpmbuild. Of the directories, it has only those
/// of the prefix, since others belong to the system.
fn rpm_list(tree: &Path) -> Result<String> {
    let mut list = String::new();
    for path in paths(tree)? {
        let full = tree.join(&path);
        let is_dir = full.is_dir() && !full.is_symlink();
        if !is_dir {
            list += &format!("/{}\n", path.display());
        } else if path.starts_with(PREFIX) {
            list += &format!("%dir /{}\n", path.display());
        }
    }
    Ok(list)
}

/// Returns the sorted paths of all contents of a directory, relative to it.
fn paths(dir: &Path) -> Result<Vec<PathBuf>> {
    let listed = capture(
        Command::new("find")
            .args([".", "-mindepth", "1"])
            .current_dir(dir),
    )?;
    let mut paths: Vec<PathBuf> = listed
        .lines()
        .map(|line| PathBuf::from(line.trim_start_matches("./")))
        .collect();
    paths.sort();
    Ok(paths)
}
