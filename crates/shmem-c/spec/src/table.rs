//! Reads the symbols and prototypes of the standard and of the extensions from the tables.
//!
//! `symbols-1.6.csv` lists every symbol; `families-1.6.csv` has the prototype of each family of
//! functions, in which TYPE stands for the element type. `shmemx.csv` lists families of extensions.
//! If such a family is `like` one of the standard, it has the prototype of that family, followed by
//! the further parameters `args`, and its types, unless the record lists others, or another type of
//! the result. Otherwise the record has the whole prototype, and may have types.

use std::collections::HashMap;

const SYMBOLS: &str = include_str!("../symbols-1.6.csv");
const FAMILIES: &str = include_str!("../families-1.6.csv");
const EXTENSIONS: &str = include_str!("../shmemx.csv");

/// The functions that the standard defines, or did before it removed them.
pub struct SpecTable {
    /// The functions, in the order of the standard.
    pub functions: Vec<CFunction>,
    /// The C11 type-generic macros of the standard.
    pub generics: Vec<String>,
    /// The constants and predefined handles.
    pub constants: Vec<String>,
    /// The functions that vendors add to those of the standard.
    pub extensions: Vec<CFunction>,
}

/// A C function.
#[derive(Clone)]
pub struct CFunction {
    /// Its name.
    pub symbol: String,
    /// The pattern of the names of the functions that differ from it only in the element type.
    pub family: String,
    /// The section that describes it; for an extension the vendor, followed by a colon.
    pub section: String,
    /// The chapter, as one word.
    pub group: String,
    /// The version that deprecated it, or nothing.
    pub deprecated_since: String,
    /// The version of the standard that removed it, or nothing. Older programs can still call it.
    pub removed_in: String,
    /// The type-generic macro that selects it, or nothing.
    pub generic: String,
    /// The name of its element type, or nothing.
    pub type_name: String,
    /// Its element type in C, or nothing.
    pub c_type: String,
    /// The name of the standard's table of element types, a list of types in braces, or nothing.
    pub type_rule: String,
    /// The type of its result.
    pub returns: String,
    /// The prototype of the whole family.
    pub pattern: Pattern,
    /// The type and the name of each parameter, as C has them.
    pub parameters: Vec<String>,
}

/// The prototype of a family of functions, in which TYPE stands for the element type.
#[derive(Clone)]
pub struct Pattern {
    /// The type of the result.
    pub returns: String,
    /// The parameters.
    pub args: String,
}

impl Pattern {
    fn returns_of(&self, c_type: &str) -> String {
        self.returns.replace("TYPE", c_type)
    }

    fn parameters_of(&self, c_type: &str) -> Vec<String> {
        split_parameters(&self.args)
            .map(|parameter| parameter.replace("TYPE", c_type))
            .collect()
    }
}

impl SpecTable {
    /// Reads the tables, which are compiled into the calling program.
    ///
    /// # Panics
    /// If the tables contradict each other.
    pub fn read() -> Self {
        let families: HashMap<String, HashMap<String, String>> = records(FAMILIES)
            .map(|family| (family["family"].clone(), family))
            .collect();
        let mut table = Self {
            functions: Vec::new(),
            generics: Vec::new(),
            constants: Vec::new(),
            extensions: Vec::new(),
        };

        for record in records(SYMBOLS) {
            let symbol = record["symbol"].clone();
            match record["kind"].as_str() {
                "function" => {
                    let family = families
                        .get(&record["family"])
                        .unwrap_or_else(|| panic!("{symbol} has no family"));
                    table.functions.push(CFunction::new(&record, family));
                }
                "macro" => table.generics.push(symbol),
                "constant" => table.constants.push(symbol),
                "env" | "header" | "type" => {}
                other => panic!("{symbol} is of the unknown kind {other}"),
            }
        }
        for record in records(EXTENSIONS) {
            let functions = Extension::new(&record).functions(&table.functions);
            table.extensions.extend(functions);
        }
        table
    }

    /// Returns the C11 type-generic macros of the extensions.
    pub fn extension_generics(&self) -> Vec<&String> {
        let mut names: Vec<_> = self
            .extensions
            .iter()
            .map(|f| &f.generic)
            .filter(|name| !name.is_empty())
            .collect();
        names.sort();
        names.dedup();
        names
    }

    /// Returns all functions that the library exports: the standard's and the extensions.
    pub fn all(&self) -> impl Iterator<Item = &CFunction> {
        self.functions.iter().chain(&self.extensions)
    }
}

impl CFunction {
    fn new(record: &HashMap<String, String>, family: &HashMap<String, String>) -> Self {
        let c_type = match record["c_type"].as_str() {
            // The headers define these names, since C++ writes complex types differently.
            "float _Complex" => "rushmem_complexf".to_owned(),
            "double _Complex" => "rushmem_complexd".to_owned(),
            c_type => c_type.to_owned(),
        };
        let pattern = Pattern {
            returns: family["returns"].clone(),
            args: family["args"].clone(),
        };
        let function = Self {
            symbol: record["symbol"].clone(),
            family: record["family"].clone(),
            section: record["section"].clone(),
            group: record["group"].clone(),
            deprecated_since: record["deprecated_since"].clone(),
            removed_in: record["status"]
                .strip_prefix("removed-")
                .unwrap_or_default()
                .to_owned(),
            generic: record["c11_generic"].clone(),
            type_name: record["type_name"].clone(),
            type_rule: family["type_rule"].clone(),
            returns: pattern.returns_of(&c_type),
            parameters: pattern.parameters_of(&c_type),
            pattern,
            c_type,
        };

        let twin = &record["pshmem"];
        assert!(
            *twin == function.twin() || twin == "(unspecified)",
            "twin of {}",
            function.symbol
        );
        function
    }

    /// Returns the name of its twin for profiling tools.
    pub fn twin(&self) -> String {
        format!("p{}", self.symbol)
    }

    /// Returns true if its first parameter is a context.
    pub fn takes_context(&self) -> bool {
        self.symbol.starts_with("shmem_ctx_") || self.symbol.starts_with("shmemx_ctx_")
    }

    /// Returns the type of C that its element type is on 64-bit Linux.
    pub fn base_type(&self) -> &str {
        match self.c_type.as_str() {
            "int8_t" => "signed char",
            "int16_t" => "short",
            "int32_t" => "int",
            "int64_t" | "ptrdiff_t" => "long",
            "uint8_t" => "unsigned char",
            "uint16_t" => "unsigned short",
            "uint32_t" => "unsigned int",
            "uint64_t" | "size_t" => "unsigned long",
            base => base,
        }
    }

    /// Returns the declaration of this function under the name given, without a semicolon.
    pub fn prototype(&self, name: &str) -> String {
        let parameters = if self.parameters.is_empty() {
            "void".to_owned()
        } else {
            self.parameters.join(", ")
        };
        let space = if self.returns.ends_with('*') { "" } else { " " };
        format!("{}{space}{name}({parameters})", self.returns)
    }
}

/// Returns the type and the name of each parameter in a list; none for `void`.
fn split_parameters(args: &str) -> impl Iterator<Item = &str> {
    args.split(", ").filter(|parameter| *parameter != "void")
}

/// A family of extensions.
struct Extension<'a> {
    family: &'a str,
    vendor: &'a str,
    group: &'a str,
    /// The family of the standard whose functions it is like, or nothing.
    like: &'a str,
    /// The element types in C, separated by commas, or nothing.
    types: &'a str,
    returns: &'a str,
    /// The parameters, or those that follow the ones of the family that it is like.
    args: &'a str,
}

impl<'a> Extension<'a> {
    fn new(record: &'a HashMap<String, String>) -> Self {
        Self {
            family: &record["family"],
            vendor: &record["vendor"],
            group: &record["group"],
            like: &record["like"],
            types: &record["types"],
            returns: &record["returns"],
            args: &record["args"],
        }
    }

    /// Returns the functions of the family.
    fn functions(&self, standard: &[CFunction]) -> Vec<CFunction> {
        let types = self.types.split(", ");
        if self.like.is_empty() {
            return types.map(|c_type| self.of_own_prototype(c_type)).collect();
        }

        let alike: Vec<&CFunction> = standard.iter().filter(|f| f.family == self.like).collect();
        assert!(
            !alike.is_empty(),
            "{} is like {}, which the standard has not",
            self.family,
            self.like
        );
        if self.types.is_empty() {
            return alike.into_iter().map(|of| self.of_same_type(of)).collect();
        }
        types
            .map(|c_type| self.of_other_type(alike[0], c_type))
            .collect()
    }

    /// Returns the function for an element type whose prototype this record has.
    fn of_own_prototype(&self, c_type: &str) -> CFunction {
        let type_name = c_type.replace(' ', "");
        let pattern = Pattern {
            returns: self.returns.to_owned(),
            args: self.args.to_owned(),
        };
        CFunction {
            symbol: self.symbol(&type_name),
            family: self.family.to_owned(),
            section: self.section(),
            group: self.group.to_owned(),
            deprecated_since: String::new(),
            removed_in: String::new(),
            generic: String::new(),
            type_name,
            c_type: c_type.to_owned(),
            type_rule: String::new(),
            returns: pattern.returns_of(c_type),
            parameters: pattern.parameters_of(c_type),
            pattern,
        }
    }

    /// Returns the function that is like one of the standard, for the same element type and with
    /// the further parameters of this record.
    fn of_same_type(&self, of: &CFunction) -> CFunction {
        let mut pattern = of.pattern.clone();
        let mut parameters = of.parameters.clone();
        if !self.args.is_empty() {
            pattern.args += &format!(", {}", self.args);
            parameters.extend(split_parameters(self.args).map(str::to_owned));
        }
        let mut returns = of.returns.clone();
        if !self.returns.is_empty() {
            pattern.returns = self.returns.to_owned();
            returns = pattern.returns.clone();
        }
        CFunction {
            symbol: self.symbol(&of.type_name),
            family: self.family.to_owned(),
            section: self.section(),
            group: self.group.to_owned(),
            deprecated_since: String::new(),
            generic: self.generic(of),
            pattern,
            parameters,
            returns,
            ..of.clone()
        }
    }

    /// Returns the function that is like one of the standard, for another element type.
    fn of_other_type(&self, of: &CFunction, c_type: &str) -> CFunction {
        let type_name = c_type.replace(' ', "");
        CFunction {
            symbol: self.symbol(&type_name),
            family: self.family.to_owned(),
            section: self.section(),
            group: self.group.to_owned(),
            deprecated_since: String::new(),
            generic: self.generic(of),
            type_name,
            c_type: c_type.to_owned(),
            type_rule: format!("{{{}}}", self.types.replace(", ", ",")),
            returns: of.pattern.returns_of(c_type),
            parameters: of.pattern.parameters_of(c_type),
            ..of.clone()
        }
    }

    /// Returns the name of the function for an element type.
    fn symbol(&self, type_name: &str) -> String {
        self.family
            .replace("<TYPENAME>", type_name)
            .replace("<SIZE>", type_name)
    }

    fn section(&self) -> String {
        format!("{}:", self.vendor)
    }

    /// Returns the name of the C11 macro that selects the extension like `of`: the name of the
    /// family without the type and `ctx_`. Returns an empty string if `of` has no macro, or if the
    /// name of the family does not begin with `shmemx_`: a macro with a name of the standard
    /// selects among the standard's functions alone.
    fn generic(&self, of: &CFunction) -> String {
        if of.generic.is_empty() || !self.family.starts_with("shmemx_") {
            return String::new();
        }
        self.family.replace("<TYPENAME>_", "").replace("ctx_", "")
    }
}

/// A parameter of C.
#[derive(Debug, PartialEq)]
pub(crate) struct TypedName<'a> {
    pub c_type: &'a str,
    pub name: &'a str,
}

impl TypedName<'_> {
    /// Splits the text of a parameter, such as `const long *source`.
    pub fn split(parameter: &str) -> TypedName<'_> {
        let start = parameter
            .rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .map_or(0, |before| before + 1);
        TypedName {
            c_type: parameter[..start].trim(),
            name: &parameter[start..],
        }
    }
}

/// Returns the records of a table whose first line names the columns: the values by column.
pub(crate) fn records(text: &str) -> impl Iterator<Item = HashMap<String, String>> {
    csv::Reader::from_reader(text.as_bytes())
        .into_deserialize()
        .map(|record| record.expect("a table of this repository"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_split() {
        let parts = |c_type, name| TypedName { c_type, name };
        let source = TypedName::split("const long *source");
        assert_eq!(source, parts("const long *", "source"));
        assert_eq!(TypedName::split("size_t nelems"), parts("size_t", "nelems"));
        assert_eq!(TypedName::split("void *ptr"), parts("void *", "ptr"));
    }
}
