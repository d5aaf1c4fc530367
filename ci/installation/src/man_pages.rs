//! Man pages and completions. The installed programs print their own; the pages of the wrappers, of
//! the library and of its routines are templates.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};
use roff::{Roff, bold, roman};
use task_support::process;

use super::files::Prefix;
use crate::Toolchain;

/// Returns what a program generates, as values of its option `--generate`, and the file in which
/// `man` or a shell looks for each.
fn generated(name: &str) -> [(&'static str, String); 4] {
    [
        ("man", format!("share/man/man1/{name}.1")),
        ("bash", format!("share/bash-completion/completions/{name}")),
        ("zsh", format!("share/zsh/site-functions/_{name}")),
        (
            "fish",
            format!("share/fish/vendor_completions.d/{name}.fish"),
        ),
    ]
}

/// Writes the man page and the completions that a program prints.
pub fn write_generated(prefix: &Prefix, name: &str, tools: &Toolchain) -> Result<()> {
    let date = date(tools)?;
    for (what, file) in generated(name) {
        let program = prefix.path(&format!("bin/{name}"));
        let text = printed(&program, &["--generate", what], tools)?;
        prefix.write(&file, &text.replace("@DATE@", &date))?;
    }
    Ok(())
}

/// Writes the page of a template, with its placeholders replaced.
pub fn write(prefix: &Prefix, file: &str, template: &str, tools: &Toolchain) -> Result<()> {
    let environment = if template.contains("@ENVIRONMENT@") {
        entries(&printed(
            &prefix.path("bin/shmem-info"),
            &["--describe"],
            tools,
        )?)?
    } else {
        String::new()
    };
    let page = template
        .replace("@ENVIRONMENT@\n", &environment)
        .replace("@VERSION@", env!("CARGO_PKG_VERSION"))
        .replace("@DATE@", &date(tools)?);
    prefix.write(file, &page)
}

/// Returns the list of the environment variables in the language of man pages, from the text that
/// `shmem-info --describe` prints.
fn entries(text: &str) -> Result<String> {
    let mut page = Roff::new();
    for line in text.lines() {
        match line.strip_prefix("      ") {
            Some(meaning) => page.text([roman(meaning)]),
            None => page.control("TP", []).text([bold(line.trim())]),
        };
    }
    match page.to_roff() {
        page if page.is_empty() => bail!("shmem-info prints no environment variables"),
        page => Ok(page),
    }
}

fn date(tools: &Toolchain) -> Result<String> {
    let when = tools
        .epoch
        .as_ref()
        .map_or_else(|| "now".to_owned(), |epoch| format!("@{epoch}"));
    Ok(
        process::capture(Command::new("date").args(["-u", "+%F", "-d", &when]))?
            .trim()
            .to_owned(),
    )
}

/// Returns what the program prints, in an environment without settings.
fn printed(program: &Path, arguments: &[&str], tools: &Toolchain) -> Result<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut command = tools.running(program.as_os_str());
    process::capture(command.args(arguments).env_clear().env("PATH", path))
}
