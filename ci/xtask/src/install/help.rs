//! What a program prints for `--help`, in parts: the one source of man pages and completions.
//!
//! The form is that of clap, which the script of the wrappers follows: paragraphs, `Usage:`, then headings with entries
//! under them, each a term and its text. Nothing here knows what the options mean.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};
use workbench::process;

/// A text in parts.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Help {
    /// What the program is for: paragraphs before the first heading.
    pub about: Vec<String>,
    /// How it is called.
    pub usage: String,
    /// What stands under headings, in their order.
    pub sections: Vec<Section>,
}

/// A heading and what is under it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Section {
    /// The heading without its colon.
    pub title: String,
    /// Its entries.
    pub entries: Vec<Entry>,
    /// Paragraphs after them.
    pub paragraphs: Vec<String>,
}

/// A term and what it means.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// For example `-n, --np <N>`.
    pub term: String,
    /// Its meaning, on one line.
    pub text: String,
}

/// An option, for completions.
#[derive(Debug, PartialEq, Eq)]
pub struct Opt {
    /// All of its names, hyphens included.
    pub names: Vec<String>,
    /// What its value is called.
    pub value: Option<String>,
    /// Whether the value can only follow an equals sign, and may be left out.
    pub is_attached: bool,
    /// Its meaning.
    pub text: String,
}

impl Help {
    /// Asks the program.
    ///
    /// # Errors
    /// When it cannot be run, or its help has no usage or no options.
    pub fn of(program: &Path) -> Result<Self> {
        let help = Self::parse(&printed(program, &["--help"])?);
        if help.about.is_empty() || help.usage.is_empty() || help.options().is_empty() {
            bail!(
                "`{} --help` has another form than expected: a purpose, a usage, options",
                program.display()
            );
        }
        Ok(help)
    }

    pub fn parse(text: &str) -> Self {
        let mut help = Self::default();
        let mut is_new_paragraph = true;
        for line in text.lines() {
            let indent = line.len() - line.trim_start().len();
            let words = line.trim();
            if words.is_empty() {
                is_new_paragraph = true;
            } else if let Some(usage) = line.strip_prefix("Usage:") {
                help.usage = usage.trim().to_owned();
            } else if let Some(title) =
                words.strip_suffix(':').filter(|_| indent == 0 && is_new_paragraph)
            {
                help.sections.push(Section { title: title.to_owned(), ..Section::default() });
            } else if let Some(section) = help.sections.last_mut() {
                section.add(words, indent, is_new_paragraph);
            } else {
                add_paragraph(&mut help.about, words, is_new_paragraph);
            }
            is_new_paragraph &= words.is_empty();
        }
        help
    }

    /// All entries that are options.
    pub fn options(&self) -> Vec<Opt> {
        let entries = self.sections.iter().flat_map(|section| &section.entries);
        entries.filter(|entry| entry.term.starts_with('-')).map(Entry::option).collect()
    }
}

impl Section {
    fn add(&mut self, words: &str, indent: usize, is_new_paragraph: bool) {
        let starts_entry = indent == 2 || indent == 6 && words.starts_with("--");
        if starts_entry {
            let (term, text) = words.split_once("  ").unwrap_or((words, ""));
            self.entries.push(Entry { term: term.into(), text: text.trim().into() });
        } else if let Some(entry) = self.entries.last_mut().filter(|_| indent > 0) {
            append(&mut entry.text, words);
        } else {
            add_paragraph(&mut self.paragraphs, words, is_new_paragraph);
        }
    }
}

impl Entry {
    fn option(&self) -> Opt {
        let (text, notes) = self.notes();
        let spelled = |name: &str| name.split(['<', '[', '=', ' ']).next().unwrap_or("").to_owned();
        let mut names: Vec<String> = self.term.split(", ").map(spelled).collect();
        for (_, aliases) in notes.into_iter().filter(|(key, _)| key.starts_with("alias")) {
            names.extend(aliases.split(", ").map(str::to_owned));
        }
        let also = text.split_once("(also ").and_then(|(_, rest)| rest.split_once(')'));
        names.extend(also.into_iter().flat_map(|(also, _)| also.split(", ")).map(spelled));
        let value = self.term.split_once('<').and_then(|(_, rest)| rest.rsplit_once('>'));
        Opt {
            names,
            value: value.map(|(name, _)| name.to_owned()),
            is_attached: self.term.contains("[=<"),
            text: text.to_owned(),
        }
    }

    /// The text without what clap puts in brackets after it, and that: `[default: 10]`.
    pub fn notes(&self) -> (&str, Vec<(&str, &str)>) {
        let mut text = self.text.as_str();
        let mut notes = Vec::new();
        while let Some((rest, note)) =
            text.strip_suffix(']').and_then(|rest| rest.rsplit_once(" ["))
        {
            let Some((key, value)) = note.split_once(": ") else { break };
            notes.insert(0, (key, value));
            text = rest;
        }
        (text, notes)
    }
}

/// What the program prints with `arguments`, with an environment that sets nothing of ours.
pub fn printed(program: &Path, arguments: &[&str]) -> Result<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    process::capture(Command::new(program).args(arguments).env_clear().env("PATH", path))
}

fn add_paragraph(paragraphs: &mut Vec<String>, words: &str, is_new: bool) {
    match paragraphs.last_mut().filter(|_| !is_new) {
        Some(paragraph) => append(paragraph, words),
        None => paragraphs.push(words.to_owned()),
    }
}

fn append(text: &mut String, words: &str) {
    if !text.is_empty() {
        text.push(' ');
    }
    text.push_str(words);
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "\
Start a program

Usage: start [OPTIONS] PROGRAM

Options:
  -n, --np <N>            Number of PEs (also -np N); by default 1
  -x <NAME[=VALUE]>       Set a variable
  -H, --host <HOST[:N],...>
          Hosts, with a number
          for each [aliases: --hosts, --nodes]
      --limit <SECONDS>   How long [env: LIMIT=] [default: 10]
      --gdb[=<PE,...>]    Under gdb

Exit status:
  124       the time was over
  126, 127  the program cannot be run

Two lines of
one paragraph.
";

    #[test]
    fn help_is_taken_apart() {
        let help = Help::parse(HELP);
        assert_eq!(help.about, ["Start a program"]);
        assert_eq!(help.usage, "start [OPTIONS] PROGRAM");
        assert_eq!(help.sections.len(), 2);
        let status = &help.sections[1];
        assert_eq!((status.title.as_str(), status.entries.len()), ("Exit status", 2));
        assert_eq!(status.entries[1].term, "126, 127");
        assert_eq!(status.paragraphs, ["Two lines of one paragraph."]);
    }

    #[test]
    fn options_have_names_and_values() {
        let options = Help::parse(HELP).options();
        let names: Vec<String> = options.iter().map(|option| option.names.join(" ")).collect();
        assert_eq!(names, ["-n --np -np", "-x", "-H --host --hosts --nodes", "--limit", "--gdb"]);
        assert_eq!(options[2].text, "Hosts, with a number for each");
        assert_eq!(options[2].value.as_deref(), Some("HOST[:N],..."));
        assert_eq!(options[3].text, "How long");
        assert!(options[4].is_attached && !options[1].is_attached);
    }

    #[test]
    fn text_may_lie_below_its_term() {
        let help = Help::parse("Version 1\n\nEnvironment:\n  NAME (or OLD)\n      what it means\n");
        let entry = Entry { term: "NAME (or OLD)".into(), text: "what it means".into() };
        assert_eq!(help.sections[0].entries, [entry]);
        assert_eq!(help.about, ["Version 1"]);
    }
}
