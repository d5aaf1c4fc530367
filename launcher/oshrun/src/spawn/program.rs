//! Finds the executable of the user's program, and the library path that it needs.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, StatVfsMountFlags, statvfs};

use crate::report::failure::{StartFailure, reason};

/// The soname of the library.
const LIBRARY: &str = "librushmem.so.1";

/// Finds the executable as a shell does: a name without a slash is searched in `path`.
///
/// # Errors
/// Status 127 if there is no such file, 126 if it cannot be executed.
pub fn find(program: &OsStr, path: Option<&OsStr>) -> Result<PathBuf, StartFailure> {
    let shown = program.to_string_lossy();
    if program.as_bytes().contains(&b'/') {
        let file = PathBuf::from(program);
        return match std::fs::metadata(&file) {
            Err(error) => {
                let status = if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
                Err(StartFailure {
                    status,
                    sentence: format!("cannot run {shown}: {}", reason(&error)),
                })
            }
            Ok(meta) if meta.is_dir() => Err(StartFailure {
                status: 126,
                sentence: format!("{shown} is a directory, not a program"),
            }),
            Ok(_) if !is_executable(&file) => Err(not_executable(&file)),
            Ok(_) => Ok(file),
        };
    }
    let dirs = path.map(std::env::split_paths).into_iter().flatten();
    let files: Vec<PathBuf> =
        dirs.map(|dir| dir.join(program)).filter(|file| file.is_file()).collect();
    match (files.iter().find(|file| is_executable(file)), files.first()) {
        (Some(file), _) => Ok(file.clone()),
        (None, Some(file)) => Err(not_executable(file)),
        (None, None) => {
            let here = if Path::new(program).is_file() {
                format!("; did you mean ./{shown}?")
            } else {
                String::new()
            };
            Err(StartFailure {
                status: 127,
                sentence: format!("the program {shown} was not found in PATH{here}"),
            })
        }
    }
}

/// Returns the executable of this process, for starting it in another role. Under valgrind the link
/// in /proc would execute valgrind, so it is resolved, unless the file is gone.
pub fn own() -> PathBuf {
    let link = PathBuf::from("/proc/self/exe");
    std::fs::read_link(&link).ok().filter(|file| file.exists()).unwrap_or(link)
}

fn is_executable(file: &Path) -> bool {
    rustix::fs::access(file, Access::EXEC_OK).is_ok()
}

fn not_executable(file: &Path) -> StartFailure {
    let shown = file.display();
    let mounted = statvfs(file);
    let is_noexec = mounted.is_ok_and(|of| of.f_flag.contains(StatVfsMountFlags::NOEXEC));
    let sentence = match is_noexec {
        true => format!(
            "{shown} cannot be executed: its file system is mounted with noexec; copy it to another one"
        ),
        false => format!("{shown} is not executable; chmod +x {shown} if it is a program"),
    };
    StartFailure { status: 126, sentence }
}

/// Returns the LD_LIBRARY_PATH with which PEs find the library in oshrun's prefix; `None` if it is
/// not there.
///
/// The directory is appended, so that directories of the user have precedence. The loader searches
/// DT_RUNPATH afterwards, so a program that was built with another installation gets a library with
/// the protocol of this oshrun.
pub fn library_path(oshrun: &Path, current: Option<&OsStr>) -> Option<OsString> {
    let dir = oshrun.parent()?.parent()?.join("lib");
    if !dir.join(LIBRARY).exists() {
        return None;
    }
    // An empty entry would denote the current directory.
    let mut path =
        current.filter(|path| !path.is_empty()).map(OsStr::to_os_string).unwrap_or_default();
    if !path.is_empty() {
        path.push(":");
    }
    path.push(dir);
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_as_in_a_shell() {
        let path = Some(OsStr::new("/nonexistent:/bin:/usr/bin"));
        assert_eq!(find(OsStr::new("sh"), path), Ok(PathBuf::from("/bin/sh")));
        assert_eq!(find(OsStr::new("/bin/sh"), None), Ok(PathBuf::from("/bin/sh")));
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
        assert_eq!(find(OsStr::new("sh"), None).expect_err("no PATH").status, 127);
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
        assert_eq!(library_path(&oshrun, Some(OsStr::new(""))), Some(lib.clone()));
        let mut both = OsString::from("/a:/b:");
        both.push(lib);
        assert_eq!(library_path(&oshrun, Some(OsStr::new("/a:/b"))), Some(both));
        std::fs::remove_dir_all(prefix).expect("own directory");
    }
}
