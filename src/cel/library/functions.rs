//! Indexes the rows that an environment offers by function name.
//!
//! The checker looks up a name's overloads; the planner keeps the rows it needs; a call whose overload depends on the argument values
//! uses [`Function::choose`]. The messages for no matching overload are cel-go's, which distinguishes functions with one implementation
//! for all overloads (the operators, `size`, `sort`) from functions with one for each.

use std::collections::HashMap;

use super::{Overload, Signature, SignatureError, Version, extensions, history, overloads};
use crate::types::TypeNames;
use crate::value::{EvalError, Value, runtime_type};

/// A library outside the environments that Kubernetes builds by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Extra {
    /// `jsonpatch.escapeKey`, which mutating policies add.
    JsonPatch,
    /// cel-go's `cel.bind`.
    Bindings,
    /// cel-go's `base64.encode` and `base64.decode`.
    Encoders,
    /// cel-go's `math.least`, `math.greatest`, rounding, signs, bits and roots.
    Math,
}

/// Which functions an environment has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    /// The compatibility version: functions that were added later are left out.
    pub compatible: Version,
    /// The release of the build, which determines costs and existing functions.
    pub release: Version,
    /// Whether costs include those that Kubernetes itself defines.
    pub books: bool,
}

/// A row with its parsed signature.
#[derive(Clone, Debug)]
pub(crate) struct Declared {
    /// The row.
    pub row: &'static Overload,
    /// Its signature, parsed.
    pub signature: Signature,
}

/// All overloads of one name.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    /// The name, with its namespace.
    pub name: &'static str,
    /// The overloads in order of declaration, in which they are tried.
    pub overloads: Vec<Declared>,
    /// See [`single_body`].
    single_body: Option<&'static [&'static str]>,
}

/// The functions of an environment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Functions {
    by_name: HashMap<&'static str, Function>,
}

impl Functions {
    /// What the build of a release offers.
    #[must_use]
    pub(crate) fn kubernetes(offer: Offer) -> Self {
        let mut functions = Self::default();
        let rows = overloads().filter(|row| row.is_in(offer.compatible));
        let rows = rows.filter_map(|row| history::in_build(row, offer.release));
        functions.extend(rows.map(|row| if offer.books { row } else { history::without_books(row) }));
        functions
    }

    /// The rows, in no order.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &'static Overload> {
        self.by_name.values().flat_map(|function| &function.overloads).map(|declared| declared.row)
    }

    /// Returns the functions with another library.
    #[must_use]
    pub(crate) fn with(mut self, extra: Extra) -> Self {
        self.extend_all(match extra {
            Extra::JsonPatch => &[super::kubernetes::jsonpatch::ROWS],
            // A macro alone.
            Extra::Bindings => &[][..],
            Extra::Encoders => &[extensions::encoders::ROWS],
            Extra::Math => extensions::math::TABLES,
        });
        self
    }

    /// The language with cel-go's extension libraries as they are today, and nothing that is Kubernetes' own but
    /// addresses and networks, which the language's suite took over.
    #[must_use]
    pub(crate) fn standard() -> Self {
        let mut functions = Self::default();
        for tables in [super::standard::TABLES, extensions::TABLES, super::kubernetes::NETWORK] {
            functions.extend_all(tables);
        }
        functions.extend(extensions::current::ROWS.iter());
        functions.with(Extra::Encoders).with(Extra::Math)
    }

    /// The names of all functions, operators left out, in no order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        let is_word = |name: &&str| name.starts_with(|first: char| first.is_ascii_alphabetic());
        self.by_name.keys().copied().filter(is_word)
    }

    /// The overloads of a name.
    #[must_use]
    pub(crate) fn get(&self, name: &str) -> Option<&Function> {
        self.by_name.get(name)
    }

    /// Returns the functions with those of the caller.
    ///
    /// # Errors
    ///
    /// For the first row with an invalid signature.
    pub(crate) fn with_rows(
        mut self,
        names: &TypeNames,
        rows: &'static [Overload],
    ) -> Result<Self, SignatureError> {
        for row in rows {
            let signature = Signature::parse_of(names, row.signature).ok_or(SignatureError(row.signature))?;
            self.add(row, signature);
        }
        Ok(self)
    }

    fn extend_all(&mut self, tables: &[&'static [Overload]]) {
        self.extend(tables.iter().copied().flatten().filter(|row| row.until.is_none()));
    }

    fn extend(&mut self, rows: impl Iterator<Item = &'static Overload>) {
        for row in rows {
            if let Some(signature) = Signature::parse(row.signature) {
                self.add(row, signature);
            }
        }
    }

    /// A row takes the place of an earlier one of its id.
    fn add(&mut self, row: &'static Overload, signature: Signature) {
        let name = signature.function;
        let function = self.by_name.entry(name).or_insert_with(|| Function {
            name,
            overloads: Vec::new(),
            single_body: single_body(name),
        });
        let declared = Declared { row, signature };
        match function.overloads.iter_mut().find(|known| known.row.id == row.id) {
            Some(known) => *known = declared,
            None => function.overloads.push(declared),
        }
    }
}

impl Function {
    /// The row that these arguments select. Of a function with one body for all overloads that is any row of as many
    /// parameters, when none accepts the arguments: the body has words of its own for them.
    ///
    /// # Errors
    ///
    /// `no such overload`, worded as cel-go does for this function, when no overload accepts them.
    pub(crate) fn choose(&self, args: &[Value<'_>]) -> Result<&'static Overload, EvalError> {
        if let Some(found) = self.overloads.iter().find(|declared| declared.signature.accepts(args)) {
            return Ok(found.row);
        }
        let of_arity = |declared: &&Declared| declared.signature.parameters.len() == args.len();
        match self.overloads.iter().find(of_arity) {
            Some(declared) if self.runs_body(args) => Ok(declared.row),
            _ => Err(no_such_overload(self.name, args)),
        }
    }

    /// Whether a call whose overload the checker decided runs with these arguments, which only now show their types.
    ///
    /// # Errors
    ///
    /// As [`Self::choose`].
    pub(crate) fn admit(&self, row: &Overload, args: &[Value<'_>]) -> Result<(), EvalError> {
        let accepts = |declared: &Declared| declared.row.id == row.id && declared.signature.accepts(args);
        if self.runs_body(args) || self.overloads.iter().any(accepts) {
            return Ok(());
        }
        Err(no_such_overload(self.name, args))
    }

    /// Whether the body looks at its arguments itself: of a function with one body for all overloads if the first
    /// argument has the trait that it needs, and of `flatten`, which takes lists that are flat already.
    fn runs_body(&self, args: &[Value<'_>]) -> bool {
        match (self.single_body, args.first()) {
            (Some(types), Some(first)) => has_trait(types, first),
            _ => self.name == "flatten",
        }
    }
}

fn has_trait(types: &[&str], value: &Value<'_>) -> bool {
    types.is_empty() || types.contains(&runtime_type::name_of(value))
}

/// The error of a call of `function` that no overload accepts.
#[must_use]
pub(crate) fn no_such_overload(function: &str, args: &[Value<'_>]) -> EvalError {
    let Some(trait_types) = single_body(function) else {
        let names: Vec<_> = args.iter().map(runtime_type::name_of).collect();
        return EvalError::Other(format!("no such overload: {function}({})", names.join(", ")).into());
    };
    let first = args.first();
    let has_trait = first.is_some_and(|value| has_trait(trait_types, value));
    // A string, duration or timestamp may have methods that cel-go looks up by name before it gives up.
    let has_methods = matches!(first, Some(Value::String(_) | Value::Duration(_) | Value::Timestamp(_)));
    if has_trait || has_methods {
        EvalError::NoSuchOverload
    } else {
        EvalError::Other(format!("no such overload: {function}").into())
    }
}

/// Whether all overloads of a function share one body, which cel-go's planner then calls without looking for one.
pub(crate) fn has_single_body(function: &str) -> bool {
    single_body(function).is_some()
}

const TIMES: [&str; 2] = ["google.protobuf.Duration", "google.protobuf.Timestamp"];

/// For a function with a single implementation: the types that it accepts as its first argument; an empty list means any.
fn single_body(function: &str) -> Option<&'static [&'static str]> {
    Some(match function {
        "_+_" => &["bytes", "double", TIMES[0], "int", "list", "string", TIMES[1], "uint"],
        "_-_" => &["double", TIMES[0], "int", TIMES[1], "uint"],
        "_*_" | "_/_" => &["double", "int", "uint"],
        "_%_" => &["int", "uint"],
        "-_" => &["bool", "double", TIMES[0], "int"],
        "_<_" | "_<=_" | "_>_" | "_>=_" => {
            &["bool", "bytes", "double", TIMES[0], "int", "string", TIMES[1], "uint"]
        }
        "size" => &["bytes", "list", "map", "string"],
        "matches" => &["string"],
        "sort" | "@sortByAssociatedKeys" => &["list"],
        "!_" | "@in" | "_==_" | "_!=_" | "type" | "dyn" | "contains" | "startsWith" | "endsWith" => &[],
        _ => return None,
    })
}
