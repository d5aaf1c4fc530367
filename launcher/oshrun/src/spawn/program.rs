//! The program that PEs run: its executable and library, the environment on other hosts, and the
//! debugger around it.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use object::elf::{DT_NEEDED, FileHeader64};
use object::read::elf::FileHeader;
use object::{Endianness, ReadCache};
use rustix::fs::{Access, StatVfsMountFlags, statvfs};
use serde::{Deserialize, Serialize};

use crate::errors::{StartFailure, reason};

/// The soname of Rushmem's library.
const LIBRARY: &str = "librushmem.so.1";

/// The starts of the sonames of other OpenSHMEM libraries, and whose they are.
const OTHER_LIBRARIES: [(&str, &str); 3] = [
    ("liboshmem.so", "Open MPI"),
    ("libsma.so", "Sandia OpenSHMEM or Cray"),
    ("libshmem.so", "OSSS-UCX"),
];

/// Variables that are not forwarded to other hosts; a trailing `*` matches any suffix.
const NOT_FORWARDED: &[&str] = &[
    // Variables that describe the host.
    "HOST",
    "HOSTNAME",
    "HOSTTYPE",
    "MACHTYPE",
    "OSTYPE",
    // Variables of the login session.
    "_",
    "DBUS_SESSION_BUS_ADDRESS",
    "LOGNAME",
    "MAIL",
    "OLDPWD",
    "SHELL",
    "SHLVL",
    "SSH_*",
    "STY",
    "SUDO_*",
    "TMUX",
    "TMUX_PANE",
    "USER",
    "WINDOW",
    "XDG_RUNTIME_DIR",
    "XDG_SEAT",
    "XDG_SESSION_*",
    "XDG_VTNR",
    // Variables that connect this process to the launcher that has started it.
    "PMI_*",
    "PMIX_*",
    "OSHRUN_JOB",
    "OSHRUN_SET",
    "RUSHMEM_LIVENESS",
    "RUSHMEM_MEMORY",
    "RUSHMEM_SOCKET",
    "SHMEM_LOCAL_ID",
    // Variables that describe a task of Slurm.
    "SLURMD_NODENAME",
    "SLURM_GTIDS",
    "SLURM_LOCALID",
    "SLURM_NODEID",
    "SLURM_PROCID",
    "SLURM_TASK_PID",
    "SLURM_TOPOLOGY_*",
];

/// Languages whose compiler is one of Rushmem, by the suffixes of their files.
const SOURCES: [(&[&str], &str); 3] = [
    (&["c"], "oshcc"),
    (&["cc", "cpp", "cxx", "C"], "oshc++"),
    (&["f", "F", "f90", "F90", "f03", "f08"], "oshfort"),
];

/// Finds the executable as a shell does: a name without a slash is searched in `path`.
///
/// # Errors
/// Status 127 if there is no such file, 126 if it cannot be executed.
pub fn find(program: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, StartFailure> {
    if program.as_bytes().contains(&b'/') {
        check_file(Path::new(program))?;
        return Ok(PathBuf::from(program));
    }

    let mut files = Vec::new();
    for dir in path.map(std::env::split_paths).into_iter().flatten() {
        let file = dir.join(program);
        if file.is_file() {
            files.push(file);
        }
    }

    // A file that cannot be executed does not hide one in a later directory.
    if let Some(file) = files.iter().find(|file| is_executable(file)) {
        return Ok(file.clone());
    }
    if let Some(file) = files.first() {
        return Err(not_executable(file));
    }

    let here = Path::new(program);
    if here.is_file()
        && let Some(sentence) = source(here)
    {
        return Err(StartFailure {
            status: 126,
            sentence,
        });
    }
    let shown = program.to_string_lossy();
    let here = if here.is_file() {
        format!("; did you mean ./{shown}?")
    } else {
        String::new()
    };
    Err(StartFailure {
        status: 127,
        sentence: format!("the program {shown} was not found in PATH{here}"),
    })
}

/// Checks that a file can be executed.
fn check_file(file: &Path) -> Result<(), StartFailure> {
    let shown = file.display();
    let metadata = std::fs::metadata(file).map_err(|error| {
        let status = if error.kind() == io::ErrorKind::NotFound {
            127
        } else {
            126
        };
        StartFailure {
            status,
            sentence: format!("cannot run {shown}: {}", reason(&error)),
        }
    })?;

    if metadata.is_dir() {
        return Err(StartFailure {
            status: 126,
            sentence: format!("{shown} is a directory, not a program"),
        });
    }
    if !is_executable(file) {
        return Err(not_executable(file));
    }
    Ok(())
}

/// Checks that a program is not linked with another OpenSHMEM library. That library would not find
/// the other PEs, so each would run as a job of its own. Debian's Open MPI has an `oshcc`, too, so
/// this mistake is easy to make.
///
/// # Errors
/// Status 126 if it is. A script, or a program that cannot be read, is not examined.
pub fn check_library(file: &Path) -> Result<(), StartFailure> {
    let needed = needed_libraries(file).unwrap_or_default();
    if needed.iter().any(|library| library == LIBRARY) {
        return Ok(());
    }

    for (start, owner) in OTHER_LIBRARIES {
        if let Some(library) = needed.iter().find(|library| library.starts_with(start)) {
            let shown = file.display();
            return Err(StartFailure {
                status: 126,
                sentence: format!(
                    "{shown} is linked with {library} of {owner}, so that each PE would be a job of its own; \
                     compile it with the oshcc beside this oshrun, or start it with the launcher of {owner}"
                ),
            });
        }
    }
    Ok(())
}

/// Returns the names of the libraries with which an executable is linked (DT_NEEDED); `None` if the
/// file is no ELF file of 64 bits or cannot be read.
fn needed_libraries(file: &Path) -> Option<Vec<String>> {
    // Reads only the parts that are asked for, since executables may be large.
    let data = ReadCache::new(File::open(file).ok()?);
    let header = FileHeader64::<Endianness>::parse(&data).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, &data).ok()?;
    let table = sections.dynamic_table(endian, &data).ok()?;

    let mut names = Vec::new();
    for entry in table.iter() {
        if entry.tag == DT_NEEDED
            && let Ok(name) = table.string(entry)
        {
            names.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    Some(names)
}

/// Returns the executable of this process, to start it in another role. The link in /proc is
/// resolved unless the file has been removed: under valgrind, the link itself executes valgrind.
pub fn own_file() -> PathBuf {
    let link = PathBuf::from("/proc/self/exe");
    match std::fs::read_link(&link) {
        Ok(file) if file.exists() => file,
        _ => link,
    }
}

fn is_executable(file: &Path) -> bool {
    rustix::fs::access(file, Access::EXEC_OK).is_ok()
}

fn not_executable(file: &Path) -> StartFailure {
    let shown = file.display();
    let mounted = statvfs(file);
    let is_noexec = mounted.is_ok_and(|mount| mount.f_flag.contains(StatVfsMountFlags::NOEXEC));
    let sentence = if is_noexec {
        format!(
            "{shown} cannot be executed: its file system is mounted with noexec; copy it to another one"
        )
    } else if let Some(sentence) = source(file) {
        sentence
    } else {
        format!("{shown} is not executable; chmod +x {shown} if it is a program")
    };
    StartFailure {
        status: 126,
        sentence,
    }
}

/// Returns the message about a file that is the source of a program; `None` if it is another file.
fn source(file: &Path) -> Option<String> {
    let suffix = file.extension()?.to_str()?;
    let (_, compiler) = SOURCES
        .iter()
        .find(|(suffixes, _)| suffixes.contains(&suffix))?;

    let shown = file.display();
    let program = file.with_extension("");
    // A shell would search a name without a directory in PATH.
    let start = if program.components().count() > 1 {
        program.display().to_string()
    } else {
        format!("./{}", program.display())
    };
    Some(format!(
        "{shown} is a source file; compile it (for example, {compiler} {shown} -o {}) and start {start}",
        program.display()
    ))
}

/// Returns the LD_LIBRARY_PATH with which PEs find the library in oshrun's prefix; `None` if the
/// library is not there.
///
/// The directory is appended, so that directories of the user have precedence. The loader searches
/// DT_RUNPATH afterwards, so a program that was built with another installation gets a library with
/// the protocol of this oshrun.
pub fn library_path(oshrun: &Path, current: Option<&OsStr>) -> Option<OsString> {
    let dir = oshrun.parent()?.parent()?.join("lib");
    if !dir.join(LIBRARY).exists() {
        return None;
    }

    let mut path = current.unwrap_or_default().to_os_string();
    // An empty entry would denote the current directory.
    if !path.is_empty() {
        path.push(":");
    }
    path.push(dir);
    Some(path)
}

/// Returns the variables of this process that are forwarded to other hosts, where they override
/// those of the login: all except [`NOT_FORWARDED`].
pub fn forwarded_variables() -> Vec<(OsString, OsString)> {
    std::env::vars_os()
        .filter(|(name, _)| is_forwarded(name))
        .collect()
}

/// Returns the working directory as the user's shell names it, since symbolic links may differ
/// between hosts.
pub fn working_dir() -> io::Result<PathBuf> {
    let dir = std::env::current_dir()?;
    // The variable may be left from another directory, if no shell has set it.
    if let Some(shown) = std::env::var_os("PWD").map(PathBuf::from)
        && shown.is_absolute()
        && is_same_file(&shown, &dir)
    {
        return Ok(shown);
    }
    Ok(dir)
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    match (std::fs::metadata(one), std::fs::metadata(other)) {
        (Ok(one), Ok(other)) => one.dev() == other.dev() && one.ino() == other.ino(),
        _ => false,
    }
}

fn is_forwarded(name: &OsStr) -> bool {
    !NOT_FORWARDED
        .iter()
        .any(|entry| match entry.strip_suffix('*') {
            Some(start) => name.as_bytes().starts_with(start.as_bytes()),
            None => name == OsStr::new(entry),
        })
}

/// The PEs that run under gdb: each in an xterm if there is a display, otherwise in batch mode,
/// where gdb prints a backtrace if a signal stops the PE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Debugged {
    All,
    Some(Vec<u32>),
}

impl std::str::FromStr for Debugged {
    type Err = String;

    fn from_str(text: &str) -> Result<Debugged, String> {
        if text == "all" {
            return Ok(Debugged::All);
        }

        let mut pes = Vec::new();
        for word in text.split(',') {
            let pe = word
                .parse()
                .map_err(|_| "it must be a list of PE numbers separated by commas".to_string())?;
            pes.push(pe);
        }
        Ok(Debugged::Some(pes))
    }
}

impl Debugged {
    /// Checks that the job has each of these PEs.
    pub fn check(&self, n_pes: u32) -> Result<(), StartFailure> {
        if let Debugged::Some(pes) = self
            && let Some(pe) = pes.iter().find(|pe| **pe >= n_pes)
        {
            let last = n_pes - 1;
            return Err(StartFailure::usage(format!(
                "--gdb names PE {pe}, but the last PE of this job is PE {last}"
            )));
        }
        Ok(())
    }

    /// Returns the command that runs `file` as this PE under a debugger; `None` if the PE has no
    /// debugger.
    pub fn command(
        &self,
        pe: u32,
        has_display: bool,
        file: &Path,
        arguments: &[OsString],
    ) -> Option<Vec<OsString>> {
        if let Debugged::Some(pes) = self
            && !pes.contains(&pe)
        {
            return None;
        }

        let title = format!("PE {pe}");
        let window = ["xterm", "-T", &title, "-e", "gdb", "-q", "--args"];
        // If the program exits, gdb returns its exit status. If a signal stops it, gdb prints a
        // backtrace and fails. The streams of gdb's Python are removed: it would flush them when
        // oshrun terminates gdb, and print a traceback of its own.
        let batch = [
            "gdb",
            "-q",
            "-batch",
            "-return-child-result",
            "-iex",
            "set debuginfod enabled off",
            "-iex",
            "set confirm off",
            "-iex",
            "python import sys; sys.stdout = sys.stderr = None",
            "-ex",
            "run",
            "-ex",
            "python if gdb.selected_inferior().pid: gdb.execute('bt'); gdb.execute('quit 1')",
            "--args",
        ];
        let debugger: &[&str] = if has_display { &window } else { &batch };

        let mut words: Vec<OsString> = debugger.iter().map(OsString::from).collect();
        words.push(file.as_os_str().to_owned());
        words.extend(arguments.iter().cloned());
        Some(words)
    }
}

/// Returns true if xterm can open windows: there is a display, and xterm is in the path.
pub fn has_display(display: Option<&OsStr>, path: Option<&OsStr>) -> bool {
    let Some(path) = path else {
        return false;
    };
    display.is_some_and(|display| !display.is_empty())
        && std::env::split_paths(path).any(|dir| dir.join("xterm").is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_as_in_a_shell() {
        let path = Some(OsStr::new("/nonexistent:/bin:/usr/bin"));
        assert_eq!(find(OsStr::new("sh"), path), Ok(PathBuf::from("/bin/sh")));
        assert_eq!(
            find(OsStr::new("/bin/sh"), None),
            Ok(PathBuf::from("/bin/sh"))
        );
    }

    #[test]
    fn programs_that_cannot_run_have_the_status_of_a_shell() {
        let path = Some(OsStr::new("/etc:/bin"));
        for (program, status) in [
            ("no-such-program", 127),
            ("/no/such", 127),
            ("/etc", 126),
            ("/etc/os-release", 126),
            ("os-release", 126),
        ] {
            let failure = find(OsStr::new(program), path).expect_err(program);
            assert_eq!(failure.status, status, "{failure:?}");
            assert!(failure.sentence.contains(program), "{failure:?}");
        }
        assert_eq!(
            find(OsStr::new("sh"), None).expect_err("no PATH").status,
            127
        );
    }

    #[test]
    fn a_source_file_is_to_be_compiled() {
        for (file, end) in [
            ("ring.c", "oshcc ring.c -o ring) and start ./ring"),
            (
                "./ring.cpp",
                "oshc++ ./ring.cpp -o ./ring) and start ./ring",
            ),
            (
                "/a/ring.f90",
                "oshfort /a/ring.f90 -o /a/ring) and start /a/ring",
            ),
        ] {
            let sentence = source(Path::new(file)).expect(file);
            assert!(sentence.ends_with(end), "{sentence}");
        }
        assert_eq!(source(Path::new("ring.sh")), None);
        assert_eq!(source(Path::new("c")), None);
    }

    #[test]
    fn the_library_directory_comes_last() {
        let prefix = std::env::temp_dir().join(format!("oshrun-prefix-{}", std::process::id()));
        let oshrun = prefix.join("bin/oshrun");
        assert_eq!(library_path(&oshrun, None), None);
        std::fs::create_dir_all(prefix.join("lib")).expect("a directory");
        std::fs::write(prefix.join("lib").join(LIBRARY), "").expect("a file");
        let lib = prefix.join("lib").into_os_string();
        assert_eq!(library_path(&oshrun, None), Some(lib.clone()));
        assert_eq!(
            library_path(&oshrun, Some(OsStr::new(""))),
            Some(lib.clone())
        );
        let mut both = OsString::from("/a:/b:");
        both.push(lib);
        assert_eq!(library_path(&oshrun, Some(OsStr::new("/a:/b"))), Some(both));
        std::fs::remove_dir_all(prefix).expect("own directory");
    }

    #[test]
    fn variables_of_a_host_are_not_forwarded() {
        for name in [
            "PATH",
            "HOME",
            "DISPLAY",
            "SLURM_JOB_ID",
            "A",
            "SSH",
            "OMP_NUM_THREADS",
        ] {
            assert!(is_forwarded(OsStr::new(name)), "{name}");
        }
        for name in [
            "SSH_CONNECTION",
            "HOSTNAME",
            "PMI_FD",
            "XDG_SESSION_ID",
            "_",
        ] {
            assert!(!is_forwarded(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn some_pes_have_a_debugger() {
        let file = Path::new("/bin/a b");
        let arguments = [OsString::from("-x")];
        let some: Debugged = "0,2".parse().expect("PEs");
        assert_eq!(some.command(1, false, file, &arguments), None);
        let batch = some
            .command(2, false, file, &arguments)
            .expect("a debugger");
        assert_eq!(batch[0], "gdb");
        assert_eq!(batch[batch.len() - 3..], ["--args", "/bin/a b", "-x"]);
        let window = "all"
            .parse::<Debugged>()
            .expect("all")
            .command(1, true, file, &[]);
        assert_eq!(window.expect("a debugger")[..3], ["xterm", "-T", "PE 1"]);
        assert!("1,x".parse::<Debugged>().is_err());

        assert_eq!(some.check(3), Ok(()));
        assert_eq!(Debugged::All.check(1), Ok(()));
        let failure = some.check(2).expect_err("there is no PE 2");
        let sentence = "--gdb names PE 2, but the last PE of this job is PE 1";
        assert_eq!((failure.status, failure.sentence.as_str()), (2, sentence));
    }

    #[test]
    fn windows_need_a_display_and_xterm() {
        let path = std::env::temp_dir().join(format!("oshrun-debugger-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        assert!(!has_display(Some(OsStr::new(":0")), Some(path.as_os_str())));
        std::fs::write(path.join("xterm"), "").expect("a file");
        assert!(has_display(Some(OsStr::new(":0")), Some(path.as_os_str())));
        assert!(
            !has_display(None, Some(path.as_os_str()))
                && !has_display(Some(OsStr::new(":0")), None)
        );
        std::fs::remove_dir_all(path).expect("own directory");
    }
}
