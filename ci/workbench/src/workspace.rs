//! What cargo knows about this repository: its packages, where it builds, and what a build made.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process;

/// The repository that a task was called in.
pub struct Workspace {
    /// The top of the repository.
    pub root: PathBuf,
    /// Where cargo builds: CARGO_TARGET_DIR, or what its configuration says, or target/.
    pub target: PathBuf,
    /// The packages of the workspace.
    pub packages: Vec<Package>,
}

/// What builds the release and installs it under a prefix. A task that needs an installed prefix is
/// handed it.
pub type Install = fn(&Workspace, &Path) -> Result<()>;

/// One crate of the workspace.
#[derive(Debug, Clone)]
pub struct Package {
    /// Its folder, relative to the top of the repository.
    pub folder: String,
    /// The oldest Rust that it says it builds with.
    pub rust_version: Option<String>,
    /// What it depends on.
    pub dependencies: Vec<Dependency>,
}

/// A program of tests.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TestProgram {
    /// The folder of its package, relative to the top of the repository.
    pub folder: String,
    /// Whether it is a file of the package's folder `tests`; otherwise it holds the unit tests of a
    /// crate.
    pub is_integration: bool,
    /// The name of the file or of the crate.
    pub name: String,
    /// The program itself.
    pub executable: PathBuf,
}

/// One dependency of a package.
#[derive(Debug, Clone)]
pub struct Dependency {
    /// The name of the package that is depended on.
    pub name: String,
    /// Its folder, relative to the top, where it is a crate of this repository.
    pub folder: Option<String>,
    /// Whether only tests, examples and benches see it.
    pub dev: bool,
}

impl Workspace {
    /// Asks cargo, without touching the network.
    pub fn open() -> Result<Self> {
        let text = process::capture(cargo().args([
            "metadata",
            "--no-deps",
            "--offline",
            "--format-version=1",
        ]))?;
        let metadata: Value = serde_json::from_str(&text).context("cargo metadata is no JSON")?;
        let root = PathBuf::from(string(&metadata, "workspace_root")?);
        let packages = list(&metadata, "packages")?
            .iter()
            .map(|package| Package::read(package, &root))
            .collect::<Result<_>>()?;
        Ok(Self { target: PathBuf::from(string(&metadata, "target_directory")?), root, packages })
    }

    /// cargo, the one that runs this program, at the top of the repository.
    pub fn cargo(&self) -> Command {
        let mut command = cargo();
        command.current_dir(&self.root);
        command
    }

    /// cargo of another toolchain, which rustup knows under `toolchain`.
    pub fn cargo_of(&self, toolchain: &str) -> Command {
        let mut command = Command::new("rustup");
        command.args(["run", toolchain, "cargo"]).current_dir(&self.root);
        command
    }

    /// Builds with `arguments` of `cargo build` or `cargo test --no-run`; returns all files that
    /// were made.
    pub fn build(&self, arguments: &[&str]) -> Result<Vec<PathBuf>> {
        let mut made = Vec::new();
        for artifact in self.artifacts(arguments)? {
            made.extend(
                list(&artifact, "filenames")?.iter().filter_map(Value::as_str).map(PathBuf::from),
            );
        }
        Ok(made)
    }

    /// Builds the tests of all packages together; returns their programs, by package.
    pub fn test_programs(&self) -> Result<Vec<TestProgram>> {
        let artifacts = self.artifacts(&["test", "--workspace", "--no-run"])?;
        let read = |artifact: &Value| TestProgram::read(artifact, &self.root).transpose();
        let mut programs: Vec<TestProgram> =
            artifacts.iter().filter_map(read).collect::<Result<_>>()?;
        programs.sort();
        Ok(programs)
    }

    /// What cargo says of each crate that it built with `arguments`.
    fn artifacts(&self, arguments: &[&str]) -> Result<Vec<Value>> {
        let text = process::capture(
            self.cargo()
                .args(arguments)
                .arg("--message-format=json-render-diagnostics")
                .stdin(Stdio::null()),
        )?;
        let mut artifacts = Vec::new();
        for line in text.lines() {
            let message: Value = serde_json::from_str(line)
                .with_context(|| format!("cargo printed a line that is no JSON: {line}"))?;
            if message["reason"] == "compiler-artifact" {
                artifacts.push(message);
            }
        }
        Ok(artifacts)
    }

    /// The Rust that every crate must build with, as the workspace states it.
    pub fn rust_version(&self) -> Result<&str> {
        self.packages
            .iter()
            .find_map(|package| package.rust_version.as_deref())
            .context("no package states a rust-version")
    }
}

impl Package {
    fn read(package: &Value, root: &Path) -> Result<Self> {
        let manifest = PathBuf::from(string(package, "manifest_path")?);
        let folder = manifest.parent().context("a manifest lies nowhere")?;
        let dependencies = list(package, "dependencies")?
            .iter()
            .map(|dependency| {
                Ok(Dependency {
                    name: string(dependency, "name")?,
                    folder: dependency["path"]
                        .as_str()
                        .and_then(|path| relative(Path::new(path), root)),
                    dev: dependency["kind"] == "dev",
                })
            })
            .collect::<Result<_>>()?;
        Ok(Self {
            folder: relative(folder, root).context("a package lies outside the repository")?,
            rust_version: package["rust_version"].as_str().map(str::to_owned),
            dependencies,
        })
    }
}

impl TestProgram {
    /// Whether it is the file `name` of the folder `tests` of the package in `folder`.
    pub fn is(&self, folder: &str, name: &str) -> bool {
        self.is_integration && self.folder == folder && self.name == name
    }

    /// Nothing where the artifact is no program of tests.
    fn read(artifact: &Value, root: &Path) -> Result<Option<Self>> {
        let Some(executable) = artifact["executable"].as_str() else { return Ok(None) };
        if artifact["profile"]["test"] != true {
            return Ok(None);
        }
        let manifest = PathBuf::from(string(artifact, "manifest_path")?);
        let folder = manifest.parent().and_then(|folder| relative(folder, root));
        Ok(Some(Self {
            folder: folder.context("a package lies outside the repository")?,
            is_integration: artifact["target"]["kind"][0] == "test",
            name: string(&artifact["target"], "name")?,
            executable: PathBuf::from(executable),
        }))
    }
}

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn relative(path: &Path, root: &Path) -> Option<String> {
    let path = path.strip_prefix(root).ok()?;
    Some(path.to_str()?.to_owned())
}

fn string(value: &Value, key: &str) -> Result<String> {
    let text = value[key].as_str();
    text.map(str::to_owned).with_context(|| format!("cargo's answer lacks `{key}`"))
}

fn list<'a>(value: &'a Value, key: &str) -> Result<&'a Vec<Value>> {
    value[key].as_array().with_context(|| format!("cargo's answer lacks `{key}`"))
}
