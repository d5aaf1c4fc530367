//! Queries cargo about this repository: its packages, its build directory, and the files of a
//! build.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use cargo_metadata::{Artifact, DependencyKind, Message, MetadataCommand};

use crate::process;

/// The package that is built apart from the others: loom requests features of `tracing` with which
/// everything would be built once more for the tests than for what is installed.
pub const APART: &str = "loom-models";

/// A part of the tests of a set of packages.
#[derive(Default)]
pub struct Selection {
    /// Arguments of cargo that choose targets. Without any, all are built.
    pub targets: Vec<&'static str>,
    /// The packages whose tests are not built, by name.
    pub without: &'static [&'static str],
}

/// The repository in which a task runs, as cargo describes it.
pub struct Workspace {
    /// The top of the repository.
    pub root: PathBuf,
    /// cargo's build directory: CARGO_TARGET_DIR, the one in its configuration, or target/.
    pub target: PathBuf,
    /// The packages of the workspace.
    pub packages: Vec<Package>,
}

/// A set of packages whose tests are built together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packages {
    /// What users build: the default members of the workspace.
    Users,
    /// What only developers of this repository build: the other members, except [`APART`].
    Tools,
    /// The package [`APART`].
    Apart,
}

/// One crate of the workspace.
#[derive(Debug, Clone)]
pub struct Package {
    /// The name by which cargo knows it.
    pub name: String,
    /// The directory of the crate, relative to the top of the repository.
    pub dir: String,
    /// The set with which its tests are built.
    pub set: Packages,
    /// The crate's `rust-version` as `1.2`, without a patch number, if its manifest states one.
    pub rust_version: Option<String>,
    /// All dependencies, those of its tests included.
    pub dependencies: Vec<Dependency>,
    /// True if its library or one of its programs has unit tests.
    pub has_unit_tests: bool,
}

/// A program of tests.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TestProgram {
    /// The directory of its package, relative to the top of the repository.
    pub dir: String,
    /// True if it is a file of the package's directory `tests`; otherwise it holds the unit tests
    /// of a crate.
    pub is_integration: bool,
    /// The name of the file or of the crate.
    pub name: String,
    /// The path of the program.
    pub executable: PathBuf,
}

/// One dependency of a package.
#[derive(Debug, Clone)]
pub struct Dependency {
    /// The name of the package that is depended on.
    pub name: String,
    /// The directory of the dependency, relative to the top, if it is a crate of this repository.
    pub dir: Option<String>,
    /// True if only tests, examples and benches use it.
    pub dev: bool,
}

impl Workspace {
    /// Queries cargo, without access to the network.
    pub fn open() -> Result<Self> {
        let mut ask = MetadataCommand::new();
        let metadata = ask
            .no_deps()
            .other_options(["--offline".to_owned()])
            .exec()?;

        let root = metadata.workspace_root.into_std_path_buf();
        let mut packages = Vec::new();
        for package in &metadata.packages {
            let set = if *package.name == *APART {
                Packages::Apart
            } else if metadata.workspace_default_members.contains(&package.id) {
                Packages::Users
            } else {
                Packages::Tools
            };
            packages.push(Package::read(package, set, &root)?);
        }
        Ok(Self {
            target: metadata.target_directory.into_std_path_buf(),
            root,
            packages,
        })
    }

    /// Returns a command of [`cargo`] at the top of the repository.
    pub fn cargo(&self) -> Command {
        let mut command = cargo();
        command.current_dir(&self.root);
        command
    }

    /// Returns true if the sources are those of a repository, and not of an archive.
    pub fn is_checkout(&self) -> bool {
        self.root.join(".git").exists()
    }

    /// Returns a command of git at the top of the repository.
    pub fn git(&self) -> Command {
        let mut command = Command::new("git");
        command.current_dir(&self.root);
        command
    }

    /// Returns a command of the cargo of another toolchain, by its name in rustup.
    pub fn cargo_of(&self, toolchain: &str) -> Command {
        let mut command = Command::new("rustup");
        command
            .args(["run", toolchain, "cargo"])
            .current_dir(&self.root);
        command
    }

    /// Runs cargo with these arguments, such as `build` or `test --no-run`. Returns all files of
    /// this build, also those that were up to date.
    pub fn build(&self, arguments: &[&str]) -> Result<Vec<PathBuf>> {
        let made = self
            .artifacts(arguments)?
            .into_iter()
            .flat_map(|artifact| artifact.filenames);
        Ok(made.map(PathBuf::from).collect())
    }

    /// Builds the tests of packages. Returns their programs, sorted by package.
    pub fn test_programs(
        &self,
        packages: Packages,
        selection: &Selection,
    ) -> Result<Vec<TestProgram>> {
        let mut arguments = [&["test", "--no-run"], selection.targets.as_slice()].concat();
        for package in &self.packages {
            if package.set == packages && selection.has(package) {
                arguments.extend(["--package", &package.name]);
            }
        }

        let mut programs = Vec::new();
        for artifact in self.artifacts(&arguments)? {
            if artifact.profile.test {
                programs.extend(TestProgram::read(artifact, &self.root)?);
            }
        }
        programs.sort();
        Ok(programs)
    }

    /// Runs cargo with these arguments. Returns its messages about the crates of this build, also
    /// those that were up to date.
    fn artifacts(&self, arguments: &[&str]) -> Result<Vec<Artifact>> {
        let mut cargo = self.cargo();
        cargo
            .args(arguments)
            .arg("--message-format=json-render-diagnostics")
            .stdin(Stdio::null());
        let text = process::capture(&mut cargo)?;

        let mut artifacts = Vec::new();
        for message in Message::parse_stream(text.as_bytes()) {
            if let Message::CompilerArtifact(artifact) = message? {
                artifacts.push(artifact);
            }
        }
        Ok(artifacts)
    }

    /// Returns the `rust-version` of the workspace: the oldest Rust with which every crate builds.
    pub fn rust_version(&self) -> Result<&str> {
        let mut stated = self
            .packages
            .iter()
            .filter_map(|package| package.rust_version.as_deref());
        stated.next().context("no package states a rust-version")
    }
}

impl Selection {
    /// Returns true if tests of this package are built. An option such as `--lib` also builds the
    /// tests of a library whose manifest says that it has none.
    fn has(&self, package: &Package) -> bool {
        let is_chosen = self.targets.is_empty() || package.has_unit_tests;
        is_chosen && !self.without.contains(&package.name.as_str())
    }
}

impl Package {
    fn read(package: &cargo_metadata::Package, set: Packages, root: &Path) -> Result<Self> {
        let dependencies = package.dependencies.iter().map(|found| {
            let path = found.path.as_ref();
            Dependency {
                name: found.name.clone(),
                dir: path.and_then(|path| relative(path.as_std_path(), root)),
                dev: found.kind == DependencyKind::Development,
            }
        });

        let version = package.rust_version.as_ref();
        let rust_version = version.map(|version| format!("{}.{}", version.major, version.minor));

        // The targets of integration tests have no unit tests of the package.
        let mut targets = package.targets.iter();
        let has_unit_tests = targets.any(|target| target.test && !target.is_test());

        Ok(Self {
            name: package.name.to_string(),
            dir: dir_of(package.manifest_path.as_std_path(), root)?,
            set,
            rust_version,
            dependencies: dependencies.collect(),
            has_unit_tests,
        })
    }
}

impl TestProgram {
    /// Returns true if it is the file `name` of the directory `tests` of the package in `dir`.
    pub fn is(&self, dir: &str, name: &str) -> bool {
        self.is_integration && self.dir == dir && self.name == name
    }

    /// Returns the test program of an artifact; `None` if the artifact is no program.
    fn read(artifact: Artifact, root: &Path) -> Result<Option<Self>> {
        let Some(executable) = artifact.executable else {
            return Ok(None);
        };
        Ok(Some(Self {
            dir: dir_of(artifact.manifest_path.as_std_path(), root)?,
            is_integration: artifact.target.is_test(),
            name: artifact.target.name,
            executable: executable.into_std_path_buf(),
        }))
    }
}

/// Returns a command of cargo, the one that runs this program.
pub fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Returns the directory of a manifest, relative to the top of the repository.
fn dir_of(manifest: &Path, root: &Path) -> Result<String> {
    let dir = manifest.parent().and_then(|dir| relative(dir, root));
    dir.context("a package lies outside the repository")
}

fn relative(path: &Path, root: &Path) -> Option<String> {
    let path = path.strip_prefix(root).ok()?;
    Some(path.to_str()?.to_owned())
}
