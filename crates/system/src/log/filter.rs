//! Which events are printed: a level for all modules, or a level for each of some modules.

use std::borrow::Cow;
use tracing::Level;
use tracing_subscriber::filter::Targets;

/// The prefix of this repository's crates, which users omit.
const CRATES: &str = "rushmem_";

/// The module that stands for several crates, and these.
const RUNTIME: &str = "runtime";
const CRATES_OF_RUNTIME: [&str; 3] = ["runtime", "communication", "pe"];

/// The crates that report something. `transport` stands for its providers, too, since their names
/// begin with it.
const MODULES: [&str; 6] = [
    "bootstrap",
    "runtime",
    "transport",
    "transport_tcp",
    "transport_ucx",
    "transport_ofi",
];

/// The value of `SHMEM_DEBUG`: which events are printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter(Vec<TargetLevel>);

/// The most detailed level of the events of some modules.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TargetLevel {
    /// The start of the modules' names, as `tracing` has them.
    prefix: String,
    level: Level,
}

impl Filter {
    /// The text that describes the input of [`parse`](Filter::parse).
    pub const EXPECTED: &str = "1, 2 or 3, or some of the modules bootstrap, runtime, transport, transport_tcp, transport_ucx and \
         transport_ofi, with or without a part such as runtime::start and a level (info, debug or trace), separated by \
         commas, such as transport=debug,bootstrap=trace; by default nothing is printed";

    /// Reads a list of modules with their levels, or one level for all. A text without `=`, `,` and
    /// `:` that is neither a module nor a level means `debug` for all, since the standard gives any
    /// value a meaning (OpenSHMEM 1.6, §8). Returns `None` for any other text.
    pub fn parse(text: &str) -> Option<Filter> {
        if let Some(level) = level(text) {
            return Some(Filter::all(level));
        }

        let mut levels = Vec::new();
        for item in text.split(',') {
            match targets_of(item) {
                Some(targets) => levels.extend(targets),
                None if text.contains(['=', ',', ':']) => return None,
                None => return Some(Filter::all(Level::DEBUG)),
            }
        }
        Some(Filter(levels))
    }

    fn all(level: Level) -> Filter {
        Filter(vec![TargetLevel {
            prefix: CRATES.to_owned(),
            level,
        }])
    }

    /// Returns the most detailed level that any module has.
    pub(crate) fn max_level(&self) -> Level {
        self.0
            .iter()
            .map(|target| target.level)
            .max()
            .unwrap_or(Level::INFO)
    }

    pub(crate) fn targets(&self) -> Targets {
        let levels = self.0.iter().map(|target| (&target.prefix, target.level));
        Targets::new().with_targets(levels)
    }
}

fn level(text: &str) -> Option<Level> {
    match text.trim() {
        "1" | "info" => Some(Level::INFO),
        "2" | "debug" => Some(Level::DEBUG),
        "3" | "trace" => Some(Level::TRACE),
        _ => None,
    }
}

/// Returns the module of an event as a filter names it.
pub(crate) fn module(target: &str) -> Cow<'_, str> {
    let Some(path) = target.strip_prefix(CRATES) else {
        return target.into();
    };
    match path.split_once("::") {
        Some((root, part)) if CRATES_OF_RUNTIME.contains(&root) => {
            format!("{RUNTIME}::{part}").into()
        }
        _ => path.into(),
    }
}

/// Parses a module, and its level if there is one; `debug` is the default. Returns the targets of
/// its events, with the level; `None` if the module or the level is unknown.
fn targets_of(item: &str) -> Option<Vec<TargetLevel>> {
    let (module, level) = match item.split_once('=') {
        Some((module, name)) => (module, level(name)?),
        None => (item, Level::DEBUG),
    };

    let module = module.trim().replace('-', "_");
    let root = module.split("::").next().unwrap_or_default();
    if !MODULES.contains(&root) {
        return None;
    }

    let part = &module[root.len()..];
    let crates: &[&str] = if root == RUNTIME {
        &CRATES_OF_RUNTIME
    } else {
        &[root]
    };
    let targets = crates.iter().map(|root| TargetLevel {
        prefix: format!("{CRATES}{root}{part}"),
        level,
    });
    Some(targets.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(items: &[(&str, Level)]) -> Option<Filter> {
        let targets = items.iter().map(|&(prefix, level)| TargetLevel {
            prefix: prefix.to_owned(),
            level,
        });
        Some(Filter(targets.collect()))
    }

    #[test]
    fn one_level_is_for_all_modules() {
        let all = |level| filter(&[("rushmem_", level)]);
        for (texts, level) in [
            (&["1", "info"] as &[_], Level::INFO),
            (&["2", "debug", "", "yes", "4"], Level::DEBUG),
            (&["3", "trace"], Level::TRACE),
        ] {
            assert!(
                texts.iter().all(|text| Filter::parse(text) == all(level)),
                "{level}"
            );
        }
    }

    #[test]
    fn modules_have_levels_of_their_own() {
        assert_eq!(
            Filter::parse("transport=info, bootstrap=3,transport-tcp::shared"),
            filter(&[
                ("rushmem_transport", Level::INFO),
                ("rushmem_bootstrap", Level::TRACE),
                ("rushmem_transport_tcp::shared", Level::DEBUG),
            ])
        );
        assert_eq!(
            Filter::parse("runtime"),
            filter(&[
                ("rushmem_runtime", Level::DEBUG),
                ("rushmem_communication", Level::DEBUG),
                ("rushmem_pe", Level::DEBUG),
            ])
        );
        assert!(
            MODULES
                .iter()
                .all(|module| Filter::EXPECTED.contains(module))
        );
    }

    #[test]
    fn the_crates_of_the_runtime_are_one_module() {
        for (target, name) in [
            (
                "rushmem_pe::memory::huge_pages",
                "runtime::memory::huge_pages",
            ),
            ("rushmem_runtime::start::join", "runtime::start::join"),
            ("rushmem_transport::engine", "transport::engine"),
            ("program", "program"),
        ] {
            assert_eq!(module(target), name);
        }
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for text in [
            "tcp=debug",
            "transport=loud",
            "transport,tcp",
            "runtime=debug,",
            "a::b",
        ] {
            assert_eq!(Filter::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_filter_lets_modules_and_their_parts_pass() {
        let filter = Filter::parse("transport=debug,runtime::start=trace").expect("valid");
        let targets = filter.targets();
        for (module, level, passes) in [
            ("rushmem_transport::peers::loss", Level::DEBUG, true),
            ("rushmem_transport_ucx::shared", Level::DEBUG, true),
            ("rushmem_transport_ucx::shared", Level::TRACE, false),
            ("rushmem_runtime::start::join", Level::TRACE, true),
            ("rushmem_runtime::net", Level::INFO, false),
            ("program", Level::ERROR, false),
        ] {
            assert_eq!(
                targets.would_enable(module, &level),
                passes,
                "{module} at {level}"
            );
        }
        assert_eq!(filter.max_level(), Level::TRACE);
    }
}
