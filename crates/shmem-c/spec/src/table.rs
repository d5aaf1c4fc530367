//! Reads the symbols and prototypes of the standard and of the extensions from the tables.
//!
//! `symbols-1.6.csv` lists every symbol; `families-1.6.csv` has the prototype of each family of
//! functions, in which TYPE stands for the element type. `shmemx.csv` lists families of extensions.
//! If such a family is `like` one of the standard, it has the prototype of that family, followed by
//! the further parameters `args`, and its types, unless the record lists others. Otherwise the
//! record has the whole prototype, and may have types.

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
    /// The functions that vendors add to the standard's, by vendor.
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
    /// The type of the result and the parameters for the whole family, where TYPE is the element
    /// type.
    pub pattern: (String, String),
    /// The type and the name of each parameter.
    pub parameters: Vec<String>,
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
            table
                .extensions
                .extend(extensions(&record, &table.functions));
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
        let of_type = |text: &str| text.replace("TYPE", &c_type);
        let parameters = parameters(&family["args"]).map(of_type).collect();
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
            returns: of_type(&family["returns"]),
            pattern: (family["returns"].clone(), family["args"].clone()),
            parameters,
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
fn parameters(args: &str) -> impl Iterator<Item = &str> {
    args.split(", ").filter(|parameter| *parameter != "void")
}

/// Returns the functions of a family of extensions.
fn extensions(record: &HashMap<String, String>, standard: &[CFunction]) -> Vec<CFunction> {
    let (family, like) = (&record["family"], &record["like"]);
    let added = || {
        parameters(&record["args"])
            .filter(|args| !args.is_empty())
            .map(str::to_owned)
    };
    let extension = |symbol: String, of: &CFunction| CFunction {
        symbol,
        family: family.clone(),
        section: format!("{}:", record["vendor"]),
        group: record["group"].clone(),
        deprecated_since: String::new(),
        generic: String::new(),
        ..of.clone()
    };
    // A type-generic name with `shmemx_` selects among functions with `shmemx_` only.
    let suffix = family.strip_prefix(&like.replacen("shmem_", "shmemx_", 1));
    let generic = |of: &CFunction| match of.generic.as_str() {
        "" => String::new(),
        generic => generic.replacen("shmem_", "shmemx_", 1) + suffix.unwrap_or_default(),
    };
    let extended = |args: &str| match record["args"].as_str() {
        "" => args.to_owned(),
        added => format!("{args}, {added}"),
    };
    let other_name = |symbol: String, of: &CFunction| CFunction {
        generic: generic(of),
        pattern: (of.pattern.0.clone(), extended(&of.pattern.1)),
        parameters: of.parameters.iter().cloned().chain(added()).collect(),
        ..extension(symbol, of)
    };
    if like.is_empty() {
        let function = |c_type: &str| {
            let type_name = c_type.replace(' ', "");
            let of_type = |text: &str| text.replace("TYPE", c_type);
            let function = CFunction {
                symbol: String::new(),
                family: family.clone(),
                section: String::new(),
                group: String::new(),
                deprecated_since: String::new(),
                removed_in: String::new(),
                generic: String::new(),
                type_rule: String::new(),
                returns: record["returns"].clone(),
                pattern: (record["returns"].clone(), record["args"].clone()),
                parameters: parameters(&record["args"]).map(of_type).collect(),
                c_type: c_type.to_owned(),
                type_name: type_name.clone(),
            };
            extension(family.replace("<TYPENAME>", &type_name), &function)
        };
        return record["types"].split(", ").map(function).collect();
    }
    let alike: Vec<&CFunction> = standard.iter().filter(|f| f.family == *like).collect();
    assert!(
        !alike.is_empty(),
        "{family} is like {like}, which the standard has not"
    );
    let named = |type_name: &str| {
        family
            .replace("<TYPENAME>", type_name)
            .replace("<SIZE>", type_name)
    };
    let types = &record["types"];
    if types.is_empty() {
        return alike
            .iter()
            .map(|of| other_name(named(&of.type_name), of))
            .collect();
    }
    let of = alike[0];
    let of_type = |c_type: &str| {
        let retyped = |text: &str| text.replace("TYPE", c_type);
        let type_name = c_type.replace(' ', "");
        CFunction {
            generic: if suffix.is_some() {
                generic(of)
            } else {
                String::new()
            },
            type_rule: format!("{{{}}}", types.replace(", ", ",")),
            returns: retyped(&of.pattern.0),
            parameters: parameters(&of.pattern.1).map(retyped).collect(),
            c_type: c_type.to_owned(),
            type_name: type_name.clone(),
            ..extension(named(&type_name), of)
        }
    };
    types.split(", ").map(of_type).collect()
}

/// Returns the records of a table whose first line names the columns: the values by column.
pub(crate) fn records(text: &str) -> impl Iterator<Item = HashMap<String, String>> {
    let records = csv::Reader::from_reader(text.as_bytes()).into_deserialize();
    records.map(|record| record.expect("a table of this repository"))
}
