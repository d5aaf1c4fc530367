//! Man pages, made of what programs print about themselves.
//!
//! The language is that of the macros `man`, which groff and mandoc both know.

use std::process::Command;

use anyhow::{Context, Result};
use workbench::process;

use super::help::{Entry, Help, Section};

/// All pages, for the last section of each.
const PAGES: [&str; 8] = [
    "oshcc(1)",
    "oshcxx(1)",
    "oshfort(1)",
    "oshrun(1)",
    "shmem-info(1)",
    "shmem-perf(1)",
    "shmem-tune(1)",
    "rushmem(7)",
];

/// The page of a command.
pub fn command(name: &str, help: &Help, version: &str) -> Result<String> {
    let about = help.about.join(" ");
    let purpose = about.split(". ").next().unwrap_or(&about).trim_end_matches('.');
    let mut page = title(name, 1, version)?;
    page += &format!(".SH NAME\n{name} \\- {}\n", escaped(&uncapitalised(purpose)));
    page += &format!(".SH SYNOPSIS\n{}\n", synopsis(name, &help.usage));
    page += ".SH DESCRIPTION\n";
    for (index, paragraph) in help.about.iter().enumerate() {
        if index > 0 {
            page += ".PP\n";
        }
        page += &prose(&format!("{}.", paragraph.trim_end_matches('.')));
    }
    for part in &help.sections {
        page += &section(part);
    }
    page += &see_also(name);
    Ok(page)
}

/// The page of the library: `template` with the variables of `settings` in it.
pub fn library(template: &str, settings: &Help, version: &str) -> Result<String> {
    let environment = settings.sections.iter().find(|section| section.title == "Environment");
    let environment = environment
        .filter(|section| !section.entries.is_empty())
        .context("shmem-info prints no environment variables in the expected form")?;
    let entries: String = environment.entries.iter().map(entry).collect();
    let page = template.replace("@ENVIRONMENT@\n", &entries);
    Ok(title("rushmem", 7, version)? + &page + &see_also("rushmem"))
}

fn title(name: &str, chapter: u32, version: &str) -> Result<String> {
    let date = process::capture(Command::new("date").arg("+%F"))?;
    let name = name.to_uppercase().replace('-', "\\-");
    Ok(format!(
        ".TH {name} {chapter} \"{}\" \"{version}\" \"OpenSHMEM\"\n.nh\n.ad l\n",
        date.trim()
    ))
}

fn see_also(name: &str) -> String {
    let others = PAGES.iter().filter(|page| page.split('(').next() != Some(name));
    let others: Vec<String> = others
        .map(|page| {
            let (name, chapter) = page.split_once('(').unwrap_or((page, ")"));
            format!(".BR {} ({chapter}", name.replace('-', "\\-"))
        })
        .collect();
    format!(".SH SEE ALSO\n{}\n", others.join(" ,\n"))
}

/// The name in bold, what stands for something else in italics.
fn synopsis(name: &str, usage: &str) -> String {
    let rest = usage.strip_prefix(name).unwrap_or(usage);
    format!("\\fB{}\\fR{}", escaped(name), emphasised(rest, |c| c.is_ascii_uppercase()))
}

fn section(section: &Section) -> String {
    let mut text = format!(".SH {}\n", section.title.to_uppercase());
    for part in &section.entries {
        text += &entry(part);
    }
    for paragraph in &section.paragraphs {
        text += &format!(".PP\n{}", prose(paragraph));
    }
    text
}

fn entry(entry: &Entry) -> String {
    let (text, notes) = entry.notes();
    let mut sentence = format!("{}.", text.trim_end_matches('.'));
    for (key, value) in notes {
        sentence += &match key {
            "env" => format!(" Environment: {}.", value.trim_end_matches('=')),
            "default" => format!(" Default: {value}."),
            "alias" | "aliases" => format!(" Also {value}."),
            _ => format!(" {key}: {value}."),
        };
    }
    format!(".TP\n{}\n{}", term(&entry.term), prose(&sentence))
}

/// What one types in bold, what stands for a value in italics.
fn term(term: &str) -> String {
    let mut text = String::new();
    for (index, part) in term.split(", ").enumerate() {
        text += if index > 0 { ", " } else { "" };
        let (name, value) = match part.find(['<', '[', ' ']) {
            Some(at) => part.split_at(at),
            None => (part, ""),
        };
        let value = match value.split_once('<').zip(value.rsplit_once('>')) {
            Some(((before, _), (_, after))) => {
                let inner = &value[before.len() + 1..value.len() - after.len() - 1];
                format!("{}\\fI{}\\fR{}", escaped(before), escaped(inner), escaped(after))
            }
            None => escaped(value),
        };
        text += &format!("\\fB{}\\fR{value}", escaped(name));
    }
    text
}

/// Sentences, each on a line of its own as these macros want it, with options in bold.
fn prose(text: &str) -> String {
    let mut line = String::new();
    for (index, word) in text.split(' ').enumerate() {
        let ended = line.ends_with(['.', ':']) && word.starts_with(|c: char| c.is_uppercase());
        line += match index {
            0 => "",
            _ if ended => "\n",
            _ => " ",
        };
        let is_option = word.starts_with('-') && word.len() > 1;
        let bare = word.trim_end_matches(['.', ',', ';', ':', ')']);
        line += &match is_option {
            true => format!("\\fB{}\\fR{}", escaped(bare), &word[bare.len()..]),
            false => escaped(word),
        };
    }
    let safe = line.split('\n').map(|line| match line.starts_with(['.', '\'']) {
        true => format!("\\&{line}\n"),
        false => format!("{line}\n"),
    });
    safe.collect()
}

/// Words of which every letter is as `is_placeholder` says, in italics.
fn emphasised(text: &str, is_placeholder: impl Fn(char) -> bool) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(&is_placeholder) {
        let end = rest[start..].find(|c| !is_placeholder(c)).map_or(rest.len(), |n| start + n);
        shown += &format!("{}\\fI{}\\fR", escaped(&rest[..start]), &rest[start..end]);
        rest = &rest[end..];
    }
    shown + &escaped(rest)
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

fn uncapitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_show_what_is_typed_and_what_it_stands_for() {
        assert_eq!(term("-n, --np <N>"), r"\fB\-n\fR, \fB\-\-np\fR \fIN\fR");
        assert_eq!(term("--gdb[=<PE,...>]"), r"\fB\-\-gdb\fR[=\fIPE,...\fR]");
        assert_eq!(term("NAME (or OLD)"), r"\fBNAME\fR (or OLD)");
    }

    #[test]
    fn no_line_of_prose_is_a_macro() {
        assert_eq!(prose("Ends. .so is none"), "Ends. .so is none\n");
        assert_eq!(
            prose(".so and more. Then --option."),
            "\\&.so and more.\nThen \\fB\\-\\-option\\fR.\n"
        );
        assert_eq!(prose(r"a\b"), "a\\eb\n");
    }

    #[test]
    fn a_usage_is_a_synopsis() {
        let expected = r"\fBoshrun\fR [\fIOPTIONS\fR] \fIPROGRAM\fR [\fIARGUMENT\fR]...";
        assert_eq!(synopsis("oshrun", "oshrun [OPTIONS] PROGRAM [ARGUMENT]..."), expected);
    }
}
