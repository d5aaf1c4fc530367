//! Functions and lines of a program of C, however its debug information is stored.

use object::{Object, ObjectSymbol};
use rushmem_locate::{Frame, Owner, Symbols, declarations};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const SOURCE: &str = "
static int n;
__attribute__((noinline)) static int inner(int i) {
    return n += i;
}
int b(int i) { return inner(i) + 1; }
int main(void) { return b(1); }
long table[3][5];
";

/// A directory with a program.
struct Program {
    dir: TempDir,
}

impl Program {
    /// Compiles the program with these flags.
    fn compile(flags: &[&str]) -> Program {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("program.c"), SOURCE).expect("a source");
        let program = Program { dir };
        program.run(
            "cc",
            &[flags, &["-O1", "program.c", "-o", "program"]].concat(),
        );
        program
    }

    fn run(&self, command: &str, args: &[&str]) {
        let mut command = Command::new(command);
        let status = command.args(args).current_dir(self.dir.path()).status();
        assert!(status.expect("it is installed").success(), "{command:?}");
    }

    /// Moves the debug information into another file, to which the program refers by its name.
    fn separate(&self, debug: &str, strip: &str) {
        self.run(
            "objcopy",
            &[
                "--only-keep-debug",
                "--compress-debug-sections",
                "program",
                debug,
            ],
        );
        let link = format!("--add-gnu-debuglink={debug}");
        self.run("objcopy", &[strip, &link, "program"]);
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("program")
    }

    /// Returns the address of a function, which the program that is not stripped has.
    fn address(&self, function: &str) -> u64 {
        let bytes = std::fs::read(self.path()).expect("the program");
        let file = object::File::parse(&*bytes).expect("a program");
        let mut symbols = file.symbols();
        let symbol = symbols.find(|symbol| symbol.name() == Ok(function));
        symbol.expect("in the symbol table").address()
    }
}

fn frame(path: &Path, address: u64) -> Frame {
    let frames = Symbols::default().frames_at(path, address);
    frames.into_iter().last().expect("one at least")
}

#[track_caller]
fn assert_known(program: &Program, address: u64) {
    let frame = frame(&program.path(), address);
    assert_eq!(frame.function().as_deref(), Some("b"), "{frame:?}");
    let line = frame.line.as_ref().map(ToString::to_string);
    assert!(
        line.is_some_and(|line| line.ends_with("program.c:6")),
        "{frame:?}"
    );
    assert_eq!(frame.owner, Owner::Program);
}

#[test]
fn the_program_has_its_debug_information() {
    for flags in [&["-g"][..], &["-g", "-gz"], &["-g", "-gsplit-dwarf"]] {
        let program = Program::compile(flags);
        assert_known(&program, program.address("b"));
    }
}

#[test]
fn debug_information_is_beside_the_program() {
    let program = Program::compile(&["-g"]);
    let address = program.address("b");
    program.separate("program.debug", "--strip-unneeded");
    assert_known(&program, address);

    let program = Program::compile(&["-g"]);
    let address = program.address("b");
    std::fs::create_dir(program.dir.path().join(".debug")).expect("a directory");
    program.separate(".debug/program.debug", "--strip-all");
    assert_known(&program, address);
}

/// The lines of another build would be wrong ones.
#[test]
fn debug_information_of_another_build_is_not_read() {
    let program = Program::compile(&["-g", "-Wl,--build-id"]);
    let address = program.address("b");
    program.separate("program.debug", "--strip-unneeded");
    let other = Program::compile(&["-g", "-DOTHER=1", "-O2", "-Wl,--build-id=0x1234"]);
    let debug = program.dir.path().join("program.debug");
    std::fs::copy(other.path(), debug).expect("a copy");
    assert_eq!(frame(&program.path(), address).line, None);
}

#[test]
fn without_debug_information_the_symbol_table_has_names() {
    let program = Program::compile(&[]);
    let address = program.address("b");
    let named = frame(&program.path(), address);
    assert_eq!(
        (named.function().as_deref(), &named.line),
        (Some("b"), &None)
    );
    assert_eq!(named.owner, Owner::Program);

    program.run("strip", &["program"]);
    let nameless = frame(&program.path(), address);
    assert_eq!(
        (nameless.function(), nameless.owner),
        (None, Owner::Unknown)
    );
}

#[test]
fn the_file_of_the_library_is_the_librarys() {
    let program = Program::compile(&["-g", "-shared", "-fPIC"]);
    let library = program.dir.path().join("librushmem.so.1");
    let address = program.address("b");
    std::fs::rename(program.path(), &library).expect("a name");
    assert_eq!(frame(&library, address).owner, Owner::Library);
}

#[test]
fn a_declaration_has_its_line_and_its_dimensions() {
    for flags in [&["-g"][..], &["-g", "-gz"]] {
        let program = Program::compile(flags);
        let address = program.address("table");
        assert_is_declared(&program, address);
        program.separate("program.debug", "--strip-unneeded");
        assert_is_declared(&program, address);
    }
}

#[track_caller]
fn assert_is_declared(program: &Program, address: u64) {
    let declared = &declarations(&program.path())[&address];
    let line = declared.line.to_string();
    assert!(line.ends_with("program.c:8"), "{line}");
    assert_eq!(declared.dimensions, [3, 5]);
}
