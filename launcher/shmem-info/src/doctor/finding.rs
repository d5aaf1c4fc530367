//! One line of what the doctor finds.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a finding means for a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Grade {
    /// As it should be.
    Ok,
    /// Of no harm to most jobs.
    Note,
    /// Jobs run, but worse than they could, or large ones do not.
    Warning,
    /// No job runs.
    Bad,
}

/// A property of a machine, with what it means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub name: String,
    pub grade: Grade,
    pub text: String,
    pub remedy: Option<String>,
}

impl Finding {
    pub fn new(name: impl Into<String>, grade: Grade, text: impl Into<String>) -> Finding {
        Finding { name: name.into(), grade, text: text.into(), remedy: None }
    }

    pub fn ok(name: impl Into<String>, text: impl Into<String>) -> Finding {
        Finding::new(name, Grade::Ok, text)
    }

    pub fn remedy(self, remedy: impl Into<String>) -> Finding {
        Finding { remedy: Some(remedy.into()), ..self }
    }
}

/// Findings under a title.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Section {
    pub title: String,
    pub findings: Vec<Finding>,
}

impl Section {
    /// The title, and a line for each finding.
    pub fn text(&self) -> String {
        let lines: String = self
            .findings
            .iter()
            .map(|finding| format!("  {:<8}{finding}\n", finding.grade.word()))
            .collect();
        format!("{}\n{lines}", self.title)
    }
}

impl Grade {
    fn word(self) -> &'static str {
        match self {
            Grade::Ok => "ok",
            Grade::Note => "note",
            Grade::Warning => "warning",
            Grade::Bad => "bad",
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.text)?;
        self.remedy.as_ref().map_or(Ok(()), |remedy| write!(f, "; {remedy}"))
    }
}
