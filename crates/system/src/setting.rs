//! Settings: the environment variables that the library reads, as rows of a table. The output of
//! `SHMEM_INFO` and `shmem-info`, docs/settings.md and the parsers are made from these rows. The
//! runtime and each provider have a table of their own.
//!
//! Also the defaults of C libraries that only environment variables set ([`set_defaults`]).
#![allow(unsafe_code)]

use crate::lock::lock;
use std::ffi::{CStr, CString, c_char};
use std::fmt;
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A setting: an environment variable that the library reads.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The name of the variable.
    pub name: &'static str,
    /// Deprecated names. If the name is not set, the first of them that is set counts (OpenSHMEM
    /// 1.6, §8).
    pub old_names: &'static [&'static str],
    /// The value if no name is set. `None` if the default is not one value; then the meaning
    /// describes it.
    pub default: Option<&'static str>,
    /// The effect of the setting and the values that it may have, without a full stop.
    pub meaning: &'static str,
    /// Returns a sentence if the setting may not have this value, which is not blank.
    pub check: fn(&str) -> Result<(), String>,
}

impl Setting {
    /// The check of a setting whose value can only be judged where it is used.
    pub const ANY: fn(&str) -> Result<(), String> = |_| Ok(());

    /// Returns the variable that is set; `None` if none is. `lookup` reads a variable.
    pub fn find(&self, lookup: impl Fn(&str) -> Option<String>) -> Option<SetVariable> {
        let names = [self.name]
            .into_iter()
            .chain(self.old_names.iter().copied());
        for name in names {
            if let Some(value) = lookup(name) {
                return Some(SetVariable { name, value });
            }
        }
        None
    }

    /// Returns all names as text, the deprecated ones in parentheses.
    pub fn names(&self) -> String {
        match self.old_names {
            [] => self.name.to_owned(),
            old => format!("{} (or {})", self.name, old.join(", ")),
        }
    }

    /// Returns the meaning and the default as text.
    pub fn description(&self) -> String {
        match self.default {
            Some(default) => format!("{}; default {default}", self.meaning),
            None => self.meaning.to_owned(),
        }
    }

    /// Returns the value and its source; `None` if the setting is not set and has no default value.
    /// `by_oshrun` has the names of the variables that `oshrun` has set, separated by spaces.
    pub fn now(
        &self,
        lookup: impl Fn(&str) -> Option<String>,
        by_oshrun: &str,
    ) -> Option<(String, ValueSource)> {
        let Some(SetVariable { name, value }) = self.find(lookup) else {
            return Some((self.default?.to_owned(), ValueSource::Default));
        };

        let source = if by_oshrun.split(' ').any(|set| set == name) {
            ValueSource::Oshrun(name)
        } else {
            ValueSource::Environment(name)
        };
        Some((value, source))
    }
}

/// A variable that gives a setting its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetVariable {
    /// The name of the setting, or one of its deprecated names.
    pub name: &'static str,
    /// The value.
    pub value: String,
}

/// Where the value of a setting comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueSource {
    /// The variable of this name, set by this line of a file, such as `/etc/rushmem.conf:3`.
    File(&'static str, String),
    /// The variable of this name.
    Environment(&'static str),
    /// The variable of this name, set by `oshrun`.
    Oshrun(&'static str),
    /// The default in the table.
    Default,
}

impl ValueSource {
    /// Returns a value with its source as text.
    pub fn of(&self, value: &str) -> String {
        match self {
            Self::Oshrun(name) => format!("\"{value}\" from {name}, set by oshrun"),
            Self::File(_, place) => format!("\"{value}\" from {place}"),
            Self::Environment(name) => format!("\"{value}\" from {name}"),
            Self::Default => format!("{value}, the default"),
        }
    }
}

impl fmt::Display for ValueSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::File(_, place) => place,
            Self::Environment(_) => "environment",
            Self::Oshrun(_) => "oshrun",
            Self::Default => "default",
        })
    }
}

/// An invalid value of a variable.
#[derive(Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The name of the variable.
    pub name: &'static str,
    /// The value that was found.
    pub value: String,
    /// The values that are allowed.
    pub expected: &'static str,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Invalid {
            name,
            value,
            expected,
        } = self;
        let value = if value.is_empty() { "empty" } else { value };
        write!(f, "{name} is {value}, but it must be {expected}")
    }
}

impl std::error::Error for Invalid {}

/// Parses the value of the setting `name` as a number above 0.
///
/// # Errors
/// A sentence, if it is anything else.
pub fn positive(name: &'static str, value: &str) -> Result<usize, String> {
    let number = value.parse().ok().filter(|&number| number > 0);
    number.ok_or_else(|| {
        let invalid = Invalid {
            name,
            value: value.to_owned(),
            expected: "a number above 0",
        };
        invalid.to_string()
    })
}

/// Returns true if a list of names separated by commas has no name.
pub fn is_blank(value: &str) -> bool {
    value.split(',').all(|name| name.trim().is_empty())
}

/// Returns an environment variable of this process, for [`Setting::find`] and [`Setting::now`].
/// Replaces bytes that are not UTF-8, so that a message can show such a value.
pub fn environment(name: &str) -> Option<String> {
    Some(std::env::var_os(name)?.to_string_lossy().into_owned())
}

/// The environments that [`replace_environment`] has made, each a list of strings. They are never
/// freed, since a thread may go on reading one that was replaced. The list keeps LeakSanitizer from
/// reporting them.
static OURS: Mutex<Vec<Box<[AtomicPtr<c_char>]>>> = Mutex::new(Vec::new());

/// Sets environment variables that are not set, as defaults of a C library. Each of `ours` is
/// `NAME=value`. The variables stay in the environment: libraries read some of them again for each
/// endpoint.
pub fn set_defaults(ours: &[&'static CStr]) {
    replace_environment(|entries| with_defaults(entries, ours));
}

/// Sets an environment variable that is not set, like [`set_defaults`].
pub fn set_default(name: &str, value: &str) {
    if std::env::var_os(name).is_none()
        && let Some(entry) = entry(name, value)
    {
        set_defaults(&[entry]);
    }
}

/// Sets an environment variable, whether it is set or not.
pub fn set(name: &str, value: &str) {
    if let Some(entry) = entry(name, value) {
        replace_environment(|entries| Some(with(entries, entry)));
    }
}

/// Returns an entry of the environment; `None` if a part has a zero byte. It is never freed, since
/// it becomes a part of the environment.
fn entry(name: &str, value: &str) -> Option<&'static CStr> {
    let entry = CString::new(format!("{name}={value}")).ok()?;
    Some(Box::leak(entry.into_boxed_c_str()))
}

/// Puts the entries that `changed` returns in the place of those of the environment, unless it
/// returns `None`.
///
/// Threads of the program may read or set variables at the same time, so the present environment is
/// neither changed nor freed; another one takes its place.
fn replace_environment(changed: impl Fn(&[&'static CStr]) -> Option<Vec<&'static CStr>>) {
    let environ = &raw mut libc::environ;
    // SAFETY: libc's variable is aligned, and lives as long as the process.
    let environ = unsafe { AtomicPtr::from_ptr(environ) };

    // Acquire, for the entries of a list that another thread has stored below.
    let mut before = environ.load(Ordering::Acquire);
    loop {
        // SAFETY: `before` is the environment of this process: null, or a list of strings with a
        // null at the end. The C library frees none of the strings, and this function no list.
        let Some(entries) = changed(&unsafe { entries_of(before) }) else {
            return;
        };

        let strings = entries.iter().map(|entry| entry.as_ptr().cast_mut());
        let list: Box<[AtomicPtr<c_char>]> =
            strings.chain([null_mut()]).map(AtomicPtr::new).collect();
        let start = list.as_ptr().cast::<*mut c_char>().cast_mut();

        // Release: a thread that reads the new list sees its entries.
        match environ.compare_exchange(before, start, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => {
                // Kept as long as the process lives, since the environment points to it.
                lock(&OURS).push(list);
                return;
            }
            // Another thread has set a variable meanwhile.
            Err(now) => before = now,
        }
    }
}

/// Returns the entries of an environment.
///
/// # Safety
/// `environ` is null or a list of strings with a null at the end. The strings are never freed.
unsafe fn entries_of(environ: *mut *mut c_char) -> Vec<&'static CStr> {
    let mut entries = Vec::new();
    let mut next = environ;
    // SAFETY: `next` is null, or points to an entry or to the null at the end, beyond which the
    // loop does not go.
    while let Some(&entry) = unsafe { next.as_ref() }
        && !entry.is_null()
    {
        // SAFETY: `entry` is a string that is never freed, as the caller promises.
        entries.push(unsafe { CStr::from_ptr(entry) });
        next = next.wrapping_add(1);
    }
    entries
}

/// Returns the name of an entry of the environment.
fn name_of(entry: &CStr) -> &[u8] {
    let mut parts = entry.to_bytes().split(|&byte| byte == b'=');
    parts.next().unwrap_or_default()
}

/// Returns the entries, followed by those of `ours` whose names they lack; `None` if they lack
/// none.
fn with_defaults(entries: &[&'static CStr], ours: &[&'static CStr]) -> Option<Vec<&'static CStr>> {
    let mut missing = Vec::new();
    for &own in ours {
        let is_set = entries.iter().any(|entry| name_of(entry) == name_of(own));
        if !is_set {
            missing.push(own);
        }
    }

    if missing.is_empty() {
        return None;
    }
    Some([entries, &missing].concat())
}

/// Returns the entries without those of the name of `ours`, followed by `ours`.
fn with(entries: &[&'static CStr], ours: &'static CStr) -> Vec<&'static CStr> {
    let mut changed = entries.to_vec();
    changed.retain(|entry| name_of(entry) != name_of(ours));
    changed.push(ours);
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_says_stays() {
        let ours = [c"ONE=1", c"TWO=2"];
        let entries = [c"A=b", c"TWO=7"];
        let both = with_defaults(&entries, &ours).expect("ONE is missing");
        assert_eq!(both, [c"A=b", c"TWO=7", c"ONE=1"]);
        assert_eq!(with_defaults(&[], &ours), Some(ours.to_vec()));
        assert_eq!(with_defaults(&entries, &ours[1..]), None);
    }

    #[test]
    fn an_entry_takes_the_place_of_its_name() {
        let entries = [c"A=b", c"AB=c", c"C=d"];
        assert_eq!(with(&entries, c"A=e"), [c"AB=c", c"C=d", c"A=e"]);
        assert_eq!(with(&[], c"A=e"), [c"A=e"]);
    }

    #[test]
    fn they_stay() {
        const NAME: &str = "RUSHMEM_TEST_OF_VARIABLES";
        assert_eq!(
            std::env::var(NAME).ok(),
            None,
            "a variable that this test needs unset"
        );
        set_defaults(&[c"RUSHMEM_TEST_OF_VARIABLES=7"]);
        set_defaults(&[c"RUSHMEM_TEST_OF_VARIABLES=8"]);
        assert_eq!(std::env::var(NAME).as_deref(), Ok("7"));
        set(NAME, "9");
        assert_eq!(std::env::var(NAME).as_deref(), Ok("9"));
    }
}
