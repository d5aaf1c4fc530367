//! `cargo xtask bench-peer`: our library and another OpenSHMEM, side by side.
//!
//! One source, benches/peer.c, is built by both compilers' wrappers and run by both launchers in turn,
//! so that whatever else the machine does falls on both. The table quotes medians with the range of
//! the middle half; where two ranges overlap no difference was measured, and the table says equal.
//!
//! By default the other one is the system's Open MPI and ours is built and installed under target/.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use lexopt::{Arg, ValueExt};

use crate::stats::Spread;
use crate::workspace::Workspace;
use crate::{install, needs, process};

/// What Open MPI needs to run at all: its memory hooks crash in finalize, root is refused, and a
/// binding of its own would be in the way of the benchmark's. Others ignore these variables.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("OMPI_MCA_memory", "^patcher"),
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("OMPI_MCA_hwloc_base_binding_policy", "none"),
];
const RUNS: usize = 15;
/// The load below which nothing else is at work.
const QUIET: f64 = 0.5;
const LIMIT: Duration = Duration::from_secs(60);

/// One line of the table: a name that benches/peer.c prints, or one of the launches timed here.
struct Row {
    name: &'static str,
    title: &'static str,
    bare: Option<&'static str>,
    /// The aim: ours takes at most this share of theirs.
    of_theirs: Option<f64>,
    /// The aim: ours takes at most this share of the bare loop.
    of_bare: Option<f64>,
}

const fn row(name: &'static str, title: &'static str, bare: &'static str, of_theirs: f64) -> Row {
    Row { name, title, bare: Some(bare), of_theirs: Some(of_theirs), of_bare: None }
}

const fn launch(name: &'static str, title: &'static str, of_theirs: Option<f64>) -> Row {
    Row { name, title, bare: None, of_theirs, of_bare: None }
}

const ROWS: &[Row] = &[
    row("put8", "put of 8 bytes", "bare_put8", 0.3),
    row("p8", "p of a long", "bare_put8", 0.3),
    row("put8_nbi", "nbi put of 8 bytes", "bare_put8", 0.3),
    row("get8", "get of 8 bytes", "bare_get8", 0.2),
    row("g8", "g of a long", "bare_get8", 0.2),
    row("fetch_add", "fetch_add on a long", "bare_fetch_add", 0.4),
    row("inc", "inc on a long", "bare_fetch_add", 0.4),
    row("put_large", "put + quiet of 1 MiB", "bare_put_large", 1.1),
    row("get_large", "get of 1 MiB", "bare_get_large", 1.1),
    Row {
        of_bare: Some(1.1),
        ..row("pingpong", "flag ping-pong, round trip", "bare_pingpong", 1.1)
    },
    launch(EMPTY, "oshrun -n 2 of an empty program", Some(0.1)),
    launch(TRUE, "oshrun -n 2 /bin/true", None),
];
const EMPTY: &str = "launch_empty";
const TRUE: &str = "launch_true";

/// An installed OpenSHMEM, with the programs that it built.
struct Contender {
    oshrun: PathBuf,
    peer: PathBuf,
    empty: PathBuf,
    /// Nanoseconds by the name of the row, one per run.
    samples: HashMap<String, Vec<f64>>,
}

pub fn run(args: &[String]) -> Result<()> {
    let mut runs = RUNS;
    let mut ours = None;
    let mut theirs = None;
    let mut parser = lexopt::Parser::from_args(args);
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Long("runs") => runs = parser.value()?.parse()?,
            Arg::Long("ours") => ours = Some(PathBuf::from(parser.value()?)),
            Arg::Long("peer") => theirs = Some(PathBuf::from(parser.value()?)),
            other => return Err(other.unexpected().into()),
        }
    }
    if runs == 0 {
        bail!("--runs 0 measures nothing");
    }
    let workspace = Workspace::open()?;
    let folder = workspace.target.join("bench-peer");
    let theirs = match theirs {
        Some(bin) => bin,
        None => open_mpi()?,
    };
    let ours = match ours {
        Some(bin) => bin,
        None => {
            install::into(&workspace, &folder.join("prefix"))?;
            folder.join("prefix/bin")
        }
    };
    let benches = workspace.root.join("benches");
    let mut ours = Contender::build(&ours, &benches, &folder.join("ours"))?;
    let mut theirs = Contender::build(&theirs, &benches, &folder.join("theirs"))?;

    if let Some(load) = load().filter(|&load| load > QUIET) {
        println!(
            "The machine is busy (load {load:.1}): ranges will be wide and equal means little."
        );
    }
    for run in 1..=runs {
        eprint!("\rrun {run} of {runs} ");
        // Neither is always the one that finds the machine as the other left it.
        let (first, second) = match run % 2 {
            0 => (&mut theirs, &mut ours),
            _ => (&mut ours, &mut theirs),
        };
        first.measure()?;
        second.measure()?;
    }
    eprintln!();
    println!("{runs} runs each, in turn: median (middle half)\n");
    print!("{}", table(&ours.spreads(), &theirs.spreads()));
    if runs < RUNS {
        println!("\nFewer than {RUNS} runs: not to be quoted.");
    }
    Ok(())
}

/// How many processes wanted a processor in the last minute.
fn load() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split(' ').next()?.parse().ok()
}

/// The folder of the system's Open MPI programs, installed first where it is missing.
fn open_mpi() -> Result<PathBuf> {
    needs::ensure(&[&needs::OPEN_MPI])?;
    let oshcc = process::on_path("oshcc").context("oshcc is not on PATH")?;
    let version =
        process::capture(Command::new(&oshcc).arg("--showme:version")).with_context(|| {
            format!("{} is not Open MPI's; name its folder with --peer", oshcc.display())
        })?;
    println!("Theirs: {}", version.trim());
    let folder = oshcc.parent().context("oshcc lies nowhere")?;
    Ok(folder.to_owned())
}

impl Contender {
    /// Compiles the benchmark and the empty program into `folder` with the oshcc of `bin`.
    fn build(bin: &Path, benches: &Path, folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let compiled = |name: &str| -> Result<PathBuf> {
            let program = folder.join(name);
            process::run(
                Command::new(bin.join("oshcc"))
                    .arg("-O2")
                    .arg(benches.join(name).with_extension("c"))
                    .arg("-o")
                    .arg(&program),
            )?;
            Ok(program)
        };
        Ok(Self {
            oshrun: bin.join("oshrun"),
            peer: compiled("peer")?,
            empty: compiled("empty")?,
            samples: HashMap::new(),
        })
    }

    /// One sample of every row.
    fn measure(&mut self) -> Result<()> {
        let printed = process::capture(&mut self.job(&self.peer))?;
        for (name, nanoseconds) in readings(&printed)? {
            self.add(&name, nanoseconds);
        }
        for (name, program) in [(EMPTY, self.empty.clone()), (TRUE, "/bin/true".into())] {
            let mut job = self.job(&program);
            let start = Instant::now();
            process::run(job.stdout(Stdio::null()))?;
            self.add(name, start.elapsed().as_secs_f64() * 1e9);
        }
        Ok(())
    }

    fn job(&self, program: &Path) -> Command {
        let mut command = process::limited(LIMIT, &self.oshrun);
        command.args(["-n", "2"]).arg(program).envs(ENVIRONMENT.iter().copied());
        command
    }

    fn add(&mut self, name: &str, nanoseconds: f64) {
        self.samples.entry(name.to_owned()).or_default().push(nanoseconds);
    }

    fn spreads(&self) -> HashMap<&str, Spread> {
        self.samples
            .iter()
            .filter_map(|(name, sample)| Some((name.as_str(), Spread::of(sample.clone())?)))
            .collect()
    }
}

/// The lines `name nanoseconds` that benches/peer.c prints.
fn readings(printed: &str) -> Result<Vec<(String, f64)>> {
    printed
        .lines()
        .map(|line| {
            line.split_once(' ')
                .and_then(|(name, number)| Some((name.to_owned(), number.trim().parse().ok()?)))
                .with_context(|| format!("the benchmark printed `{line}`"))
        })
        .collect()
}

fn table(ours: &HashMap<&str, Spread>, theirs: &HashMap<&str, Spread>) -> String {
    let mut text = String::from(
        "| | ours | theirs | bare loop | ours/theirs | ours/bare | aim | verdict |\n|---|---|---|---|---|---|---|---|\n",
    );
    for row in ROWS {
        let (Some(our), Some(their)) = (ours.get(row.name), theirs.get(row.name)) else {
            text += &format!("| {} | not measured | | | | | | |\n", row.title);
            continue;
        };
        let bare = row.bare.and_then(|name| ours.get(name));
        text += &format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} |\n",
            row.title,
            shown(our),
            shown(their),
            bare.map(shown).unwrap_or_default(),
            compared(our, their),
            bare.map(|bare| compared(our, bare)).unwrap_or_default(),
            aim(row),
            verdict(row, our, their, bare),
        );
    }
    text
}

fn aim(row: &Row) -> String {
    let parts = [(row.of_theirs, "theirs"), (row.of_bare, "bare")];
    let parts = parts.iter().filter_map(|(share, of)| Some(format!("<= {} {of}", (*share)?)));
    parts.collect::<Vec<_>>().join(", ")
}

/// Whether ours is within the row's aims. Where as much as the other's is allowed, equal is enough.
fn verdict(row: &Row, ours: &Spread, theirs: &Spread, bare: Option<&Spread>) -> &'static str {
    let aims = [(row.of_theirs, Some(theirs)), (row.of_bare, bare)];
    let mut verdict = "";
    for (share, other) in aims {
        if let (Some(share), Some(other)) = (share, other) {
            if ours.median > share * other.median && !(share >= 1.0 && ours.overlaps(other)) {
                return "missed";
            }
            verdict = "met";
        }
    }
    verdict
}

fn compared(ours: &Spread, other: &Spread) -> String {
    let ratio = ours.median / other.median;
    if ours.overlaps(other) { format!("{ratio:.2} (equal)") } else { format!("{ratio:.2}") }
}

fn shown(spread: &Spread) -> String {
    let (scale, unit) = match spread.median {
        nanoseconds if nanoseconds < 100.0 => (1.0, "ns"),
        nanoseconds if nanoseconds < 1e6 => (1e3, "us"),
        _ => (1e6, "ms"),
    };
    let Spread { low, median, high } = *spread;
    let digits =
        |value: f64| format!("{:.*}", if value / scale < 1.0 { 3 } else { 1 }, value / scale);
    format!("{} ({}-{}) {unit}", digits(median), digits(low), digits(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(median: f64) -> Spread {
        Spread { low: median * 0.9, median, high: median * 1.1 }
    }

    #[test]
    fn readings_are_names_and_nanoseconds() {
        assert_eq!(
            readings("put8 2.5\np8 1.75\n").unwrap(),
            [("put8".to_owned(), 2.5), ("p8".to_owned(), 1.75)]
        );
        assert!(readings("Segmentation fault\n").is_err());
    }

    #[test]
    fn an_aim_below_one_is_not_met_by_being_equal() {
        let put = row("put8", "", "bare_put8", 0.3);
        let theirs = around(10.0);
        assert_eq!(verdict(&put, &around(3.0), &theirs, None), "met");
        assert_eq!(verdict(&put, &around(10.0), &theirs, None), "missed");
    }

    #[test]
    fn equal_is_enough_where_as_much_as_theirs_is_allowed() {
        let large = row("put_large", "", "bare_put_large", 1.1);
        let theirs = around(10.0);
        assert_eq!(verdict(&large, &around(11.5), &theirs, None), "met");
        assert_eq!(verdict(&large, &around(13.0), &theirs, None), "missed");
    }

    #[test]
    fn the_bare_loop_counts_where_the_aim_names_it() {
        let pingpong = Row { of_bare: Some(1.1), ..row("pingpong", "", "bare_pingpong", 1.1) };
        let ours = around(10.0);
        let theirs = around(20.0);
        assert_eq!(verdict(&pingpong, &ours, &theirs, Some(&around(10.0))), "met");
        assert_eq!(verdict(&pingpong, &ours, &theirs, Some(&around(5.0))), "missed");
        assert_eq!(aim(&pingpong), "<= 1.1 theirs, <= 1.1 bare");
    }

    #[test]
    fn a_row_without_an_aim_has_no_verdict() {
        let row = launch(TRUE, "", None);
        assert_eq!(verdict(&row, &around(1.0), &around(2.0), None), "");
    }

    #[test]
    fn a_spread_is_shown_in_a_unit_that_fits() {
        assert_eq!(shown(&around(2.0)), "2.0 (1.8-2.2) ns");
        assert_eq!(shown(&around(106.0)), "0.106 (0.095-0.117) us");
        assert_eq!(shown(&around(20_000.0)), "20.0 (18.0-22.0) us");
        assert_eq!(shown(&around(35e6)), "35.0 (31.5-38.5) ms");
    }
}
