//! Fortran: the routines that the library offers, and the text of the include files.
//!
//! The include files contain the constants, and declare the three functions that `shmem.fh` of Open
//! MPI and of Sandia OpenSHMEM declare, since programs for these libraries rely on it. A name may
//! be declared only once, so programs declare the other functions themselves. Compilers can read
//! the text in fixed and in free form: statements are between columns 7 and 72, none is continued,
//! and comments begin with `!`.

use std::fmt::Write;

use anyhow::{Context, Result, ensure};

use crate::constants::{self, Constant};
use crate::table::records;

const ROUTINES: &str = include_str!("../fortran.csv");

/// The last column that fixed form reads.
const LAST_COLUMN: usize = 72;

/// The functions that `shmem.fh` declares, with their types.
const DECLARED: [(&str, &str); 3] = [
    ("SHMEM_PE_ACCESSIBLE", "LOGICAL"),
    ("SHMEM_ADDR_ACCESSIBLE", "LOGICAL"),
    ("SHMEM_PTR", "INTEGER(KIND=8)"),
];

const SHMEM: &str = "\
! Rushmem, an OpenSHMEM library: the constants of the Fortran routines.
!
! Made from the tables of the standard. Fixed and free form.
! A program declares the functions that it calls, except the three at
! the end.
";

const SHMEMX: &str = "\
! Rushmem, an OpenSHMEM library: the constants of the extensions.
!
! Made from the tables of the standard. Fixed and free form.
! Include it in addition to shmem.fh.
";

/// The routines that the library offers to Fortran.
pub struct Fortran {
    /// Names of the subroutines and functions, in capitals.
    pub routines: Vec<String>,
    /// Names of the constants.
    parameters: Vec<String>,
}

impl Fortran {
    /// Reads the table, which is compiled into the calling program.
    ///
    /// # Panics
    /// If a record has an unknown form.
    pub fn read() -> Self {
        let mut fortran = Self {
            routines: Vec::new(),
            parameters: Vec::new(),
        };

        for record in records(ROUTINES) {
            let name = record["name"].clone();
            match (record["offered"].as_str(), record["form"].as_str()) {
                ("no", _) => {}
                ("yes", "subroutine" | "function") => fortran.routines.push(name),
                ("yes", "parameter") => fortran.parameters.push(name),
                (offered, form) => panic!("{name} is {form}, offered: {offered}"),
            }
        }
        fortran
    }

    /// Returns the symbols of the routines, as compilers write them into object files.
    pub fn symbols(&self) -> impl Iterator<Item = String> + '_ {
        self.routines
            .iter()
            .map(|name| format!("{}_", name.to_lowercase()))
    }

    /// Returns the text of `shmem.fh`: the constants of the standard, and declarations of
    /// functions.
    pub fn shmem(&self) -> Result<String> {
        let mut text = self.include_file(SHMEM, |name| !is_extension(name))?;
        for (name, kind) in DECLARED {
            ensure!(
                self.routines.iter().any(|routine| routine == name),
                "no routine {name}"
            );
            write!(text, "\n      {kind} {name}\n      EXTERNAL {name}\n")?;
        }
        Ok(text)
    }

    /// Returns the text of `shmemx.fh`: the constants of the extensions.
    pub fn shmemx(&self) -> Result<String> {
        self.include_file(SHMEMX, is_extension)
    }

    /// Returns the text of an include file: the heading, and the constants whose names are wanted.
    fn include_file(&self, heading: &str, is_wanted: fn(&str) -> bool) -> Result<String> {
        let constants = constants::all()?;
        let mut text = heading.to_owned();
        for name in self.parameters.iter().filter(|name| is_wanted(name)) {
            let constant = constants
                .iter()
                .find(|constant| constant.name == name)
                .with_context(|| format!("constants.rs lacks {name}"))?;
            write!(text, "\n{}", parameter(constant)?)?;
        }

        for line in text.lines() {
            ensure!(
                line.len() <= LAST_COLUMN,
                "fixed form does not read all of {line}"
            );
        }
        Ok(text)
    }
}

/// Returns true for constants of teams, which are an extension in Fortran: the standard has teams
/// since 1.5, when it no longer had Fortran routines.
fn is_extension(name: &str) -> bool {
    name.starts_with("SHMEM_TEAM_") || name.starts_with("SHMEM_COLOR_")
}

/// Returns the declaration of a constant as a parameter, after a comment.
fn parameter(constant: &Constant<'_>) -> Result<String> {
    let Constant {
        name,
        kind,
        value,
        about,
    } = constant;
    let (kind, value) = match *kind {
        "&str" => ("CHARACTER(LEN=SHMEM_MAX_NAME_LEN)", value.replace('"', "'")),
        "usize" => ("INTEGER(KIND=8)", value.to_string()),
        // A pSync of INTEGER elements has as many bytes as C's, whose elements are `long`.
        _ if name.ends_with("_SYNC_SIZE") => ("INTEGER", (2 * value.parse::<u32>()?).to_string()),
        _ => ("INTEGER", value.to_string()),
    };

    Ok(format!(
        "! {about}\n      {kind} {name}\n      PARAMETER ({name} = {value})\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_psync_has_as_many_bytes_as_in_c() {
        let constant = |name, kind, value| Constant {
            name,
            kind,
            value,
            about: "Some.",
        };
        let size = parameter(&constant("SHMEM_BCAST_SYNC_SIZE", "c_int", "3")).unwrap();
        let twice = "      PARAMETER (SHMEM_BCAST_SYNC_SIZE = 6)\n";
        assert!(size.ends_with(twice), "{size}");

        let other = parameter(&constant("SHMEM_CMP_NE", "c_int", "3")).unwrap();
        assert_eq!(
            other,
            "! Some.\n      INTEGER SHMEM_CMP_NE\n      PARAMETER (SHMEM_CMP_NE = 3)\n"
        );
    }

    #[test]
    fn symbols_are_lower_case_with_one_underscore() {
        let symbols: Vec<String> = Fortran::read().symbols().collect();
        assert!(symbols.contains(&"shmem_int4_max_to_all_".to_owned()));
        assert!(!symbols.contains(&"shmem_comp4_xor_to_all_".to_owned()));
    }
}
