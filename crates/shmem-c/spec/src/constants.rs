//! The constants. Their values and descriptions are read from the sources of the runtime that
//! define them.

use std::fmt::Write;

use anyhow::{Context, Result, bail, ensure};

use crate::table::SpecTable;

const SOURCE: &str = include_str!("../../../pe/src/constants.rs");
const EXTENSIONS: &str = include_str!("../../../pe/src/extension_constants.rs");

/// Returns all constants, those of extensions last.
pub(crate) fn all() -> Result<Vec<Constant<'static>>> {
    Ok([parse(SOURCE)?, parse(EXTENSIONS)?].concat())
}

/// Returns the `#define`s of all constants of the standard, including the deprecated names.
pub fn defines(table: &SpecTable) -> Result<String> {
    let constants = parse(SOURCE)?;
    let mut text = String::new();
    for constant in &constants {
        ensure!(
            table.constants.iter().any(|name| name == constant.name),
            "{} is no constant of the standard",
            constant.name
        );
        constant.define(&mut text)?;
    }

    writeln!(text, "\n/* Deprecated names of constants. */")?;
    for name in &table.constants {
        if constants.iter().any(|constant| constant.name == name) {
            continue;
        }

        let present = name.strip_prefix('_').unwrap_or(name);
        ensure!(
            constants.iter().any(|constant| constant.name == present),
            "constants.rs lacks {name}"
        );
        writeln!(text, "#define {name} {present}")?;
    }
    Ok(text)
}

/// Returns the `#define`s of the constants of extensions.
pub fn extensions() -> Result<String> {
    let mut text = String::new();
    for constant in parse(EXTENSIONS)? {
        constant.define(&mut text)?;
    }
    Ok(text)
}

/// A constant of the runtime.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Constant<'a> {
    pub name: &'a str,
    /// The type in Rust.
    pub kind: &'a str,
    /// The value as the source has it.
    pub value: &'a str,
    /// The last line of its documentation, which usually is the only one.
    pub about: &'a str,
}

impl<'a> Constant<'a> {
    /// Reads `NAME: TYPE = VALUE;`.
    fn parse(item: &'a str, about: &'a str) -> Option<Constant<'a>> {
        let (left, value) = item.strip_suffix(';')?.split_once(" = ")?;
        let (name, kind) = left.split_once(": ")?;
        Some(Constant {
            name,
            kind,
            value,
            about,
        })
    }

    /// Appends the `#define`, after a comment.
    fn define(&self, text: &mut String) -> Result<()> {
        writeln!(
            text,
            "/* {} */\n#define {} {}",
            self.about,
            self.name,
            self.in_c()?
        )?;
        Ok(())
    }

    /// Returns the value in C, with its type.
    fn in_c(&self) -> Result<String> {
        let value = self.value;
        Ok(match self.kind {
            "c_int" if value.starts_with('-') => format!("({value})"),
            "c_int" | "&str" => value.to_owned(),
            "c_long" => format!("{value}L"),
            "usize" if self.name.contains("_TEAM_") => format!("((shmem_team_t){value})"),
            "usize" if self.name.starts_with("SHMEM_CTX_") => format!("((shmem_ctx_t){value})"),
            "usize" if self.name.contains("_REQ_") => format!("((shmemx_req_t){value})"),
            kind => bail!(
                "{} has the type {kind}, which means nothing in C",
                self.name
            ),
        })
    }
}

/// Returns the constants of a source file. Fails if it contains anything else.
fn parse(source: &str) -> Result<Vec<Constant<'_>>> {
    let mut constants = Vec::new();
    let mut about = "";
    for line in source.lines() {
        if let Some(text) = line.strip_prefix("/// ") {
            about = text;
        } else if let Some(item) = line.strip_prefix("pub const ") {
            let constant = Constant::parse(item, about)
                .with_context(|| format!("constants.rs: this is no plain constant: {line}"))?;
            constants.push(constant);
        } else {
            // Anything else may be the rest of a constant, which the headers would lack.
            let is_expected = ["", "use core::ffi::{c_int, c_long};"].contains(&line);
            ensure!(
                is_expected || line.starts_with("//"),
                "constants.rs holds something else than constants: {line}"
            );
        }
    }
    Ok(constants)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_keeps_its_words() {
        let parsed = parse("/// Few.\npub const SHMEM_FEW: c_long = 2;\n").unwrap();
        let few = Constant {
            name: "SHMEM_FEW",
            kind: "c_long",
            value: "2",
            about: "Few.",
        };
        assert_eq!(few.in_c().unwrap(), "2L");
        assert_eq!(parsed, [few]);
    }

    /// The source has a literal, which a release must change.
    #[test]
    fn the_vendor_string_has_the_version_of_the_packages() {
        let constants = all().unwrap();
        let vendor = constants
            .iter()
            .find(|one| one.name == "SHMEM_VENDOR_STRING");
        let expected = format!("\"Rushmem {}\"", env!("CARGO_PKG_VERSION"));
        assert_eq!(vendor.unwrap().value, expected);
    }

    #[test]
    fn handles_are_cast_to_their_types() {
        let handle = |name| Constant {
            name,
            kind: "usize",
            value: "1",
            about: "",
        };
        let team = handle("SHMEM_TEAM_WORLD").in_c().unwrap();
        assert_eq!(team, "((shmem_team_t)1)");
        let context = handle("SHMEM_CTX_DEFAULT").in_c().unwrap();
        assert_eq!(context, "((shmem_ctx_t)1)");
        assert!(handle("SHMEM_CMP_EQ").in_c().is_err());
    }

    #[test]
    fn whatever_is_not_a_plain_constant_is_refused() {
        assert!(parse("pub const A: c_int = 1 +\n").is_err());
        assert!(parse("pub fn a() {}\n").is_err());
    }
}
