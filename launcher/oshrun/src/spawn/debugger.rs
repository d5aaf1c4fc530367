//! The command lines that run PEs under gdb: in an xterm if there is a display, otherwise in batch
//! mode, where gdb prints a backtrace if a signal stops the PE.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The PEs that run under a debugger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Debugged {
    /// All.
    All,
    /// These.
    Some(Vec<u32>),
}

impl std::str::FromStr for Debugged {
    type Err = String;

    fn from_str(text: &str) -> Result<Debugged, String> {
        if text == "all" {
            return Ok(Debugged::All);
        }
        let pes = text.split(',').map(str::parse).collect::<Result<_, _>>();
        pes.map(Debugged::Some)
            .map_err(|_| "it must be a list of PE numbers separated by commas".to_string())
    }
}

impl Debugged {
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
        // backtrace and fails. Python gets no files: flushing them when oshrun ends gdb would print
        // a traceback of gdb's own.
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
        let words: &[&str] = if has_display { &window } else { &batch };
        let words = words.iter().map(OsString::from);
        Some(words.chain([file.as_os_str().to_owned()]).chain(arguments.iter().cloned()).collect())
    }
}

/// Returns true if windows can be opened: there is a display, and xterm is in the path.
pub fn has_display(display: Option<&OsStr>, path: Option<&OsStr>) -> bool {
    let mut dirs = path.map(std::env::split_paths).into_iter().flatten();
    display.is_some_and(|display| !display.is_empty())
        && dirs.any(|dir| dir.join("xterm").is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_pes_have_a_debugger() {
        let file = Path::new("/bin/a b");
        let arguments = [OsString::from("-x")];
        let some: Debugged = "0,2".parse().expect("PEs");
        assert_eq!(some.command(1, false, file, &arguments), None);
        let batch = some.command(2, false, file, &arguments).expect("a debugger");
        assert_eq!(batch[0], "gdb");
        assert_eq!(batch[batch.len() - 3..], ["--args", "/bin/a b", "-x"]);
        let window = "all".parse::<Debugged>().expect("all").command(1, true, file, &[]);
        assert_eq!(window.expect("a debugger")[..3], ["xterm", "-T", "PE 1"]);
        assert!("1,x".parse::<Debugged>().is_err());
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
