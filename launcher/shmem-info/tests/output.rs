//! Checks the output and drawings of `shmem-info`. The tests that read descriptions of other
//! machines (ci/fixtures/topology) are ignored without libhwloc.

use std::path::Path;
use std::process::{Command, Output};

use testkit::needs_library;

/// Returns the command of shmem-info, without wrapped lines. It needs no time limit, since it waits
/// for nothing but children that have one.
fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_shmem-info"));
    command.env("COLUMNS", "10000");
    command
}

fn info(words: &[&str]) -> Output {
    command().args(words).output().expect("shmem-info starts")
}

fn printed(words: &[&str]) -> String {
    let output = info(words);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && stderr.is_empty(),
        "{words:?}: {stderr}"
    );
    String::from_utf8(output.stdout).expect("plain text")
}

/// Returns the map of a machine in ci/fixtures/topology. Ignores the test without hwloc.
fn map(fixture: &str, words: &[&str]) -> String {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ci/fixtures/topology");
    let file = dir.join(fixture);
    let all = [
        &["--topology", "--xml", file.to_str().expect("a plain path")],
        words,
    ]
    .concat();

    needs_library("libhwloc.so.15");
    printed(&all)
}

fn output_that_is_lost_is_a_failure() {
    for words in [&[][..], &["--json"], &["--doctor"]] {
        let full = std::fs::File::create("/dev/full").expect("a device of Linux");
        let output = command()
            .args(words)
            .stdout(full)
            .output()
            .expect("shmem-info starts");

        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            stderr.contains("shmem-info: the output cannot be written: No space"),
            "{stderr}"
        );
        assert_eq!(output.status.code(), Some(1), "{words:?}");
    }
}

/// Asserts that `text` has all these lines, in this order.
fn assert_in_order(text: &str, lines: &[&str]) {
    let mut rest = text.lines().map(str::trim);
    for line in lines {
        assert!(
            rest.any(|found| found == *line),
            "{line} is not there, or not after the one before:\n{text}"
        );
    }
}

fn the_map_of_two_sockets() {
    let text = map("two-sockets-eight-nics.xml", &["-n", "16"]);
    assert_in_order(
        &text,
        &[
            "16 PEs, --map-by spread --bind-to numa",
            "socket 0",
            "NUMA node 0, 768 GiB, CPUs 0-23,48-71",
            "core of CPUs 0,48: PE 0",
            "core of CPUs 21,69: PE 7",
            "16 cores without a PE",
            "NIC mlx5_0:1 (InfiniBand, ib0, 0000:17:00.0): PEs 0,4",
            "NIC mlx5_8:1 (fabric, ens6, 0000:40:00.0): not used by PEs",
            "socket 1",
            "core of CPUs 24,72: PE 8",
            "NIC mlx5_7:1 (InfiniBand, ib7, 0000:e1:00.0): PEs 11,15",
            "note: mlx5_9 has no port that is up",
        ],
    );
}

fn the_map_of_four_nodes() {
    let words = ["-n", "8", "--map-by", "numa", "--bind-to", "core"];
    let text = map("four-numa-four-nics.xml", &words);
    assert_in_order(
        &text,
        &[
            "8 PEs, --map-by numa --bind-to core",
            "NUMA node 0, 128 GiB, CPUs 0-15,64-79",
            "L3, CPUs 0-7,64-71",
            "core of CPUs 0,64: PE 0",
            "core of CPUs 1,65: PE 4",
            "L3, CPUs 8-15,72-79",
            "8 cores without a PE",
            "NIC cxi2 (fabric, hsn2, 0000:29:00.0): PEs 0,4",
            "NUMA node 3, 128 GiB, CPUs 48-63,112-127",
            "NIC cxi0 (fabric, hsn0, 0000:21:00.0): PEs 3,7",
        ],
    );
}

fn each_of_two_sockets_has_a_part_of_the_node_that_they_share() {
    needs_library("libhwloc.so.15");
    let map = printed(&["--topology", "--synthetic", "package:2 l3:2 core:2 pu:1"]);
    assert_in_order(
        &map,
        &[
            "socket 0",
            "part of NUMA node 0, 1 GiB, CPUs 0-3",
            "socket 1",
            "part of NUMA node 0, 1 GiB, CPUs 4-7",
        ],
    );
}

fn the_drawing_has_every_core_pe_and_card() {
    let words = ["-n", "64", "--svg", "-"];
    let drawn = map("four-numa-four-nics.xml", &words);

    let count = |what: &str| drawn.matches(what).count();
    assert!(drawn.starts_with("<svg ") && drawn.ends_with("</svg>\n"));
    assert_eq!(
        (count("<g "), count("<text ")),
        (count("</g>"), count("</text>"))
    );

    // The sheet, a socket, 4 nodes, 8 groups, 64 cores, 4 NICs.
    assert_eq!(count("<rect "), 1 + 1 + 4 + 8 + 64 + 4);

    for pe in 0..64 {
        assert_eq!(count(&format!(">PE {pe}</text>")), 1, "PE {pe}");
    }
    assert_eq!(count("#eef4ff"), 8);
}

fn words_in_a_drawing_are_no_markup() {
    let _ = map("four-numa-four-nics.xml", &[]);
    let dir = std::env::temp_dir();
    let file = |extension| dir.join(format!("shmem-info-{}-<&>.{extension}", std::process::id()));
    let xml = file("xml");
    let svg = file("svg");
    let fixture = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../ci/fixtures/topology/four-numa-four-nics.xml"
    );

    std::fs::copy(fixture, &xml).expect("a copy");
    let [from, to] = [&xml, &svg].map(|path| path.to_str().expect("a plain path"));

    let silent = printed(&["--topology", "--xml", from, "--svg", to]);
    let drawn = std::fs::read_to_string(&svg).expect("the drawing");

    for path in [&xml, &svg] {
        std::fs::remove_file(path).expect("own file");
    }

    assert_eq!(silent, "");
    assert!(
        drawn.contains("-&lt;&amp;&gt;.xml: 1 socket") && !drawn.contains("<&"),
        "{drawn}"
    );
}

fn what_is_no_machine_is_said_in_one_sentence() {
    let refused = info(&["--topology", "--xml", "/no/such/machine.xml"]);
    let sentence = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        sentence.starts_with("shmem-info: ") && sentence.lines().count() == 1,
        "{sentence}"
    );
}

fn this_machine_has_a_map() {
    let text = printed(&["--topology", "-n", "3"]);
    assert!(text.starts_with("this machine ("), "{text}");
    assert!(text.contains("\n3 PEs, --map-by spread"), "{text}");
}

fn transports_say_whether_they_can_work() {
    let text = printed(&["--transports"]);
    assert!(
        text.lines()
            .any(|line| line.starts_with("tcp: available: ")),
        "{text}"
    );

    let states = [": available: ", ": not available: ", "atomic operations: "];
    assert!(
        text.lines()
            .all(|line| states.iter().any(|state| line.contains(state))),
        "{text}"
    );
}

fn descriptions_come_on_request_and_fit_the_terminal() {
    let narrow = |words: &[&str]| {
        let output = command()
            .args(words)
            .env("COLUMNS", "80")
            .output()
            .expect("it starts");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("plain text")
    };

    let values = narrow(&[]);
    assert!(
        values.starts_with("Rushmem ") && !values.contains("bytes of"),
        "{values}"
    );

    let all = narrow(&["--describe"]);
    for name in [
        "SHMEM_SYMMETRIC_SIZE (or SMA_SYMMETRIC_SIZE)",
        "SHMEM_NIC",
        "SHMEM_TCP_INTERFACE",
    ] {
        assert!(
            all.lines().any(|line| line.trim() == name),
            "{name}:\n{all}"
        );
    }

    let one = narrow(&["--describe", "debug"]);
    assert!(
        one.starts_with("  SHMEM_DEBUG (or SMA_DEBUG)\n") && all.contains(&one),
        "{one}"
    );
    assert!(one.split_whitespace().count() < 70, "{one}");

    for text in [values, all, narrow(&["--help"]), narrow(&["--doctor"])] {
        assert!(
            text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
    }

    let refused = info(&["--describe", "nosuch"]);
    let sentence = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        sentence.contains("no setting has NOSUCH in its name"),
        "{sentence}"
    );
}

fn colors_are_for_terminals() {
    let shown = |variable: &str| {
        let output = command()
            .env(variable, "1")
            .env("SHMEM_CHECK", "1")
            .output();
        String::from_utf8(output.expect("it starts").stdout).expect("plain text")
    };
    assert!(shown("CLICOLOR_FORCE").contains("\x1b[1mSHMEM_CHECK"));
    assert!(!shown("NO_COLOR").contains('\x1b'));
}

fn the_place_in_a_job_without_a_launcher_is_shown_but_not_its_secret() {
    let mut command = command();
    command
        .env("SHMEM_JOB", "node1:5000")
        .env("SHMEM_JOB_SECRET", "hidden")
        .env("JOB_COMPLETION_INDEX", "3")
        .env("SHMEM_SIZE", "8");

    let output = command.output().expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);

    for line in [
        "rank 3 from JOB_COMPLETION_INDEX, as Kubernetes sets it",
        "number of processes 8 from SHMEM_SIZE",
    ] {
        assert!(
            text.lines().any(|found| found.trim() == line),
            "{line}:\n{text}"
        );
    }

    assert!(
        text.contains("\"a secret\" from SHMEM_JOB_SECRET") && !text.contains("hidden"),
        "{text}"
    );
}

fn a_setting_is_shown_with_where_it_comes_from() {
    let mut command = command();
    command
        .env("SMA_SYMMETRIC_SIZE", "1g")
        .env_remove("SHMEM_SYMMETRIC_SIZE")
        .env_remove("SHMEM_HOST_LIMIT")
        .env_remove("SHMEM_VIRTUAL_NODES")
        .env("SHMEM_CHECK", "1")
        .env("OSHRUN_SET", "SHMEM_NIC UCX_NET_DEVICES")
        .env("SHMEM_NIC", "mlx5_0:1");

    let output = command.output().expect("shmem-info starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let one_space = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = text.lines().map(one_space).collect();
    let position = |line: &str| lines.iter().position(|found| found == line).expect(line);
    let [set, defaults, unset] = ["Set:", "Defaults:", "Not set:"].map(position);

    for line in [
        "SHMEM_SYMMETRIC_SIZE \"1g\" from SMA_SYMMETRIC_SIZE; the default is 512MiB",
        "SHMEM_CHECK \"1\" from SHMEM_CHECK; the default is 0",
        "SHMEM_NIC \"mlx5_0:1\" from SHMEM_NIC, set by oshrun",
    ] {
        assert!((set..defaults).contains(&position(line)), "{text}");
    }
    assert!(
        (defaults..unset).contains(&position("SHMEM_HOST_LIMIT 10s")),
        "{text}"
    );
    assert!(
        lines[unset + 1..].concat().contains("SHMEM_VIRTUAL_NODES"),
        "{text}"
    );
}

fn a_value_of_a_file_is_shown_with_its_line() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("settings.conf");
    std::fs::write(
        &file,
        "# two\nSHMEM_CHECK=1\nSHMEM_STATS=1\nSHMEM\nSHMEM_NOSUCH=1\nSHMEM_TRANSPROT=tcp\n",
    )
    .expect("a file");

    let with_file = |words: &[&str]| {
        let mut command = command();
        command
            .args(words)
            .env("SHMEM_CONFIG", &file)
            .env("SHMEM_STATS", "0")
            .env("SHMEM_NICS", "eth0")
            .env_remove("SHMEM_CHECK");
        let output = command.output().expect("shmem-info starts");

        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let said = format!(
            "shmem-info: warning: {}:4: SHMEM is no line of the form",
            file.display()
        );
        assert!(
            stderr.starts_with(&said) && stderr.lines().count() == 4,
            "{stderr}"
        );
        for line in [
            ":5: there is no setting SHMEM_NOSUCH\n",
            ":6: there is no setting SHMEM_TRANSPROT; did you mean SHMEM_TRANSPORT?\n",
            "SHMEM_NICS is set, but there is no such setting; did you mean SHMEM_NIC?\n",
        ] {
            assert!(stderr.contains(line), "{stderr}");
        }

        String::from_utf8(output.stdout).expect("plain text")
    };

    let text = with_file(&[]);
    let line = |name: &str| {
        text.lines()
            .find(|line| line.trim().starts_with(name))
            .expect("a line")
    };
    assert!(
        line("SHMEM_CHECK").contains(&format!("\"1\" from {}:2;", file.display())),
        "{text}"
    );
    assert!(
        line("SHMEM_STATS").contains("\"0\" from SHMEM_STATS"),
        "{text}"
    );

    let json = with_file(&["--json"]);
    assert!(
        json.contains(&format!("\"origin\": \"{}:2\"", file.display())),
        "{json}"
    );
}

/// The settings that the file for sites proposes exist, and may have these values.
fn the_file_for_sites_has_no_mistakes() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ci/packaging/site/rushmem.conf");
    let text = std::fs::read_to_string(file).expect("the file");
    let chosen = text.replace("#SHMEM_", "SHMEM_");
    let config = Path::new(env!("CARGO_TARGET_TMPDIR")).join("site.conf");
    std::fs::write(&config, &chosen).expect("a file");

    let output = command()
        .env("SHMEM_CONFIG", &config)
        .output()
        .expect("shmem-info starts");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let shown = String::from_utf8(output.stdout).expect("plain text");
    let values = chosen.lines().filter(|line| line.starts_with("SHMEM_"));
    let mut n_values = 0;
    for (name, value) in values.filter_map(|line| line.split_once('=')) {
        n_values += 1;
        let is_shown = |line: &str| line.contains(name) && line.contains(value);
        assert!(shown.lines().any(is_shown), "{name} {value}\n{shown}");
    }
    assert!(n_values >= 5);
}

fn programs_read_the_same_as_json() {
    let mut command = command();
    command
        .arg("--json")
        .env("SMA_SYMMETRIC_SIZE", "1g")
        .env_remove("SHMEM_SYMMETRIC_SIZE")
        .env_remove("SHMEM_ONNODE")
        .env_remove("SHMEM_VIRTUAL_NODES")
        .env("OSHRUN_SET", "SHMEM_NIC")
        .env("SHMEM_NIC", "mlx5_0:1");

    let output = command.output().expect("shmem-info starts");
    let all: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(
        all["name"].as_str().expect("a name").starts_with("Rushmem"),
        "{all}"
    );

    let settings = all["settings"].as_array().expect("a list");
    let of = |name: &str| {
        let row = settings.iter().find(|row| row["name"] == name)?;
        Some((row["value"].as_str()?, row["origin"].as_str()?))
    };
    assert_eq!(of("SHMEM_SYMMETRIC_SIZE"), Some(("1g", "environment")));
    assert_eq!(of("SHMEM_NIC"), Some(("mlx5_0:1", "oshrun")));
    assert_eq!(of("SHMEM_ONNODE"), Some(("on", "default")));
    assert_eq!(of("SHMEM_VIRTUAL_NODES"), None);

    let transports = all["transports"].as_array().expect("a list");
    assert!(
        transports
            .iter()
            .any(|transport| transport["name"] == "tcp" && transport["found"].is_string()),
        "{all}"
    );
}

/// Runs the doctor with these variables. Returns its stdout, and true if a job can run.
fn doctor_of(words: &[&str], variables: &[(&str, &str)]) -> (String, bool) {
    let mut command = command();
    for name in [
        "SHMEM_TRANSPORT",
        "SHMEM_TCP_INTERFACE",
        "SHMEM_AMOS",
        "UCX_TLS",
    ] {
        command.env_remove(name);
    }

    let output = command
        .arg("--doctor")
        .args(words)
        .envs(variables.iter().copied())
        .output();
    let output = output.expect("shmem-info starts");

    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        !stderr.contains("panicked") && !stderr.contains("shmem-info:"),
        "{stderr}"
    );

    (
        String::from_utf8(output.stdout).expect("plain text"),
        output.status.success(),
    )
}

fn doctor(variables: &[(&str, &str)]) -> (String, bool) {
    doctor_of(&[], variables)
}

/// Returns the line of the doctor that begins with this grade and name.
fn line<'a>(text: &'a str, grade: &str, name: &str) -> &'a str {
    let is_wanted = |line: &&str| {
        let rest = line.trim_start().strip_prefix(grade);
        rest.is_some_and(|rest| rest.trim_start().starts_with(&format!("{name}: ")))
    };
    text.lines()
        .find(is_wanted)
        .unwrap_or_else(|| panic!("no {grade} of {name}:\n{text}"))
}

fn the_doctor_finds_that_this_machine_can_run_jobs() {
    let (text, is_ok) = doctor(&[]);
    assert!(
        is_ok && text.starts_with("verdict: ok: ") && text.contains("tries one\n"),
        "{text}"
    );

    for name in ["memory", "shared memory", "open files (RLIMIT_NOFILE)"] {
        line(&text, "ok", name);
    }
    assert!(
        text.contains("\nhost ") && text.contains("\ntransport tcp: "),
        "{text}"
    );
}

fn the_doctor_says_which_requirement_a_provider_refuses() {
    needs_library("libfabric.so.1");
    let (short, _) = doctor(&[]);
    let folded = short
        .lines()
        .find(|line| line.contains("udp, "))
        .expect("a line");
    assert!(
        folded.starts_with("  unused  ") && folded.contains("shm"),
        "{short}"
    );
    assert!(!short.contains("refuses"), "{short}");

    let (text, _) = doctor_of(&["--why"], &[]);
    let [datagrams, connections] = ["udp", "tcp"].map(|name| line(&text, "unused", name));
    assert!(
        datagrams.contains("refuses FI_EP_RDM (reliable datagrams): with FI_EP_DGRAM it would do")
    );
    assert!(
        connections.contains("refuses FI_EP_RDM (reliable datagrams): with FI_EP_MSG it would do")
    );
    assert!(
        line(&text, "unused", "shm").ends_with("refuses FI_REMOTE_COMM (peers on other machines)")
    );
    assert!(line(&text, "ok", "tcp;ofi_rxm").contains("connects each pair of PEs"));

    // This machine may have a NIC with a provider of its own.
    let many = text
        .lines()
        .find(|line| line.contains(" connections: "))
        .expect("a line");
    assert!(many.contains("with more than 64 PEs each"), "{many}");
}

/// Uses two domains of the provider that emulates fabrics. One of them lacks only atomic
/// operations.
fn the_doctor_says_which_single_hint_a_fabric_refuses() {
    needs_library("libfabric.so.1");
    let dir = strict_fabric::dir(Path::new(env!("CARGO_TARGET_TMPDIR"))).expect("it is built");
    let dir = dir.to_str().expect("a plain path");
    let with = |domain: &'static str| {
        doctor(&[
            ("FI_PROVIDER_PATH", dir),
            ("SHMEM_TRANSPORT", "ofi"),
            ("SHMEM_AMOS", "network"),
            ("SHMEM_OFI_PROVIDER", "strict"),
            ("SHMEM_OFI_DOMAIN", domain),
        ])
    };

    let (text, is_ok) = with("cxi");
    let offered = "connectionless, at most 4096 registrations; cxi";
    assert!(
        is_ok && line(&text, "ok", "strict").ends_with(offered),
        "{text}"
    );
    let many = line(&text, "ok", "connections");
    assert!(
        many.ends_with("there, strict is used, which needs no connections"),
        "{many}"
    );

    let (text, is_ok) = with("efa");
    let refused = "refuses FI_ATOMIC (atomic operations, for SHMEM_AMOS=network)";
    assert!(
        !is_ok && line(&text, "unused", "strict").ends_with(refused),
        "{text}"
    );
    assert!(
        text.contains("verdict: not ok: repair first ofi: SHMEM_TRANSPORT is ofi"),
        "{text}"
    );

    let (text, is_ok) = with("nosuch");
    assert!(
        !is_ok && line(&text, "unused", "strict").contains("SHMEM_OFI_DOMAIN"),
        "{text}"
    );
}

/// Also checks that the doctor names `SHMEM_OFI_FABRIC` if there is no such fabric.
fn the_doctor_survives_a_provider_that_crashes() {
    needs_library("libfabric.so.1");
    let dir = strict_fabric::dir(Path::new(env!("CARGO_TARGET_TMPDIR"))).expect("it is built");
    let dir = dir.to_str().expect("a plain path");
    let with_fabric = |fabric: &'static str| {
        doctor(&[
            ("FI_PROVIDER_PATH", dir),
            ("SHMEM_TRANSPORT", "ofi"),
            ("SHMEM_OFI_FABRIC", fabric),
        ])
    };

    let (text, is_ok) = with_fabric("crashes");
    let crashed = "it fails (signal: 6 (SIGABRT)) when it is opened, and so do jobs that use it; select another one";
    assert!(
        line(&text, "warning", "strict").ends_with(crashed),
        "{text}"
    );
    assert!(
        !is_ok && text.contains("verdict: not ok: repair first ofi: "),
        "{text}"
    );
    assert!(text.contains("\ntransport tcp: "), "{text}");

    let (text, is_ok) = with_fabric("psm3");
    assert!(
        is_ok && line(&text, "ok", "strict").ends_with("; psm3"),
        "{text}"
    );

    let (text, is_ok) = with_fabric("nosuch");
    assert!(
        !is_ok && line(&text, "unused", "strict").contains("SHMEM_OFI_FABRIC"),
        "{text}"
    );
}

fn the_doctor_says_which_variable_keeps_ucx_from_all() {
    needs_library("libucp.so.0");
    for (variable, value, has) in [
        ("UCX_TLS", "nosuch", "UCX has "),
        ("SHMEM_UCX_TLS", "nosuch", "UCX has "),
        ("UCX_NET_DEVICES", "nosuch0", "UCX has "),
    ] {
        let (text, is_ok) = doctor(&[(variable, value), ("SHMEM_TRANSPORT", "ucx")]);
        assert!(!is_ok, "{text}");
        for word in [
            &format!("{variable} is {value}, but "),
            has,
            "change or unset that",
        ] {
            assert!(text.contains(word), "{word}\n{text}");
        }
    }
}

fn the_doctor_names_an_interface_that_is_not_there() {
    let named = [
        ("SHMEM_TCP_INTERFACE", "nosuch0"),
        ("SHMEM_TRANSPORT", "tcp"),
    ];
    let (text, is_ok) = doctor(&named);
    assert!(
        !is_ok && text.contains("SHMEM_TCP_INTERFACE is nosuch0, but there is no nosuch0 here"),
        "{text}"
    );
    assert!(
        text.contains("; there are ") && text.contains("lo"),
        "{text}"
    );
}

fn the_doctor_names_what_is_missing_of_libraries_and_files() {
    let this = env!("CARGO_BIN_EXE_shmem-info");
    let limited = format!("export COLUMNS=10000; ulimit -f 8; ulimit -n 100; exec {this} --doctor");
    let output = Command::new("sh")
        .arg("-c")
        .arg(limited)
        .output()
        .expect("a shell");
    let text = String::from_utf8_lossy(&output.stdout);

    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(line(&text, "bad", "shared memory").contains("`ulimit -f unlimited`"));
    assert!(line(&text, "bad", "open files (RLIMIT_NOFILE)").contains("`ulimit -n`"));
    assert!(
        text.contains("verdict: not ok: repair first shared memory: "),
        "{text}"
    );
}

fn a_value_that_no_job_accepts_is_marked() {
    for (name, value, mistake) in [
        (
            "SHMEM_TRANSPORT",
            "upc",
            "SHMEM_TRANSPORT is upc, but this build has: auto, ",
        ),
        (
            "SHMEM_CHECK",
            "yes",
            "SHMEM_CHECK is yes, but it must be 0, 1 or races",
        ),
        (
            "SHMEM_UCX_WORKERS",
            "0",
            "SHMEM_UCX_WORKERS is 0, but it must be ",
        ),
    ] {
        let output = command()
            .env(name, value)
            .output()
            .expect("shmem-info starts");
        let shown = String::from_utf8_lossy(&output.stdout);
        assert!(
            shown.contains(&format!("; not valid: {mistake}")),
            "{shown}"
        );

        let doctor = command()
            .arg("--doctor")
            .env(name, value)
            .output()
            .expect("shmem-info starts");
        let stderr = String::from_utf8_lossy(&doctor.stderr);
        assert_eq!(doctor.status.code(), Some(1), "{stderr}");
        assert!(
            stderr.starts_with(&format!("shmem-info: {mistake}")),
            "{stderr}"
        );
    }
    assert!(!printed(&[]).contains("not valid"));
}

testkit::tests! {
    a_value_that_no_job_accepts_is_marked,
    the_doctor_finds_that_this_machine_can_run_jobs,
    the_doctor_says_which_requirement_a_provider_refuses,
    the_doctor_says_which_single_hint_a_fabric_refuses,
    the_doctor_survives_a_provider_that_crashes,
    the_doctor_says_which_variable_keeps_ucx_from_all,
    the_doctor_names_an_interface_that_is_not_there,
    the_doctor_names_what_is_missing_of_libraries_and_files,
    output_that_is_lost_is_a_failure,
    the_map_of_two_sockets,
    the_map_of_four_nodes,
    each_of_two_sockets_has_a_part_of_the_node_that_they_share,
    the_drawing_has_every_core_pe_and_card,
    words_in_a_drawing_are_no_markup,
    what_is_no_machine_is_said_in_one_sentence,
    this_machine_has_a_map,
    transports_say_whether_they_can_work,
    descriptions_come_on_request_and_fit_the_terminal,
    colors_are_for_terminals,
    the_place_in_a_job_without_a_launcher_is_shown_but_not_its_secret,
    a_setting_is_shown_with_where_it_comes_from,
    a_value_of_a_file_is_shown_with_its_line,
    the_file_for_sites_has_no_mistakes,
    programs_read_the_same_as_json,
}
