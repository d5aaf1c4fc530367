//! Settings as rows of a table. What `SHMEM_INFO` and `shmem-info` print, docs/settings.md and the
//! parsers come from these rows. The runtime and each provider have a table of their own.

use std::fmt;

/// A setting: an environment variable that the library reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// Deprecated names. If the name is not set, the first of them that is set counts (OpenSHMEM
    /// 1.6, §8).
    pub old_names: &'static [&'static str],
    /// The value that counts if none of them is set. `None` if the default is no value; then the
    /// meaning describes it.
    pub default: Option<&'static str>,
    /// The effect of the setting and the values that it may have, without a full stop.
    pub meaning: &'static str,
}

impl Setting {
    /// Returns the name under which it is set, and its value. `lookup` reads a variable.
    pub fn set(&self, lookup: impl Fn(&str) -> Option<String>) -> Option<(&'static str, String)> {
        let named = |name: &'static str| lookup(name).map(|value| (name, value));
        named(self.name).or_else(|| self.old_names.iter().find_map(|name| named(name)))
    }

    /// Returns the number above 0 that a provider's setting is set to, if it is set.
    ///
    /// # Errors
    /// If it is set to anything else.
    pub fn number(
        &self,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Option<usize>, Invalid> {
        let Some((name, value)) = self.set(lookup) else { return Ok(None) };
        match value.parse() {
            Ok(number) if number > 0 => Ok(Some(number)),
            _ => Err(Invalid { name, value, expected: "a number above 0" }),
        }
    }

    /// Returns its names, the deprecated ones in parentheses.
    pub fn names(&self) -> String {
        match self.old_names {
            [] => self.name.to_owned(),
            old => format!("{} (or {})", self.name, old.join(", ")),
        }
    }

    /// Returns what it does, with its default.
    pub fn description(&self) -> String {
        match self.default {
            Some(default) => format!("{}; default {default}", self.meaning),
            None => self.meaning.to_owned(),
        }
    }

    /// Returns its value and where that comes from; `None` if it has none. `by_oshrun` holds the
    /// names of variables that `oshrun` has set, separated by spaces.
    pub fn now(
        &self,
        lookup: impl Fn(&str) -> Option<String>,
        by_oshrun: &str,
    ) -> Option<(String, ValueSource)> {
        match self.set(lookup) {
            Some((name, value)) if by_oshrun.split(' ').any(|set| set == name) => {
                Some((value, ValueSource::Oshrun(name)))
            }
            Some((name, value)) => Some((value, ValueSource::Environment(name))),
            None => self.default.map(|default| (default.to_owned(), ValueSource::Default)),
        }
    }

    /// Returns the result of [`now`](Setting::now) as text.
    pub fn state(&self, lookup: impl Fn(&str) -> Option<String>, by_oshrun: &str) -> String {
        match self.now(lookup, by_oshrun) {
            Some((value, ValueSource::Oshrun(name))) => {
                format!("\"{value}\" from {name}, set by oshrun")
            }
            Some((value, ValueSource::Environment(name))) => format!("\"{value}\" from {name}"),
            Some((value, ValueSource::Default)) => format!("{value}, the default"),
            None => "not set".to_owned(),
        }
    }
}

/// The source of the value of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueSource {
    /// The variable of this name.
    Environment(&'static str),
    /// The variable of this name, which `oshrun` has set.
    Oshrun(&'static str),
    /// The table.
    Default,
}

impl fmt::Display for ValueSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Environment(_) => "environment",
            Self::Oshrun(_) => "oshrun",
            Self::Default => "default",
        })
    }
}

/// A variable has a value that it may not have.
#[derive(Debug, PartialEq, Eq)]
pub struct Invalid {
    /// The variable.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// Which values it may have.
    pub expected: &'static str,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Invalid { name, value, expected } = self;
        let value = if value.is_empty() { "empty" } else { value };
        // Cause: a variable has a value that it may not have. Remedy: set one of those that the
        // message names.
        write!(f, "{name} is {value}, but it must be {expected}")
    }
}

impl std::error::Error for Invalid {}

/// Returns true if a list of names separated by commas has none.
pub fn is_blank(value: &str) -> bool {
    value.split(',').all(|name| name.trim().is_empty())
}

/// Returns a variable of this process, for [`Setting::set`] and [`Setting::state`]. Bytes that are
/// not UTF-8 are replaced, so that the message about such a value can show it.
pub fn environment(name: &str) -> Option<String> {
    Some(std::env::var_os(name)?.to_string_lossy().into_owned())
}
