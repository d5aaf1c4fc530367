//! One of the two accesses of a race, by the names of the program.

use crate::access::{ShadowKind, ShadowRecord};
use crate::actors::{ActorRole, Who};
use crate::areas::SharedAreas;
use crate::sites::{self, Site};
use crate::symbols::{self, SourceLine};
use serde_json::json;
use std::fmt::Write as _;

/// One of the two accesses, resolved.
pub struct Side {
    /// Who makes it.
    pub who: Who,
    /// Its kind.
    pub kind: ShadowKind,
    /// The routine, or what the program does.
    pub what: String,
    /// Bytes of the whole access.
    pub nbytes: u32,
    /// Where it is in the program, from the innermost function.
    pub sources: Vec<SourceLine>,
    /// True if it may take effect later than its call.
    pub in_flight: bool,
}

impl Side {
    /// Returns the access of a record.
    pub fn new(areas: &SharedAreas, record: &ShadowRecord) -> Side {
        let site = sites::get(areas, record.site);
        let site = site.unwrap_or_else(|| Site { call: String::new(), frames: Vec::new() });
        let what = match (site.call.as_str(), record.kind) {
            ("", kind) => {
                let access = match (kind.is_atomic(), kind.writes()) {
                    (true, _) => "atomic operation of the language",
                    (false, true) => "store",
                    (false, false) => "load",
                };
                let way = if kind.is_to_peer() { " through shmem_ptr" } else { "" };
                format!("{access}{way}")
            }
            (call, _) => call.to_owned(),
        };
        let sources = symbols::of_program(&site.frames);
        let who = Who::find(areas, record.actor);
        let in_flight = !matches!(who.role, ActorRole::Thread(_));
        Side { who, kind: record.kind, what, nbytes: record.nbytes, sources, in_flight }
    }

    /// Returns its line of a report.
    pub fn line(&self) -> String {
        let mut line = format!("  PE {}", self.who.pe);
        if let ActorRole::Thread(number @ 1..) = self.who.role {
            let _ = write!(line, ", thread {number}");
        }
        let _ = write!(line, ": {} of {} bytes at ", self.what, self.nbytes);
        match self.sources.first() {
            Some(source) => {
                let _ = write!(line, "{source}");
            }
            None => line.push_str("an unknown place"),
        }
        if self.in_flight {
            line.push_str(", in flight since then");
        }
        for source in self.sources.iter().skip(1).filter(|source| source.file.is_some()) {
            let _ = write!(line, "\n      called at {source}");
        }
        line
    }

    /// Returns it as a report in JSON has it.
    pub fn json(&self) -> serde_json::Value {
        let frame = |source: &SourceLine| json!({"function": source.function, "file": source.file, "line": source.line});
        let thread = match self.who.role {
            ActorRole::Thread(number) => Some(number),
            _ => None,
        };
        json!({
            "pe": self.who.pe, "thread": thread, "access": self.what, "nbytes": self.nbytes,
            "in_flight": self.in_flight, "frames": self.sources.iter().map(frame).collect::<Vec<_>>(),
        })
    }
}
