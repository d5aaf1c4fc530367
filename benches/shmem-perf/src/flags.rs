//! Reads the flags of a subcommand, and answers `--help`.

use clap::Parser;
use clap::error::ErrorKind;

use crate::print::print;

/// Returns the flags, or nothing after `--help`.
pub fn parse<T: Parser>(program: &str, args: &[String]) -> Result<Option<T>, String> {
    let all = std::iter::once(program.to_owned()).chain(args.iter().cloned());
    match T::try_parse_from(all) {
        Ok(flags) => Ok(Some(flags)),
        Err(error) if error.kind() == ErrorKind::DisplayHelp => {
            print(&error.to_string()).map(|()| None)
        }
        Err(error) => {
            let text = error.to_string();
            Err(text.trim_start_matches("error: ").trim_end().to_owned())
        }
    }
}
