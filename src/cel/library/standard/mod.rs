//! Implements the standard library: operators, conversions, strings, times and optional values.

mod arithmetic;
mod containers;
mod conversion;
mod logic;
mod ordering;
mod strings;
mod time;

use super::Overload;

pub(super) const TABLES: &[&[Overload]] = &[
    logic::ROWS,
    arithmetic::ROWS,
    ordering::LESS,
    ordering::LESS_EQUALS,
    ordering::GREATER,
    ordering::GREATER_EQUALS,
    containers::ROWS,
    conversion::ROWS,
    strings::ROWS,
    time::ROWS,
];
