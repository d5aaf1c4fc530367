//! Unit tests of `test`.

use std::path::PathBuf;

use super::*;

fn session() -> TestSession {
    TestSession {
        workspace: Workspace { root: PathBuf::new(), target: PathBuf::new(), packages: Vec::new() },
        prefix: PathBuf::new(),
        suites: Suites::default(),
        tier: Tier::Usual,
    }
}

#[test]
fn a_failure_stops_only_what_stands_on_it() {
    let steps = [
        step("install", |_| bail!("no room")),
        installed("tests", |_| Ok(StepOutcome::Passed)),
        step("miri", |_| Ok(StepOutcome::Passed)),
    ];
    let reports = run_all(&steps.iter().collect::<Vec<_>>(), &session());
    let outcomes: Vec<String> = reports.iter().map(StepReport::outcome).collect();
    assert_eq!(outcomes, ["FAILED: no room", "skipped: install failed", "passed"]);
}

#[test]
fn a_step_of_another_tier_is_named_with_its_tier() {
    let refused = |providers, only: &str| {
        let only = vec![only.to_owned()];
        let flags = TestFlags { providers, full: false, bare: false, only, list: true };
        run(flags).unwrap_err().to_string()
    };
    let hosts = "the step `hosts` is one of `cargo xtask test --full`";
    assert_eq!(refused(false, "hosts"), hosts);
    assert_eq!(refused(true, "hosts"), hosts);
    let tests = "the step `tests` is one of `cargo xtask test`";
    assert_eq!(refused(true, "tests"), tests);
    assert!(refused(false, "host").starts_with("there is no step `host`"));
}

#[test]
fn every_step_that_is_named_as_a_condition_comes_before() {
    for tier in [TEST.iter().collect(), PROVIDERS.iter().collect(), all()] {
        for (index, step) in tier.iter().enumerate() {
            if let Some(after) = step.after {
                assert!(tier[..index].iter().any(|before| before.name == after), "{}", step.name);
            }
        }
    }
}
