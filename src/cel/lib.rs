//! Kubernetes CEL: parse, check, plan and evaluate expressions with kube-apiserver's answers, texts and costs.
//!
//! ```text
//! text ──syntax──► Ast ──check──► CheckedAst ──plan──► Program ──eval──► Value | EvalError
//!                   spans          types, references    resolved slots    borrows the document, pays the meter
//! ```
//!
//! | module | decides | may use |
//! |---|---|---|
//! | `source`, `limits`, `names`, [`document`] | positions, bounds, identifiers, JSON text to an arena of nodes | std |
//! | `diagnostic` | errors as data | source |
//! | [`syntax`] | text to an arena of expressions with spans, macros expanded | source, diagnostic, limits, names |
//! | `types` | the types of the checker and of declared documents | names |
//! | `value` | values that borrow a decoded document | types, document |
//! | `cost` | size algebra | syntax, types |
//! | `library` | one row per overload: signature, implementation, costs, version, doc line | types, value, limits, cost (size algebra) |
//! | `check` | the type of every expression, the overloads a call may reach | syntax, types, library, diagnostic, source, limits |
//! | `estimate` | the static estimate | check (its output), cost, library, syntax, types |
//! | `plan` | names, fields and overloads resolved once; constants folded | check (its output), syntax, types, value, library, source, limits, document |
//! | `eval` | the value, within limits | plan, value, limits, types, library, source, document |
//! | `env` | what expressions may name; the phases up to the program, one after another | check, cost, diagnostic, estimate, library, plan, source, syntax, types |
//!
//! ```
//! use admit_cel::{Bindings, Env, Evaluation, Mode, Node, ReadLimits, Type, Value, Version, document};
//!
//! let env = Env::kubernetes(Version(1, 36), Mode::New).with_variable("self", Type::Dyn);
//! let checked = env.compile("self.replicas <= self.max && self.tags.all(t, t.startsWith('v'))")?;
//! let program = env.program(&checked)?;
//!
//! let arena = bumpalo::Bump::new();
//! let text = br#"{"replicas": 2, "max": 3, "tags": ["v1", "v2"]}"#;
//! let node: Node = document::parse(&arena, text, &ReadLimits::default())?;
//! let mut bindings = Bindings::new(&program);
//! bindings.set("self", Value::untyped(node));
//!
//! let mut cx = Evaluation::new(&arena);
//! assert!(matches!(program.eval(&bindings, &mut cx)?, Value::Bool(true)));
//! assert_eq!(cx.cost(), 18);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![deny(missing_docs)]
#![cfg_attr(not(test), deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::string_slice))]

mod check;
mod cost;
mod diagnostic;
pub mod document;
mod env;
mod estimate;
mod eval;
mod library;
mod limits;
mod names;
mod plan;
mod source;
pub mod syntax;
mod types;
mod value;

// The main path: text to program, document to values, both to a result.
pub use diagnostic::{CompileError, Diagnostic};
pub use document::{Node, ReadError, ReadLimits};
pub use env::{Checked, Env, Inferred, Mode, SizeHints, macro_offers};
pub use eval::{Bindings, Evaluation, Variables};
pub use library::Version;
pub use plan::{Program, ProgramError, Slot};
pub use types::{AbstractType, DeclField, DeclKind, DeclType, ListType, Type, parse_type};
pub use value::{
    Constant, ConstantEntries, Duration, EvalError, HostMap, Indexed, Layout, List, Made, Map, NamedFormat,
    Opaque, Quantity, Semver, Timestamp, Url, Value, authorization, runtime_type,
};

// Functions, and the costs of calls.
pub use cost::{Bounds, CallEstimate, Operand};
pub use library::{
    BuildChange, Context, Cost, Estimate, Extra, Implementation, Overload, SignatureError, build_changes,
    overloads,
};

// What was evaluated, with spans.
pub use eval::{Coverage, Observation, Observer, Trace, TraceEntry};
pub use plan::{Branch, BranchKind};
pub use source::{Position, Source, Span};

// What Kubernetes needs beside: names of fields, patterns, limits.
pub use library::regex::{GoRegex, PatternPart};
pub use limits::PER_CALL_LIMIT;
pub use names::{escape_property, is_identifier, unescape_property};
pub use plan::{KnownPattern, PatternError, PatternSum};

/// The examples of the readme.
#[cfg(doctest)]
#[doc = include_str!("README.md")]
struct Readme;
