//! Man pages and completions. The installed programs print their own; the pages of the wrappers, of
//! the library and of its routines are templates.

use std::path::Path;
use std::process::Command;

use crate::process;
use anyhow::{Result, bail};
use roff::{Roff, bold, roman};

use super::Toolchain;
use super::files::Prefix;

/// Writes the man page and the completions that a program prints.
pub fn write_generated(prefix: &Prefix, name: &str, tools: &Toolchain) -> Result<()> {
    // The values of the option `--generate`, and the file in which `man` or a shell looks for each.
    let files = [
        ("man", format!("share/man/man1/{name}.1")),
        ("bash", format!("share/bash-completion/completions/{name}")),
        ("zsh", format!("share/zsh/site-functions/_{name}")),
        (
            "fish",
            format!("share/fish/vendor_completions.d/{name}.fish"),
        ),
    ];
    let program = prefix.path(&format!("bin/{name}"));
    let date = date(tools)?;
    for (what, file) in files {
        let text = printed(&program, &["--generate", what], tools)?;
        prefix.write(&file, &text.replace("@DATE@", &date))?;
    }
    Ok(())
}

/// Writes the page of a template, with its placeholders replaced.
pub fn write(prefix: &Prefix, file: &str, template: &str, tools: &Toolchain) -> Result<()> {
    let mut page = template
        .replace("@VERSION@", env!("CARGO_PKG_VERSION"))
        .replace("@DATE@", &date(tools)?);
    if page.contains("@ENVIRONMENT@") {
        let program = prefix.path("bin/shmem-info");
        let described = printed(&program, &["--describe"], tools)?;
        page = page.replace("@ENVIRONMENT@\n", &entries(&described)?);
    }
    prefix.write(file, &page)
}

/// Returns the list of the environment variables in the language of man pages, from the text that
/// `shmem-info --describe` prints.
fn entries(text: &str) -> Result<String> {
    if text.trim().is_empty() {
        bail!("shmem-info prints no environment variables");
    }

    let mut page = Roff::new();
    for line in text.lines() {
        // A variable is followed by its meaning, which is indented.
        match line.strip_prefix("      ") {
            Some(meaning) => page.text([roman(meaning)]),
            None => page.control("TP", []).text([bold(line.trim())]),
        };
    }
    Ok(page.to_roff())
}

/// Returns the date of man pages.
fn date(tools: &Toolchain) -> Result<String> {
    let when = match &tools.epoch {
        Some(epoch) => format!("@{epoch}"),
        None => "now".to_owned(),
    };
    let mut command = Command::new("date");
    let printed = process::capture(command.args(["-u", "+%F", "-d", &when]))?;
    Ok(printed.trim().to_owned())
}

/// Returns what the program prints, in an environment without settings.
fn printed(program: &Path, arguments: &[&str], tools: &Toolchain) -> Result<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut command = tools.running(program.as_os_str());
    process::capture(command.args(arguments).env_clear().env("PATH", path))
}
