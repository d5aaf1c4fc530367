//! Names of functions and variables, and lines, from the debug information of the program.

use addr2line::Loader;
use object::{Object, ObjectSymbol, SymbolKind};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;

/// Function and `FILE:LINE`, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceLine {
    /// The function.
    pub function: Option<String>,
    /// The file, from the folder of this process if it is in there.
    pub file: Option<String>,
    /// The line.
    pub line: Option<u32>,
}

impl std::fmt::Display for SourceLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{file}:{line}")?,
            (Some(file), None) => write!(f, "{file}")?,
            _ => f.write_str("a place without debug information")?,
        }
        self.function.as_ref().map_or(Ok(()), |function| write!(f, " ({function})"))
    }
}

thread_local! {
    // A loader is not shared between threads.
    static LOADERS: std::cell::RefCell<HashMap<String, Option<Loader>>> = Default::default();
}

fn with_loader<R>(module: &str, f: impl FnOnce(&Loader) -> Option<R>) -> Option<R> {
    LOADERS.with_borrow_mut(|loaders| {
        let loader = loaders.entry(module.to_owned()).or_insert_with(|| Loader::new(module).ok());
        loader.as_ref().and_then(f)
    })
}

/// Where an address of a file comes from.
pub fn source(module: &str, address: u64) -> SourceLine {
    let found = with_loader(module, |loader| {
        let symbol = loader.find_symbol(address).map(str::to_owned);
        let frame = loader.find_frames(address).ok().and_then(|mut frames| frames.next().ok()?);
        let Some(frame) = frame else {
            return Some(SourceLine { function: symbol, ..SourceLine::default() });
        };
        let name = frame.function.and_then(|name| Some(name.demangle().ok()?.into_owned()));
        let (file, line) =
            frame.location.map_or((None, None), |at| (at.file.map(from_here), at.line));
        Some(SourceLine { function: name.or(symbol), file, line })
    });
    found.unwrap_or_default()
}

/// A path from the folder of this process, if it is in there.
fn from_here(path: &str) -> String {
    let here = std::env::current_dir().ok();
    let inside =
        here.and_then(|here| Some(Path::new(path).strip_prefix(here).ok()?.display().to_string()));
    inside.unwrap_or_else(|| path.to_owned())
}

/// Whether a function is of the library that is linked into a program, by its name.
pub fn is_ours(module: &str, address: u64) -> bool {
    let name = with_loader(module, |loader| loader.find_symbol(address).map(str::to_owned));
    name.is_some_and(|name| {
        let starts = ["pshmem", "shmem_", "_ZN7rushmem", "_ZN15rushmem", "rushmem_", "_ZN5shmem"];
        starts.iter().any(|start| name.starts_with(start)) || name.contains("rushmem_runtime")
    })
}

/// A variable: its name, its address and its bytes.
pub type Variable = (String, u64, u64);

/// The variable of the executable that holds an address.
pub fn variable(module: &str, address: u64) -> Option<Variable> {
    static VARIABLES: Mutex<Option<Vec<Variable>>> = Mutex::new(None);
    let mut variables = VARIABLES.lock().ok()?;
    let all = variables.get_or_insert_with(|| read_variables(module).unwrap_or_default());
    all.iter().find(|(_, start, nbytes)| (*start..start + nbytes).contains(&address)).cloned()
}

fn read_variables(module: &str) -> Option<Vec<Variable>> {
    let bytes = std::fs::read(module).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let data = file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Data);
    let variables = data.filter_map(|symbol| {
        let name = symbol.name().ok()?;
        // The compiler numbers what is static in functions.
        let name = match name.rsplit_once('.') {
            Some((name, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => name,
        };
        // Names of C, such as `x`, may be types to a demangler.
        let name = match name.starts_with("_Z") || name.starts_with("_R") {
            true => addr2line::demangle_auto(name.into(), None).into_owned(),
            false => name.to_owned(),
        };
        (symbol.size() > 0).then_some((name, symbol.address(), symbol.size()))
    });
    Some(variables.collect())
}
