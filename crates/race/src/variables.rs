//! Names of static variables, and the lines that declare them.

use crate::symbols::from_here;
use addr2line::gimli::{
    AttributeValue, DW_AT_decl_file, DW_AT_decl_line, DW_AT_location, DW_TAG_variable, Dwarf,
    DwarfSections, EndianSlice, Error, NativeEndian, Operation, Reader, SectionId, UnitRef,
};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Mutex;

/// A static variable of a program.
#[derive(Clone)]
pub struct StaticVariable {
    /// Its name.
    pub name: String,
    /// Its address in the file.
    pub address: u64,
    /// Its bytes.
    pub nbytes: u64,
    /// `FILE:LINE` of its declaration, if there is debug information.
    pub declared: Option<String>,
}

/// The variable of the executable that holds an address.
pub fn find(module: &str, address: u64) -> Option<StaticVariable> {
    static VARIABLES: Mutex<Option<Vec<StaticVariable>>> = Mutex::new(None);
    let mut variables = VARIABLES.lock().ok()?;
    let all = variables.get_or_insert_with(|| read(module).unwrap_or_default());
    all.iter().find(|v| (v.address..v.address + v.nbytes).contains(&address)).cloned()
}

fn read(module: &str) -> Option<Vec<StaticVariable>> {
    let bytes = std::fs::read(module).ok()?;
    let file = object::File::parse(&*bytes).ok()?;
    let declared = declarations(&file).unwrap_or_default();
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
        let (address, nbytes) = (symbol.address(), symbol.size());
        let declared = declared.get(&address).cloned();
        (nbytes > 0).then_some(StaticVariable { name, address, nbytes, declared })
    });
    Some(variables.collect())
}

/// Where the debug information says that the variables of these addresses are declared.
fn declarations(file: &object::File<'_>) -> Result<HashMap<u64, String>, Error> {
    let load = |id: SectionId| {
        let section = file.section_by_name(id.name());
        let data = section.and_then(|section| section.uncompressed_data().ok());
        Ok::<Cow<'_, [u8]>, Error>(data.unwrap_or_default())
    };
    let sections = DwarfSections::load(load)?;
    let dwarf: Dwarf<_> = sections.borrow(|section| EndianSlice::new(section, NativeEndian));
    let mut declared = HashMap::new();
    let mut units = dwarf.units();
    while let Some(header) = units.next()? {
        let unit = dwarf.unit(header)?;
        let unit = unit.unit_ref(&dwarf);
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs()? {
            if entry.tag() != DW_TAG_variable {
                continue;
            }
            let Some(address) = address(unit, entry.attr_value(DW_AT_location))? else { continue };
            let line = entry.attr_value(DW_AT_decl_line).and_then(|line| line.udata_value());
            let path = path(unit, entry.attr_value(DW_AT_decl_file))?;
            if let (Some(path), Some(line)) = (path, line) {
                declared.insert(address, format!("{}:{line}", from_here(&path)));
            }
        }
    }
    Ok(declared)
}

/// The address of a variable that has one for the whole run.
fn address<R: Reader>(
    unit: UnitRef<'_, R>,
    location: Option<AttributeValue<R>>,
) -> Result<Option<u64>, Error> {
    let Some(AttributeValue::Exprloc(expression)) = location else { return Ok(None) };
    match expression.operations(unit.encoding()).next()? {
        Some(Operation::Address { address }) => Ok(Some(address)),
        Some(Operation::AddressIndex { index }) => unit.address(index).map(Some),
        _ => Ok(None),
    }
}

/// The path of a source file, which the line table of its unit has.
fn path<R: Reader>(
    unit: UnitRef<'_, R>,
    file: Option<AttributeValue<R>>,
) -> Result<Option<String>, Error> {
    let index = match file {
        Some(AttributeValue::FileIndex(index)) => Some(index),
        other => other.and_then(|value| value.udata_value()),
    };
    let Some((program, index)) = unit.line_program.as_ref().zip(index) else { return Ok(None) };
    let Some(file) = program.header().file(index) else { return Ok(None) };
    let folder = file.directory(program.header()).map(|folder| unit.attr_string(folder));
    let parts =
        [unit.comp_dir.clone(), folder.transpose()?, Some(unit.attr_string(file.path_name())?)];
    let mut path = std::path::PathBuf::new();
    for part in parts.into_iter().flatten() {
        // An absolute part replaces what is before it.
        path.push(&*part.to_string_lossy()?);
    }
    Ok(Some(path.display().to_string()))
}
