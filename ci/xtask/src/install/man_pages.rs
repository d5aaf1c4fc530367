//! Man pages and completions, which the installed programs print themselves; the pages of the
//! wrappers and the library are files.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};
use roff::{Roff, bold, roman};
use task_support::process;

use super::files::Prefix;
use crate::toolchain::Toolchain;

/// Returns what a program generates, and where `man` and the shells look for it.
fn generated(name: &str) -> [(&'static str, String); 4] {
    [
        ("man", format!("share/man/man1/{name}.1")),
        ("bash", format!("share/bash-completion/completions/{name}")),
        ("zsh", format!("share/zsh/site-functions/_{name}")),
        ("fish", format!("share/fish/vendor_completions.d/{name}.fish")),
    ]
}

pub fn of_program(prefix: &Prefix, name: &str, tools: &Toolchain) -> Result<()> {
    let date = date(tools)?;
    for (what, file) in generated(name) {
        let program = prefix.path(&format!("bin/{name}"));
        let text = printed(&program, &["--generate", what], tools)?;
        prefix.write(&file, &text.replace("@DATE@", &date))?;
    }
    Ok(())
}

pub fn page(prefix: &Prefix, file: &str, template: &str, tools: &Toolchain) -> Result<()> {
    let environment = if template.contains("@ENVIRONMENT@") {
        entries(&printed(&prefix.path("bin/shmem-info"), &["--describe"], tools)?)?
    } else {
        String::new()
    };
    let page = template
        .replace("@ENVIRONMENT@\n", &environment)
        .replace("@VERSION@", env!("CARGO_PKG_VERSION"))
        .replace("@DATE@", &date(tools)?);
    prefix.write(file, &page)
}

/// Returns the variables that shmem-info describes, as a list of a man page.
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
    let when = tools.epoch.as_ref().map_or_else(|| "now".to_owned(), |epoch| format!("@{epoch}"));
    Ok(process::capture(Command::new("date").args(["-u", "+%F", "-d", &when]))?.trim().to_owned())
}

/// Returns what the program prints, in an environment that sets nothing of ours.
fn printed(program: &Path, arguments: &[&str], tools: &Toolchain) -> Result<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut command = tools.running(program.as_os_str());
    process::capture(command.args(arguments).env_clear().env("PATH", path))
}
