//! Finds the declarations of the static variables of a program in its debug information.

use crate::files::{Elf, Headers};
use crate::frame::Line;
use addr2line::gimli::{
    AttributeValue, DW_AT_count, DW_AT_decl_file, DW_AT_decl_line, DW_AT_language, DW_AT_location,
    DW_AT_type, DW_AT_upper_bound, DW_LANG_Fortran03, DW_LANG_Fortran08, DW_LANG_Fortran77,
    DW_LANG_Fortran90, DW_LANG_Fortran95, DW_TAG_array_type, DW_TAG_const_type,
    DW_TAG_subrange_type, DW_TAG_typedef, DW_TAG_variable, DW_TAG_volatile_type,
    DebuggingInformationEntry, DwLang, DwTag, Dwarf, DwarfSections, EndianSlice, Error,
    NativeEndian, Operation, Reader, SectionId, UnitRef,
};
use object::{Object, ObjectSection, ReadCache};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The declaration of a static variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Declaration {
    /// The line in the source code.
    pub line: Line,
    /// The number of elements in each dimension of an array, of which the last one varies fastest.
    /// Empty for variables that are no arrays, and for all variables of Fortran.
    pub dimensions: Vec<u64>,
}

/// Returns the declarations of the static variables of a program, by their addresses before
/// relocation; none without debug information.
pub fn declarations(program: &Path) -> HashMap<u64, Declaration> {
    read(program).unwrap_or_default()
}

fn read(program: &Path) -> Option<HashMap<u64, Declaration>> {
    let headers = Headers::read(program).ok()?;
    let data = ReadCache::new(File::open(headers.debug_file).ok()?);
    let file = Elf::parse(&data).ok()?;
    declarations_in(&file).ok()
}

fn declarations_in(file: &Elf<'_>) -> Result<HashMap<u64, Declaration>, Error> {
    let sections = DwarfSections::load(|id: SectionId| {
        let section = file.section_by_name(id.name());
        let data = section.and_then(|section| section.uncompressed_data().ok());
        Ok::<Cow<'_, [u8]>, Error>(data.unwrap_or_default())
    })?;
    let dwarf: Dwarf<_> = sections.borrow(|section| EndianSlice::new(section, NativeEndian));

    let mut declared = HashMap::new();
    let mut units = dwarf.units();
    while let Some(header) = units.next()? {
        let unit = dwarf.unit(header)?;
        let unit = unit.unit_ref(&dwarf);
        let is_fortran = is_fortran(unit)?;
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs()? {
            if entry.tag() != DW_TAG_variable {
                continue;
            }
            let Some(address) = address(unit, entry.attr_value(DW_AT_location))? else {
                continue;
            };
            let Some(line) = line(unit, entry)? else {
                continue;
            };

            // The first elements of an array of Fortran are adjacent, so its indices would be in
            // the wrong order.
            let dimensions = if is_fortran {
                Vec::new()
            } else {
                dimensions(unit, entry.attr_value(DW_AT_type))?
            };
            declared.insert(address, Declaration { line, dimensions });
        }
    }
    Ok(declared)
}

/// Returns the line of the declaration of a variable.
fn line<R: Reader>(
    unit: UnitRef<'_, R>,
    variable: &DebuggingInformationEntry<R>,
) -> Result<Option<Line>, Error> {
    let file = path(unit, variable.attr_value(DW_AT_decl_file))?;
    let number = variable
        .attr_value(DW_AT_decl_line)
        .and_then(|line| line.udata_value());
    let (Some(file), Some(number)) = (file, number) else {
        return Ok(None);
    };
    Ok(Some(Line {
        file,
        number: u32::try_from(number).unwrap_or(u32::MAX),
    }))
}

const FORTRAN: [DwLang; 5] = [
    DW_LANG_Fortran77,
    DW_LANG_Fortran90,
    DW_LANG_Fortran95,
    DW_LANG_Fortran03,
    DW_LANG_Fortran08,
];

/// Returns true if a unit is of Fortran.
fn is_fortran<R: Reader>(unit: UnitRef<'_, R>) -> Result<bool, Error> {
    let mut entries = unit.entries();
    let language = entries
        .next_dfs()?
        .and_then(|entry| entry.attr_value(DW_AT_language));
    Ok(match language {
        Some(AttributeValue::Language(language)) => FORTRAN.contains(&language),
        _ => false,
    })
}

/// Types that have the elements of the type to which they refer.
const ALIASES: [DwTag; 3] = [DW_TAG_typedef, DW_TAG_const_type, DW_TAG_volatile_type];

/// Returns the number of elements in each dimension of a type of C; empty if it is no array.
fn dimensions<R: Reader>(
    unit: UnitRef<'_, R>,
    mut next: Option<AttributeValue<R>>,
) -> Result<Vec<u64>, Error> {
    let mut dimensions = Vec::new();
    while let Some(AttributeValue::UnitRef(offset)) = next {
        let mut tree = unit.entries_tree(Some(offset))?;
        let node = tree.root()?;
        let tag = node.entry().tag();
        if tag != DW_TAG_array_type && !ALIASES.contains(&tag) {
            break;
        }

        // The type of the elements, or the type of which this one is an alias.
        next = node.entry().attr_value(DW_AT_type);
        if tag != DW_TAG_array_type {
            continue;
        }

        let mut children = node.children();
        while let Some(child) = children.next()? {
            let entry = child.entry();
            if entry.tag() != DW_TAG_subrange_type {
                continue;
            }
            // Compilers write one or the other. The lower bound of C is 0.
            let number = |name| entry.attr_value(name).and_then(|value| value.udata_value());
            let count = number(DW_AT_count);
            dimensions.extend(count.or_else(|| Some(number(DW_AT_upper_bound)? + 1)));
        }
    }
    Ok(dimensions)
}

/// Returns the address of a variable; `None` if it has no fixed one, such as a local variable.
fn address<R: Reader>(
    unit: UnitRef<'_, R>,
    location: Option<AttributeValue<R>>,
) -> Result<Option<u64>, Error> {
    let Some(AttributeValue::Exprloc(expression)) = location else {
        return Ok(None);
    };
    match expression.operations(unit.encoding()).next()? {
        Some(Operation::Address { address }) => Ok(Some(address)),
        Some(Operation::AddressIndex { index }) => unit.address(index).map(Some),
        _ => Ok(None),
    }
}

/// Returns the path of a source file, from the line table of its unit.
fn path<R: Reader>(
    unit: UnitRef<'_, R>,
    file: Option<AttributeValue<R>>,
) -> Result<Option<String>, Error> {
    let index = match file {
        Some(AttributeValue::FileIndex(index)) => Some(index),
        other => other.and_then(|value| value.udata_value()),
    };
    let (Some(program), Some(index)) = (&unit.line_program, index) else {
        return Ok(None);
    };
    let Some(file) = program.header().file(index) else {
        return Ok(None);
    };

    // An absolute part replaces what is before it.
    let mut path = PathBuf::new();
    if let Some(dir) = &unit.comp_dir {
        path.push(&*dir.to_string_lossy()?);
    }
    if let Some(dir) = file.directory(program.header()) {
        path.push(&*unit.attr_string(dir)?.to_string_lossy()?);
    }
    path.push(&*unit.attr_string(file.path_name())?.to_string_lossy()?);
    Ok(Some(path.display().to_string()))
}
