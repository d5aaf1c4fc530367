//! The files with which a site and a user change the defaults of settings: lines of `NAME=value`.
//!
//! `oshrun` reads them for its job; a PE that no `oshrun` has started reads them itself. The reader
//! puts the values into its environment, and the variable [`READ`]. The processes that it starts
//! inherit both: [`READ`] keeps them from reading the files again, and tells where each value was
//! found.
//!
//! A value counts by its source, not by the spelling of its name: a deprecated name in the
//! environment, or in a file with precedence, replaces the present name in another file. So a
//! process has at most one name of a setting from files, and none that its environment has already.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// The setting that names the only file to read.
pub const FILE: &str = "SHMEM_CONFIG";

/// Set if the files have been read. For each value that was taken from them it has one line: the
/// place in a file, a tab and `NAME=value`.
pub const READ: &str = "RUSHMEM_CONFIG_READ";

/// The deprecated names of settings, each with the present one. The tables of settings have the
/// same names.
pub const OLD_NAMES: [(&str, &str); 6] = [
    ("SMA_VERSION", "SHMEM_VERSION"),
    ("SMA_INFO", "SHMEM_INFO"),
    ("SMA_DEBUG", "SHMEM_DEBUG"),
    ("SMA_SYMMETRIC_SIZE", "SHMEM_SYMMETRIC_SIZE"),
    ("SHMEM_UCX_AMOS", "SHMEM_AMOS"),
    ("SHMEM_OFI_AMOS", "SHMEM_AMOS"),
];

/// The name of a file in the directory of a site or of a user.
const NAME: &str = "rushmem.conf";

/// The value of a setting in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileValue {
    /// The name of the setting.
    pub name: String,
    /// The value as text, which is not checked yet.
    pub value: String,
    /// The file and the number of the line.
    pub place: String,
}

/// What all files together say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileValues {
    /// One value for each setting that is in a file. If several files have the setting, the user's
    /// file has precedence over that of /etc, and this one over that of the installation.
    pub values: Vec<FileValue>,
    /// A message for each file or line that is ignored.
    pub mistakes: Vec<String>,
}

/// What the files change in the environment of the process that reads them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Defaults {
    /// The names and values of the variables that this process must set. [`READ`] is the last one.
    pub variables: Vec<(String, String)>,
    /// A message for each file or line that is ignored.
    pub mistakes: Vec<String>,
}

/// Reads the files, unless a parent of this process has done so: then there are no variables to
/// set. Settings that have a variable already, by any of their names, have precedence over the
/// files, so they are not among those returned. `lookup` reads the environment, and `prefix` is the
/// directory in which Rushmem is installed.
pub fn defaults(lookup: impl Fn(&str) -> Option<String>, prefix: Option<&Path>) -> Defaults {
    if lookup(READ).is_some() {
        return Defaults::default();
    }

    let found = read(&files(&lookup, prefix));
    let mut variables = Vec::new();
    let mut lines = Vec::new();
    for FileValue { name, value, place } in found.values {
        if names_of(&name).all(|name| lookup(name).is_none()) {
            lines.push(format!("{place}\t{name}={value}"));
            variables.push((name, value));
        }
    }
    variables.push((READ.to_owned(), lines.join("\n")));

    Defaults {
        variables,
        mistakes: found.mistakes,
    }
}

/// Returns the values in the environment that were read from files, without those that have changed
/// since. `lookup` reads the environment.
pub fn in_environment(lookup: impl Fn(&str) -> Option<String>) -> Vec<FileValue> {
    let lines = lookup(READ).unwrap_or_default();
    let mut values = Vec::new();
    for line in lines.lines() {
        // Another process may have changed the variable, so a line need not be one of ours.
        if let Some((place, assignment)) = line.split_once('\t')
            && let Some((name, value)) = assignment.split_once('=')
            && lookup(name).as_deref() == Some(value)
        {
            values.push(FileValue {
                name: name.to_owned(),
                value: value.to_owned(),
                place: place.to_owned(),
            });
        }
    }
    values
}

/// Returns the end of a message: the file and the line of each setting that it names and that a
/// file has set, since it may be about a value that the user does not know. `lookup` reads the
/// environment.
pub fn places_in(message: &str, lookup: impl Fn(&str) -> Option<String>) -> String {
    let words: Vec<&str> = message
        .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .collect();

    let mut text = String::new();
    for FileValue { name, place, .. } in in_environment(lookup) {
        if words.contains(&name.as_str()) {
            text += &format!(" ({place} sets {name})");
        }
    }
    text
}

/// Returns true if the name begins as those of settings do. There need not be such a setting.
pub fn is_name(name: &str) -> bool {
    name.starts_with("SHMEM_") || name.starts_with("SMA_")
}

/// Returns all names of the setting that has this one among its names.
pub fn names_of(name: &str) -> impl Iterator<Item = &str> {
    let present = present_name(name);
    let old = OLD_NAMES.iter().filter(move |(_, of)| *of == present);
    std::iter::once(present).chain(old.map(|(old, _)| *old))
}

/// Returns the present name of a setting. Any other name is returned as it is.
fn present_name(name: &str) -> &str {
    let renamed = OLD_NAMES.iter().find(|(old, _)| *old == name);
    renamed.map_or(name, |(_, present)| present)
}

/// A file to read.
#[derive(Clone, Debug)]
struct ConfigFile {
    path: PathBuf,
    origin: Origin,
}

/// Where a file to read comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// [`FILE`] names it, so it must exist.
    Named,
    /// The installation, or this host.
    Site,
    /// The home directory, which may be that of another user, as after `su` or in a container.
    User,
}

/// Returns the files to read, in ascending order of precedence: if a setting is in several files,
/// the last one counts.
fn files(lookup: impl Fn(&str) -> Option<String>, prefix: Option<&Path>) -> Vec<ConfigFile> {
    let set = |name| lookup(name).filter(|value| !value.is_empty());
    if let Some(only) = set(FILE) {
        return vec![ConfigFile {
            path: only.into(),
            origin: Origin::Named,
        }];
    }

    let mut dirs = Vec::new();
    if let Some(prefix) = prefix {
        dirs.push((prefix.join("etc"), Origin::Site));
    }
    dirs.push((PathBuf::from("/etc"), Origin::Site));
    if let Some(dir) = set("XDG_CONFIG_HOME") {
        dirs.push((PathBuf::from(dir), Origin::User));
    } else if let Some(home) = set("HOME") {
        dirs.push((Path::new(&home).join(".config"), Origin::User));
    }
    dirs.into_iter()
        .map(|(dir, origin)| ConfigFile {
            path: dir.join(NAME),
            origin,
        })
        .collect()
}

impl Origin {
    /// Returns true if it is no mistake that a file cannot be read for this reason. `is_own` says
    /// whether this user owns the file.
    fn allows(self, error: ErrorKind, is_own: impl FnOnce() -> bool) -> bool {
        match (self, error) {
            (Origin::Named, _) => false,
            // Most users have no such file.
            (_, ErrorKind::NotFound | ErrorKind::NotADirectory) => true,
            (Origin::User, ErrorKind::PermissionDenied) => !is_own(),
            _ => false,
        }
    }
}

/// Reads these files. If several have a setting, the last of them counts.
fn read(files: &[ConfigFile]) -> FileValues {
    let mut values: BTreeMap<String, FileValue> = BTreeMap::new();
    let mut mistakes = Vec::new();
    for file in files {
        let shown = file.path.display();
        match text_of(&file.path) {
            Ok(text) => values.extend(values_in(&text, &shown.to_string(), &mut mistakes)),
            Err(error) if file.origin == Origin::Named => mistakes.push(format!(
                "{shown}, which SHMEM_CONFIG names, cannot be read: {error}"
            )),
            Err(error) if file.origin.allows(error.kind(), || is_own(&file.path)) => {}
            Err(error) => mistakes.push(format!("{shown} cannot be read: {error}")),
        }
    }
    FileValues {
        values: values.into_values().collect(),
        mistakes,
    }
}

/// Returns true if this user owns a file; false if its directory may not be searched.
fn is_own(file: &Path) -> bool {
    let own = rustix::process::geteuid().as_raw();
    file.metadata().is_ok_and(|metadata| metadata.uid() == own)
}

/// Returns the text of a regular file, and none of the null device, which stands for a file without
/// lines. Any other kind of file may block forever or have no end.
fn text_of(file: &Path) -> io::Result<String> {
    // Opening a FIFO without this flag waits for a writer.
    let mut file = File::options()
        .read(true)
        .custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32)
        .open(file)?;

    let metadata = file.metadata()?;
    let null_device = rustix::fs::makedev(1, 3);
    if metadata.file_type().is_char_device() && metadata.rdev() == null_device {
        return Ok(String::new());
    }
    // A directory is let through: the error of read says what it is.
    if !metadata.is_file() && !metadata.is_dir() {
        return Err(io::Error::other("it is not a regular file"));
    }

    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the values in the text of a file, by the present names of their settings. Of several
/// lines for a setting, those with its present name count, and of these the last one. Adds a
/// message for each line that is ignored.
fn values_in(text: &str, file: &str, mistakes: &mut Vec<String>) -> BTreeMap<String, FileValue> {
    let mut values: BTreeMap<String, FileValue> = BTreeMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let place = format!("{file}:{number}");
        let (name, value) = match parse(line) {
            Ok(None) => continue,
            Ok(Some((name, value))) => (name.to_owned(), value.to_owned()),
            Err(why) => {
                mistakes.push(format!("{place}: {why}"));
                continue;
            }
        };

        let setting = present_name(&name).to_owned();
        let is_old = name != setting;
        let has_present = values
            .get(&setting)
            .is_some_and(|known| known.name == setting);
        if !(is_old && has_present) {
            values.insert(setting, FileValue { name, value, place });
        }
    }
    values
}

/// Returns the name and the value in a line. Returns `None` for an empty line and for a comment.
///
/// # Errors
/// The reason for which the line is ignored.
fn parse(line: &str) -> Result<Option<(&str, &str)>, String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }

    // A value may contain the mark of a comment, as in a list of transports. Only a mark after a
    // space begins a comment.
    let line = line
        .match_indices('#')
        .map(|(mark, _)| &line[..mark])
        .find(|before| before.ends_with([' ', '\t']))
        .unwrap_or(line)
        .trim_end();

    let Some((name, value)) = line.split_once('=') else {
        return Err(format!("{line} is no line of the form NAME=value"));
    };
    let name = name.trim_end();
    let value = value.trim_start();

    if !is_name(name) {
        return Err(format!(
            "{name} is no setting: their names begin with SHMEM_"
        ));
    }
    if name == FILE {
        return Err(format!(
            "{FILE} names the file to read, and has no effect in one"
        ));
    }
    if !name
        .bytes()
        .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
    {
        return Err(format!(
            "{name} is no setting: names have capital letters, digits and _"
        ));
    }
    if value.contains('\0') {
        return Err(format!("the value of {name} has a null character"));
    }
    Ok(Some((name, value)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Variables = BTreeMap<String, String>;

    fn lookup(variables: &Variables) -> impl Fn(&str) -> Option<String> {
        |name| variables.get(name).cloned()
    }

    fn variables(pairs: &[(&str, &str)]) -> Variables {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn named(path: PathBuf) -> ConfigFile {
        ConfigFile {
            path,
            origin: Origin::Named,
        }
    }

    #[test]
    fn nearer_files_come_later() {
        let named = |pairs: &[(&str, &str)], prefix: Option<&str>| {
            let files = files(lookup(&variables(pairs)), prefix.map(Path::new));
            files
                .into_iter()
                .map(|file| file.path.display().to_string())
                .collect::<Vec<_>>()
        };
        let home = ("HOME", "/users/me");
        assert_eq!(
            named(&[home], Some("/opt/rushmem")),
            [
                "/opt/rushmem/etc/rushmem.conf",
                "/etc/rushmem.conf",
                "/users/me/.config/rushmem.conf"
            ]
        );
        assert_eq!(
            named(&[home, ("XDG_CONFIG_HOME", "/c")], None),
            ["/etc/rushmem.conf", "/c/rushmem.conf"]
        );
        assert_eq!(named(&[], None), ["/etc/rushmem.conf"]);
        assert_eq!(named(&[home, (FILE, "/f")], Some("/opt")), ["/f"]);
        assert_eq!(named(&[(FILE, "")], None), ["/etc/rushmem.conf"]);
    }

    #[test]
    fn the_files_of_another_user_may_be_closed() {
        use ErrorKind::{NotFound, PermissionDenied};
        for (origin, error, is_own, is_allowed) in [
            (Origin::User, PermissionDenied, false, true),
            (Origin::User, PermissionDenied, true, false),
            (Origin::Site, PermissionDenied, false, false),
            (Origin::Site, NotFound, false, true),
            (Origin::Named, NotFound, false, false),
        ] {
            let allows = origin.allows(error, || is_own);
            assert_eq!(allows, is_allowed, "{origin:?} {error:?} {is_own}");
        }
    }

    #[test]
    fn files_are_read_by_one_process_of_a_job() {
        let file = std::env::temp_dir().join(format!("rushmem-config-{}", std::process::id()));
        std::fs::write(&file, "SHMEM_CHECK=1\nSHMEM\n").expect("a file");
        let shown = file.display().to_string();
        let read_now = defaults(lookup(&variables(&[(FILE, &shown)])), None);
        std::fs::remove_file(&file).expect("own file");

        let read = format!("{shown}:1\tSHMEM_CHECK=1");
        let pairs = [("SHMEM_CHECK", "1"), (READ, read.as_str())];
        assert_eq!(
            read_now.variables,
            pairs.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        assert_eq!(read_now.mistakes.len(), 1, "{:?}", read_now.mistakes);

        let child = variables(&[(FILE, &shown), pairs[0], pairs[1]]);
        assert_eq!(defaults(lookup(&child), None), Defaults::default());
    }

    #[test]
    fn an_old_name_counts_as_its_source() {
        let dir = std::env::temp_dir().join(format!("rushmem-old-names-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory");
        let file = |name: &str, text: &str| {
            let path = dir.join(name);
            std::fs::write(&path, text).expect("a file");
            named(path)
        };
        let site = file("site", "SHMEM_SYMMETRIC_SIZE=1\nSHMEM_AMOS=network\n");
        let of_user = file("user", "SMA_SYMMETRIC_SIZE=2\n");
        let both = file("both", "SHMEM_INFO=1\nSMA_INFO=2\nSMA_DEBUG=3\n");

        let read = |files: &[ConfigFile]| -> Vec<String> {
            let values = super::read(files).values.into_iter();
            values.map(|one| one.name + "=" + &one.value).collect()
        };
        let amos = "SHMEM_AMOS=network";
        let old = "SMA_SYMMETRIC_SIZE=2";
        let new = "SHMEM_SYMMETRIC_SIZE=1";
        assert_eq!(read(&[site.clone(), of_user.clone()]), [amos, old]);
        assert_eq!(read(&[of_user, site.clone()]), [amos, new]);
        assert_eq!(read(&[both]), ["SMA_DEBUG=3", "SHMEM_INFO=1"]);

        let named = site.path.display().to_string();
        for name in ["SMA_SYMMETRIC_SIZE", "SHMEM_SYMMETRIC_SIZE"] {
            let there = variables(&[(FILE, &named), (name, "3"), ("SHMEM_OFI_AMOS", "software")]);
            let Defaults { variables, .. } = defaults(lookup(&there), None);
            assert_eq!(variables, [(READ.to_owned(), String::new())], "{name}");
        }
        std::fs::remove_dir_all(&dir).expect("own directory");
    }

    #[test]
    fn messages_name_the_lines_that_set_what_they_are_about() {
        let read = "/f:1\tSHMEM_NIC=a\n/f:2\tSHMEM_CHECK=7\n/f:3\tSHMEM_TCP_PORTS=1";
        let there = variables(&[(READ, read), ("SHMEM_NIC", "b"), ("SHMEM_CHECK", "7")]);
        let said = |message| places_in(message, lookup(&there));
        assert_eq!(
            said("SHMEM_CHECK is 7, and SHMEM_NIC is b"),
            " (/f:2 sets SHMEM_CHECK)"
        );
        assert_eq!(said("set SHMEM_CHECKS"), "");
    }

    #[test]
    fn only_files_with_an_end_are_read() {
        let dir = std::env::temp_dir().join(format!("rushmem-fifo-{}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("a directory");
        let fifo = dir.join("fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .expect("a fifo");
        let of_user = ConfigFile {
            path: fifo,
            origin: Origin::Site,
        };
        let zero = named(PathBuf::from("/dev/zero"));
        let null = named(PathBuf::from("/dev/null"));
        let read = super::read(&[of_user, zero, null]);
        std::fs::remove_dir_all(&dir).expect("own directory");
        let [of_fifo, of_zero] = &read.mistakes[..] else {
            panic!("{read:?}");
        };
        assert!(of_fifo.ends_with("fifo cannot be read: it is not a regular file"));
        assert!(of_zero.ends_with("cannot be read: it is not a regular file"));
    }

    #[test]
    fn lines_are_settings_or_comments() {
        for (line, expected) in [
            ("", None),
            ("  # SHMEM_CHECK=1", None),
            ("SHMEM_CHECK=1", Some(("SHMEM_CHECK", "1"))),
            ("  SMA_INFO = yes  # always", Some(("SMA_INFO", "yes"))),
            ("SMA_INFO=yes\t#always", Some(("SMA_INFO", "yes"))),
            ("SHMEM_UCX_TLS=rc,#x=y", Some(("SHMEM_UCX_TLS", "rc,#x=y"))),
            ("SHMEM_NIC=", Some(("SHMEM_NIC", ""))),
        ] {
            assert_eq!(parse(line), Ok(expected), "{line}");
        }
        for (line, words) in [
            ("SHMEM_CHECK", "no line of the form NAME=value"),
            ("export SHMEM_CHECK=1", "export SHMEM_CHECK is no setting"),
            ("UCX_TLS=rc", "their names begin with SHMEM_"),
            ("SHMEM_check=1", "capital letters"),
            ("SHMEM_CONFIG=/f", "names the file to read"),
            (
                "SHMEM_NIC=a\0",
                "the value of SHMEM_NIC has a null character",
            ),
        ] {
            assert!(parse(line).is_err_and(|why| why.contains(words)), "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_file_is_read(lines in "(SHMEM_[A-Z]{1,3}[ =]{0,2}[ -~\t]{0,5}\n|[ -~\0\t]{0,9}\n){0,9}") {
            for line in lines.lines() {
                if let Ok(Some((name, value))) = parse(line) {
                    let read = format!("/a file:1\t{name}={value}");
                    let there = variables(&[(READ, &read), (name, value)]);
                    let expected = FileValue {
                        name: name.to_owned(),
                        value: value.to_owned(),
                        place: "/a file:1".to_owned(),
                    };
                    prop_assert_eq!(in_environment(lookup(&there)), [expected]);
                }
            }
        }
    }
}
