//! Describes why an expression selects no device: it is invalid, or a device cannot be converted for it, in the scheduler's words.

use admit_cel::{CompileError, EvalError, ProgramError};
use thiserror::Error;

/// Why a text is not a valid selector.
///
/// ```
/// use admit_policy::{DeviceFeatures, Selector};
///
/// let error = Selector::compile("-5", DeviceFeatures::default()).expect_err("a number");
/// assert_eq!(error.to_string(), "must evaluate to bool or the unknown type, not int");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SelectorError {
    #[error("compilation failed: {0}")]
    Compile(CompileError),
    /// The type that it has.
    #[error("must evaluate to bool or the unknown type, not {0}")]
    NoTruth(String),
    #[error("program instantiation failed: {0}")]
    Program(ProgramError),
}

/// Why it is unknown whether a selector selects a device.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DeviceError {
    /// Expressions cannot see an attribute.
    #[error("attribute {name}: {error}")]
    Attribute { name: String, error: MemberError },
    /// Expressions cannot see a capacity.
    #[error("capacity {name}: {error}")]
    Capacity { name: String, error: MemberError },
    #[error("{0}")]
    Eval(#[from] EvalError),
    /// The result is not a boolean: its type, and the conversion error of Go.
    #[error("CEL result of type {found} could not be converted to bool: {why}")]
    NoTruth { found: String, why: String },
}

/// Why part of a device cannot be converted for expressions.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MemberError {
    #[error("{0}")]
    Quantity(EvalError),
    #[error("parse semantic version: {0}")]
    Version(EvalError),
    #[error("unsupported attribute value")]
    Unsupported,
}

/// A selector that failed on a device; the scheduler stops then.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{owner}selector #{index}: CEL runtime error: {error}")]
pub struct SelectionError {
    /// The owner of the selector, with `: `; empty for one outside of documents.
    pub owner: String,
    pub index: usize,
    pub error: DeviceError,
}
