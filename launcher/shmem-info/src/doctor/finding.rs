//! Findings of the doctor: one for each property that it examines, with a grade, and how they are
//! printed.

use std::fmt;
use std::net::IpAddr;

use clap::builder::styling::{AnsiColor, Style};
use serde::{Deserialize, Serialize};

use crate::terminal::wrapped;

/// The severity of a finding for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Grade {
    /// The property is as it should be.
    Ok,
    /// A part that jobs do not use.
    Unused,
    /// A finding that does no harm to most jobs.
    Note,
    /// Jobs run, but worse than they could, or large ones do not.
    Warning,
    /// No job runs.
    Bad,
}

/// A property of a machine, with its meaning for jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub name: String,
    pub grade: Grade,
    pub text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Finding {
    pub fn new(name: impl Into<String>, grade: Grade, text: impl Into<String>) -> Finding {
        Finding {
            name: name.into(),
            grade,
            text: text.into(),
            remedy: None,
        }
    }

    pub fn ok(name: impl Into<String>, text: impl Into<String>) -> Finding {
        Finding::new(name, Grade::Ok, text)
    }

    /// Returns the finding as lines of the terminal.
    pub fn lines(&self) -> String {
        self.grade.line(&self.to_string())
    }

    pub fn remedy(self, remedy: impl Into<String>) -> Finding {
        Finding {
            remedy: Some(remedy.into()),
            ..self
        }
    }
}

/// Findings under a title.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    pub title: String,
    pub findings: Vec<Finding>,
}

impl Section {
    /// Returns the title and the findings. If one of them is `Ok`, those that are `Unused` become
    /// one line with their names, unless `says_why`.
    pub fn text(&self, says_why: bool) -> String {
        let is_usable = self
            .findings
            .iter()
            .any(|finding| finding.grade == Grade::Ok);

        let mut text = wrapped(&self.title, 2) + "\n";
        let mut folded = Vec::new();
        for finding in &self.findings {
            if finding.grade == Grade::Unused && is_usable && !says_why {
                folded.push(finding.name.as_str());
            } else {
                text += &finding.lines();
            }
        }

        if !folded.is_empty() {
            folded.dedup();
            let names = format!("{} (reasons: shmem-info --doctor --why)", folded.join(", "));
            text += &Grade::Unused.line(&names);
        }
        text
    }

    /// Returns the section without the name of the host `host`, and without addresses.
    pub fn without_hosts(&self, host: &str) -> Section {
        let mut anonymous = self.clone();
        anonymous.title = without_hosts(&self.title, host);
        for finding in &mut anonymous.findings {
            finding.name = without_hosts(&finding.name, host);
            finding.text = without_hosts(&finding.text, host);
            if let Some(remedy) = &mut finding.remedy {
                *remedy = without_hosts(remedy, host);
            }
        }
        anonymous
    }
}

/// Replaces the words of a text that are `host` or an address.
fn without_hosts(text: &str, host: &str) -> String {
    let mut words = Vec::new();
    for word in text.split(' ') {
        let bare = word.trim_matches([',', ';', '(', ')', '=']);
        // A remedy may have a word such as `NAME=ADDRESS`.
        let bare = bare.rsplit('=').next().unwrap_or(bare);
        words.push(if bare.parse::<IpAddr>().is_ok() {
            word.replace(bare, "ADDRESS")
        } else if bare.trim_end_matches(':') == host {
            word.replace(host, "HOST")
        } else {
            word.to_owned()
        });
    }
    words.join(" ")
}

/// Returns the line of the verdict, of which the first words are in color. `rest` follows them.
pub fn verdict(is_ok: bool, rest: &str) -> String {
    let color = if is_ok {
        AnsiColor::Green
    } else {
        AnsiColor::Red
    };
    let style = Style::new().bold().fg_color(Some(color.into()));
    let word = if is_ok { "ok" } else { "not ok" };
    wrapped(&format!("{style}verdict: {word}{style:#}{rest}"), 2) + "\n"
}

impl Grade {
    /// Returns lines of a finding of this grade.
    fn line(self, text: &str) -> String {
        let (word, color) = match self {
            Grade::Ok => ("ok", None),
            Grade::Unused => ("unused", None),
            Grade::Note => ("note", None),
            Grade::Warning => ("warning", Some(AnsiColor::Yellow.into())),
            Grade::Bad => ("bad", Some(AnsiColor::Red.into())),
        };
        let style = Style::new().fg_color(color);
        wrapped(&format!("  {style}{word:<8}{style:#}{text}"), 10) + "\n"
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.text)?;
        if let Some(remedy) = &self.remedy {
            write!(f, "; {remedy}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_no_host_and_no_address() {
        let of = |text| without_hosts(text, "node7");
        assert_eq!(of("host node7: Rushmem 1.0"), "host HOST: Rushmem 1.0");
        assert_eq!(of("eth0: 10.1.2.3, connects"), "eth0: ADDRESS, connects");
        assert_eq!(
            of("the first one, fe80::1, is"),
            "the first one, ADDRESS, is"
        );
        assert_eq!(
            of("near CPUs 0-3, 0000:17:00.0"),
            "near CPUs 0-3, 0000:17:00.0"
        );
        assert_eq!(of("libfabric 1.17: eth0"), "libfabric 1.17: eth0");
    }
}
