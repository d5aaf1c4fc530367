//! The programs of the seeds as they stand: cut out of the texts, compiled, run. Where the folder with the texts is not
//! beside the repository (RUSHMEM_SEEDS names another), these tests say so and do nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use testkit::{Job, can_compile, compile_text};

fn seed(name: &str) -> Option<String> {
    let folder = std::env::var_os("RUSHMEM_SEEDS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/seeds"),
        PathBuf::from,
    );
    match std::fs::read_to_string(folder.join(name)) {
        Ok(text) => Some(text),
        Err(error) => {
            println!("skipped: {} cannot be read ({error})", folder.join(name).display());
            None
        }
    }
}

fn compiled(name: &str, text: &str) -> PathBuf {
    compile_text(name, text, Path::new(env!("CARGO_TARGET_TMPDIR")), &["-Wno-error"])
}

/// From the first `#include` to the brace that closes main.
fn program_in(text: &str) -> &str {
    let program = &text[text.find("#include").expect("the text holds a program")..];
    let main = program.find("int main").expect("the program has a main");
    let mut depth = 0;
    for (at, byte) in program.bytes().enumerate().skip(main) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => return &program[..=at],
            b'}' => depth -= 1,
            _ => {}
        }
    }
    panic!("main has no end");
}

/// Point 84: the text of 1.5, whose program is valid in 1.6.
#[test]
fn the_program_of_split_2d_prints_its_13_lines() {
    let Some(text) = seed("000_shmem_team_split_2d.txt") else { return };
    let program = compiled("seed_000.c", program_in(&text));
    let outcome = Job::new(program).n(12).run();
    assert!(outcome.status.success(), "{outcome}");
    let promised = text
        .split("expected output with 12 PEs is: ")
        .nth(1)
        .expect("the text says what is printed");
    let (first, places) = promised.split_at(promised.find(" (0, 0, 0)").expect("the first place"));
    let mut due = BTreeSet::from([first.to_owned()]);
    due.extend(places.split('(').skip(1).enumerate().map(|(pe, place)| {
        let place = place.split(')').next().expect("a place ends");
        format!("({place}) is mype = {pe}")
    }));
    assert_eq!(due.len(), 13, "{due:?}");
    assert_eq!(outcome.lines().count(), 13, "{outcome}");
    assert_eq!(outcome.lines().map(str::to_owned).collect::<BTreeSet<_>>(), due, "{outcome}");
}

/// Point 85: the page's own declaration beside the header's.
#[test]
fn the_synopsis_of_team_split_strided_agrees_with_the_header() {
    let Some(text) = seed("002_shmemx_team_split_strided.txt") else { return };
    let synopsis = text.split_once("C/C++ Synopsis").expect("the heading is there").1;
    let (declaration, _) = synopsis.split_once(';').expect("a declaration ends");
    let program = format!(
        "#include <shmemx.h>\n{declaration};\nint main(void) {{\nshmem_init();\nshmem_team_t team;\n\
         shmemx_team_split_strided(SHMEM_TEAM_NODE, 0, 1, 1, &team);\n\
         int wrong = (team == SHMEM_TEAM_NULL) != (shmem_my_pe() > 0);\n\
         shmem_finalize();\nreturn wrong;\n}}\n"
    );
    let outcome = Job::new(compiled("seed_002.c", &program)).n(3).run();
    assert!(outcome.status.success(), "{outcome}");
}

/// The code between `.Vb` and `.Ve` that follows `heading`.
fn listing_after<'a>(text: &'a str, heading: &str) -> (&'a str, &'a str) {
    let rest = &text[text.find(heading).expect("the heading is there")..];
    let rest = rest.split_once(".Vb\n").expect("a listing follows").1;
    rest.split_once(".Ve").expect("the listing ends")
}

/// The page's own declarations beside the header's: the seven names with the same types.
#[test]
fn the_synopsis_of_max_to_all_agrees_with_the_header() {
    let Some(text) = seed("003_shmem_max_to_all.txt") else { return };
    let (synopsis, _) = listing_after(&text, "C or C++:");
    let names: Vec<&str> = synopsis
        .split("void ")
        .skip(1)
        .map(|declaration| declaration.split('(').next().expect("a name"))
        .collect();
    assert_eq!(names.len(), 7, "{names:?}");
    let calls: String =
        names.iter().map(|name| format!("sum += (unsigned long)(uintptr_t)&{name};\n")).collect();
    let program = format!(
        "{synopsis}\n#include <stdint.h>\nint main(void) {{\nvolatile unsigned long sum = 0;\n{calls}return sum == 0;\n}}\n"
    );
    assert!(Job::direct(compiled("seed_003_synopsis.c", &program)).run().status.success());
}

/// The second example: one call for three elements, and three calls for one each with two pairs of arrays in turn.
#[test]
fn the_second_example_of_max_to_all_runs_on_8_pes() {
    let Some(text) = seed("003_shmem_max_to_all.txt") else { return };
    let (whole, rest) = listing_after(&text, "Example 2:");
    let (parts, _) = listing_after(rest, ".Vb");
    let template = include_str!("programs/seed_003.c.in");
    let program = template.replace("ONE_CALL", whole).replace("THREE_CALLS", parts);
    Job::new(compiled("seed_003.c", &program)).n(8).run().assert_ok(8);
}

/// Fixed form as it was before a manual page lost its indentation: statements from column 7 on, `&` in column 6.
fn indented(listing: &str) -> String {
    let line =
        |line: &str| format!("{}{line}\n", if line.starts_with('&') { "     " } else { "      " });
    listing.lines().map(line).collect()
}

/// A Fortran program of one text; nothing where there is no compiler.
fn fortran(name: &str, text: &str, flags: &[&str]) -> Option<PathBuf> {
    can_compile(Path::new(name))
        .then(|| compile_text(name, text, Path::new(env!("CARGO_TARGET_TMPDIR")), flags))
}

/// The Fortran synopsis: its declarations and its five calls, on no elements.
#[test]
fn the_fortran_synopsis_of_max_to_all_can_be_called() {
    let Some(text) = seed("003_shmem_max_to_all.txt") else { return };
    let (synopsis, _) = listing_after(&text, "Fortran:");
    let (declarations, calls) =
        synopsis.split_at(synopsis.find("CALL").expect("the synopsis calls"));
    assert_eq!(calls.matches("CALL SHMEM_").count(), 5, "{calls}");
    let ours = "REAL*16 target(1), source(1), pWrk(2)\nCOMMON /OURS/ target, source, pWrk, pSync\n\
                CALL START_PES(0)\npSync = SHMEM_SYNC_VALUE\nnreduce = 0\nPE_start = 0\n\
                logPE_stride = 0\nPE_size = NUM_PES()\nCALL SHMEM_BARRIER_ALL\n";
    let program = indented(declarations) + &indented(ours) + &indented(calls) + "      END\n";
    let Some(program) = fortran("seed_003_synopsis.f", &program, &[]) else { return };
    let outcome = Job::new(program).n(2).run();
    assert!(outcome.status.success(), "{outcome}");
}

/// The first example, of Cray's compiler: MY_PE is no intrinsic function elsewhere, N$PES no variable, REAL has 4 bytes
/// unless it is told to have 8, and the library has to be started.
#[test]
fn the_first_example_of_max_to_all_runs_on_8_pes() {
    let Some(text) = seed("003_shmem_max_to_all.txt") else { return };
    let (listing, _) = listing_after(&text, "Example 1:");
    let corrections = [
        ("INTRINSIC MY_PE\n", "CALL START_PES(0)\nFOO = MY_PE()\nCALL SHMEM_BARRIER_ALL\n"),
        ("N$PES/2", "NUM_PES()/2"),
    ];
    let program = corrections.into_iter().fold(listing.to_owned(), |listing, (from, to)| {
        assert!(listing.contains(from), "{listing}");
        listing.replace(from, to)
    });
    let program = indented(&program) + "      END\n";
    let Some(program) = fortran("seed_003_example.f", &program, &["-fdefault-real-8"]) else {
        return;
    };
    let outcome = Job::new(program).n(8).run();
    assert!(outcome.status.success(), "{outcome}");
    let mut results: Vec<Vec<&str>> =
        outcome.lines().map(|line| line.split_whitespace().collect()).collect();
    results.sort();
    assert_eq!(results.len(), 4, "{outcome}");
    for (pe, words) in ["0", "2", "4", "6"].into_iter().zip(results) {
        assert_eq!(words[..5], ["Result", "on", "PE", pe, "is"], "{outcome}");
        assert_eq!(words[5].parse(), Ok(6.0), "{outcome}");
    }
}

/// The Fortran synopsis of Cray's split, called by the members alone.
#[test]
fn the_fortran_synopsis_of_split_strided_makes_a_team() {
    let Some(text) = seed("002_shmemx_team_split_strided.txt") else { return };
    let synopsis = text.split("Deprecated Fortran Synopsis").nth(1).expect("the heading is there");
    let synopsis = synopsis.split("Arguments").next().expect("the synopsis ends");
    let (declarations, call) =
        synopsis.split_at(synopsis.find("CALL").expect("the synopsis calls"));
    let program = format!(
        "implicit none\ninclude \"shmemx.fh\"\n{declarations}\n\
         integer, external :: shmem_my_pe, shmemx_team_my_pe, shmemx_team_n_pes\n\
         call shmem_init()\nparent_team = SHMEM_TEAM_WORLD\nPE_start = 1\nPE_stride = 2\nPE_size = 3\n\
         if (mod(shmem_my_pe(), 2) == 1) then\n{call}\n\
         if (shmemx_team_n_pes(newteam) /= 3) stop 1\n\
         if (shmemx_team_my_pe(newteam) /= shmem_my_pe() / 2) stop 2\n\
         end if\ncall shmem_finalize()\nend\n"
    );
    let Some(program) = fortran("seed_002_synopsis.f90", &program, &[]) else { return };
    let outcome = Job::new(program).n(6).run();
    assert!(outcome.status.success(), "{outcome}");
}
