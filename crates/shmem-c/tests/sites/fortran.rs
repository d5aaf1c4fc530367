//! Checks the parts of the Fortran interface that the programs of tests/programs do not use: the
//! include files, messages, output, profiling tools, and the examples. Without a Fortran compiler
//! these tests are ignored.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::{Job, absent, compile, compile_text, needs_fortran, prefix, scenario};

fn package_dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn tmpdir() -> &'static Path {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
}

/// Compiles a program from its text.
fn text(name: &str, text: &str) -> PathBuf {
    compile_text(name, text, tmpdir(), &[])
}

/// Compiles a program with both include files, from both directories and in both source forms,
/// without compiler extensions.
fn the_include_files_are_read_in_fixed_and_in_free_form() {
    needs_fortran();

    for (form, extension) in [("-ffixed-form", "f"), ("-ffree-form", "f90")] {
        for place in ["", "mpp/"] {
            let name = format!("include_{}.{extension}", place.len());
            let program = format!(
                "      PROGRAM P\n      IMPLICIT NONE\n      INCLUDE \"{place}shmem.fh\"\n      \
                 INCLUDE \"{place}shmemx.fh\"\n      INTEGER PSYNC(SHMEM_REDUCE_SYNC_SIZE)\n      \
                 DATA PSYNC /SHMEM_REDUCE_SYNC_SIZE*SHMEM_SYNC_VALUE/\n      \
                 IF (SHMEM_TEAM_WORLD .EQ. SHMEM_TEAM_NULL) STOP 1\n      \
                 IF (PSYNC(1) .NE. SHMEM_SYNC_VALUE) STOP 2\n      \
                 PRINT *, SHMEM_VENDOR_STRING\n      END PROGRAM\n"
            );
            let source = tmpdir().join(name);
            std::fs::write(&source, program).expect("a source can be written");

            let output = Command::new(prefix().join("bin/oshfort"))
                .args([form, "-std=f2018", "-Wall", "-Werror", "-fsyntax-only"])
                .arg(&source)
                .output()
                .expect("oshfort can be started");
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{form}: {errors}");
        }
    }
}

/// Compiles a program that uses the module by each standard that has the module's features, without
/// extensions of the compiler.
fn each_standard_of_fortran_accepts_the_module() {
    needs_fortran();
    let source = tmpdir().join("by_standard.f90");
    let program = "\
        program p\nuse shmem\nlogical, target, save :: flag\nreal(c_double), save :: x(4), y(4)\n\
        type(c_ptr) :: at\ncall shmem_init()\ncall shmem_put(y, x, 4_c_size_t, 0)\n\
        call shmem_putmem(flag, flag, 4_c_size_t, 0)\nat = shmem_ptr(c_loc(flag), 0)\n\
        call shmem_free(at)\ncall shmem_finalize()\nend program\n";
    std::fs::write(&source, program).expect("a source can be written");

    for standard in ["f2003", "f2008", "f2018", "gnu"] {
        let output = Command::new(prefix().join("bin/oshfort"))
            .arg(format!("-std={standard}"))
            .args(["-Wall", "-Werror", "-fsyntax-only"])
            .arg(&source)
            .output()
            .expect("oshfort can be started");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{standard}: {errors}");
    }
}

/// Programs for other libraries rely on these declarations. A scope that does not include the file
/// may have its own declarations, as programs for older versions of this library do.
fn the_include_file_declares_what_that_of_others_does() {
    let body = "\
            LOGICAL ALL\n      INTEGER(KIND=8) HERE\n      INTEGER WORD\n      SAVE WORD\n      \
            CALL SHMEM_INIT()\n      HERE = SHMEM_PTR(WORD, 0)\n      \
            ALL = SHMEM_PE_ACCESSIBLE(0) .AND. SHMEM_ADDR_ACCESSIBLE(WORD, 0)\n      \
            IF (.NOT. ALL .OR. SHMEM_PE_ACCESSIBLE(7) .OR. HERE .EQ. 0) STOP 1\n      \
            IF (.NOT. OWN()) STOP 2\n      CALL SHMEM_FINALIZE()\n      CALL SHMEM_FINALIZE()\n      \
            CONTAINS\n      LOGICAL FUNCTION OWN()\n      LOGICAL SHMEM_PE_ACCESSIBLE\n      \
            EXTERNAL SHMEM_PE_ACCESSIBLE\n      OWN = SHMEM_PE_ACCESSIBLE(0)\n      END FUNCTION\n      END PROGRAM\n";

    for (name, implicit) in [
        ("declared.f90", "NONE"),
        ("declared.f", "NONE"),
        ("implicit.f", "REAL (S)"),
    ] {
        let source = format!(
            "      PROGRAM P\n      IMPLICIT {implicit}\n      INCLUDE \"shmem.fh\"\n      {body}"
        );
        let program = text(name, &source);
        let outcome = Job::new(program).n(1).run();

        assert!(outcome.status.success(), "{outcome}");
        let warning = "warning: PE 0: SHMEM_FINALIZE: called more often than shmem_init";
        assert!(outcome.one_message().starts_with(warning), "{outcome}");
    }
}

fn a_global_exit_writes_what_units_hold_back() {
    for n in [1, 3] {
        let file = tmpdir().join("last-words");
        let outcome = Job::new(scenario!("fortran_exit.f90"))
            .n(n)
            .arg(file.display())
            .run();
        assert_eq!(outcome.code(), 7, "{outcome}");

        let written = std::fs::read_to_string(&file).expect("the last PE wrote a file");
        assert_eq!(written, "last words\n", "{outcome}");
    }
}

fn a_misuse_writes_what_units_hold_back() {
    let program = "\
        integer :: a(4), code\ninteger(kind=8) :: at\ncharacter(len=1000) :: name\npointer (at, a)\n\
        call shmem_init()\ncall shpalloc(at, 4, code, 1)\ncall get_command_argument(1, name)\n\
        open (unit=10, file=name)\nwrite (10, '(a)') 'last words'\ncall shmem_int4_inc(a, 7)\nend\n";
    let program = text("misuse_unit.f90", program);
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("misuse_unit.txt");

    Job::new(program)
        .n(1)
        .arg(file.display())
        .run()
        .assert_fails(&["PE 0", "SHMEM_INT4_INC"]);

    let written = std::fs::read_to_string(&file).expect("the PE wrote a file");
    assert_eq!(written, "last words\n");
}

/// As in C, a printed line is not lost if another PE then ends the job.
fn lines_leave_as_they_are_printed() {
    let program = "\
        integer, external :: shmem_my_pe\ninteger :: a(4), code\ninteger(kind=8) :: at\n\
        pointer (at, a)\ncall shmem_init()\ncall shpalloc(at, 4, code, 1)\na = 0\n\
        if (shmem_my_pe() == 0) print '(a)', 'before'\ncall shmem_barrier_all()\n\
        if (shmem_my_pe() == 1) call shmem_int4_inc(a, 7)\ncall shmem_int4_wait(a, 0)\nend\n";
    let program = text("before.f90", program);

    let outcome = Job::new(program).n(2).run();
    outcome.assert_fails(&["PE 1", "SHMEM_INT4_INC"]);
    assert_eq!(outcome.stdout, "before\n", "{outcome}");
}

/// A message names the routine as programs do, the argument, and the line.
fn misuse_is_reported_in_the_words_of_fortran() {
    let cases = [
        ("call shpalloc(at, 0, code, 1)", &["SHPALLOC", "length"][..]),
        (
            "call shpalloc(at, huge(code), code, 1)",
            &["SHPALLOC", "SHMEM_SYMMETRIC_SIZE"],
        ),
        (
            "at = loc(at); call shpdeallc(at, code, 1)",
            &["SHPDEALLC", "addr"],
        ),
        (
            "at = 0; call shmemx_team_destroy(at)",
            &["SHMEMX_TEAM_DESTROY", "SHMEM_TEAM_NULL"],
        ),
        (
            "call shmem_put4(a, a, -1, 0)",
            &["SHMEM_PUT4", "nelems", "-1"],
        ),
        ("call shmem_int4_inc(a, 5)", &["SHMEM_INT4_INC", "pe", "5"]),
        (
            "call shmem_int4_wait_until(a, 9, 0)",
            &["SHMEM_INT4_WAIT_UNTIL", "cmp", "9"],
        ),
        (
            "at = 8; call shmem_int4_inc(a, 0)",
            &["not symmetric", "or give it the attribute SAVE"],
        ),
    ];

    for (number, (statement, words)) in cases.into_iter().enumerate() {
        let program = format!(
            "integer :: a(4), code\ninteger(kind=8) :: at\npointer (at, a)\ncall shmem_init()\n\
             call shpalloc(at, 4, code, 1)\n{statement}\nend\n"
        );
        let name = format!("misuse_{number}.f90");
        let program = text(&name, &program);

        let outcome = Job::new(program).n(1).run();
        let message = outcome.assert_fails(words);
        assert!(message.ends_with(&format!("{name}:6)")), "{outcome}");
    }
}

/// A tool defines SHMEM_FENCE, and calls the library's routine by its profiling name.
fn a_tool_can_take_the_place_of_a_routine() {
    let program = "\
        call shmem_init()\ncall shmem_fence()\ncall shmem_finalize()\nend\n\
        subroutine shmem_fence()\ncall pshmem_fence()\nprint '(a)', 'fenced'\nend\n";
    let program = text("tool.f90", program);

    let outcome = Job::new(program).n(2).run();
    assert!(outcome.status.success(), "{outcome}");
    assert_eq!(outcome.stdout, "fenced\nfenced\n");
}

/// tests/programs.rs runs the position-independent program, which is the default.
fn common_blocks_are_symmetric_however_a_program_is_linked() {
    for flags in [&["-no-pie"][..], &["-static"], &["-O3", "-flto"]] {
        let source = package_dir().join("tests/programs/fortran_static.f");
        Job::new(compile(&source, tmpdir(), flags))
            .n(3)
            .run()
            .assert_ok(3);
    }
}

/// One example has the include file, and also works if the default REAL has 8 bytes, as in Cray's
/// compiler. The other one has the module.
fn the_examples_find_the_maximum_of_the_even_pes() {
    for (name, flags) in [
        ("max_to_all.f", &[][..]),
        ("max_to_all.f", &["-fdefault-real-8"]),
        ("max_to_all.f90", &[]),
    ] {
        let source = package_dir().join("examples").join(name);
        let outcome = Job::new(compile(&source, tmpdir(), flags)).n(8).run();
        assert!(outcome.status.success(), "{outcome}");

        let results: BTreeSet<&str> = outcome.lines().map(|line| line.trim_end()).collect();
        assert_eq!(results.len(), 4, "{outcome}");
        for (pe, line) in [0, 2, 4, 6].into_iter().zip(&results) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let expected = ["Result", "on", "PE", &pe.to_string(), "is"];
            assert_eq!(words[..5], expected, "{outcome}");

            let found: f64 = words[5].parse().expect("a number");
            assert!((found - 2f64.sin()).abs() < 1e-12, "{outcome}");
        }
    }
}

/// Ignores the test if LLVM's compiler is missing, or the module, which this compiler makes when
/// the prefix is installed.
fn flang_compiles_programs() {
    let Some(flang) = ["flang", "flang-new", "flang-new-19"]
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok())
    else {
        absent("flang is not here");
    };
    if !prefix().join("include/flang/shmem.mod").exists() {
        absent("flang has made no module");
    }

    for source in ["fortran_module.f90", "fortran_teams.f90"] {
        let program = tmpdir().join(format!("by-flang-{source}"));
        let compiled = Command::new(prefix().join("bin/oshfort"))
            .env("OSHFORT_FC", flang)
            .arg(package_dir().join("tests/programs").join(source))
            .arg("-o")
            .arg(&program)
            .output()
            .expect("oshfort can be started");
        assert!(compiled.status.success(), "{compiled:?}");

        Job::new(program).n(3).run().assert_ok(3);
    }
}

/// Compiles calls with mistakes that users make. The page quotes what gfortran says of each.
fn the_page_quotes_what_the_compiler_says() {
    needs_fortran();
    let page = std::fs::read_to_string(package_dir().join("../../docs/fortran.md"))
        .expect("the page of Fortran");

    for (call, says) in [
        (
            "call shmem_put(y, x, 4, 0)",
            "There is no specific subroutine for the generic 'shmem_put'",
        ),
        (
            "call shmem_put(y, x(1), 4_c_size_t, 0)",
            "There is no specific subroutine for the generic 'shmem_put'",
        ),
        (
            "call shmem_put(y, z, 4_c_size_t, 0)",
            "There is no specific subroutine for the generic 'shmem_put'",
        ),
        (
            "n = shmem_sum_reduce(SHMEM_TEAM_WORLD, y, x, 4)",
            "no specific function for the generic",
        ),
        (
            "call shmem_double_put(y, x, 4, 0)",
            "Type mismatch in argument 'nelems' at (1); passed INTEGER(4) to INTEGER(8)",
        ),
    ] {
        let source = tmpdir().join("mistake.f90");
        let program = format!(
            "program p\nuse shmem\nuse iso_c_binding\nreal(c_double), save :: x(4), y(4)\n\
             real(c_float), save :: z(4)\ninteger :: n\n{call}\nend program\n"
        );
        std::fs::write(&source, program).expect("a source can be written");

        let output = Command::new(prefix().join("bin/oshfort"))
            .env("LC_ALL", "C")
            .arg("-fsyntax-only")
            .arg(&source)
            .output()
            .expect("oshfort can be started");

        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(says), "{call}: {said}");
        assert!(page.contains(says), "docs/fortran.md lacks: {says}");
    }
}

testkit::module_tests! {
    the_page_quotes_what_the_compiler_says,
    flang_compiles_programs,
    the_include_files_are_read_in_fixed_and_in_free_form,
    each_standard_of_fortran_accepts_the_module,
    the_include_file_declares_what_that_of_others_does,
    a_global_exit_writes_what_units_hold_back,
    a_misuse_writes_what_units_hold_back,
    lines_leave_as_they_are_printed,
    misuse_is_reported_in_the_words_of_fortran,
    a_tool_can_take_the_place_of_a_routine,
    common_blocks_are_symmetric_however_a_program_is_linked,
    the_examples_find_the_maximum_of_the_even_pes,
}
