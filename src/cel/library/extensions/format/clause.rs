//! Parses format strings into literal text and clauses. The checker's validator of literal format strings uses this, too.

use std::fmt;

use admit_apimachinery::go::integer::{NumberError, atoi};

/// How a value is formatted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clause {
    Text,
    Decimal,
    /// Digits after the point; None where the format string does not say.
    Fixed(Option<usize>),
    /// The number before `e`, which the reference takes for a width.
    Scientific(Option<usize>),
    Binary,
    Octal,
    Hexadecimal {
        upper: bool,
    },
}

/// A part of a format string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece<'t> {
    Text(&'t str),
    /// The clause for the argument at a position.
    Clause {
        index: usize,
        clause: Clause,
    },
}

/// Why a format string is invalid, in cel-go's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TemplateError {
    /// There is no value at this position.
    OutOfRange(usize),
    /// A percent sign at the end.
    Ends,
    /// No clause begins with this character.
    UnknownClause(char),
    /// No clause follows the digits after a point.
    PrecisionEnds,
    /// The digits after a point are no number, or too large a one.
    Precision(NumberError),
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const CLAUSE: &str = "could not parse formatting clause: ";
        const PRECISION: &str = "error while parsing precision: ";
        match self {
            Self::OutOfRange(index) => write!(f, "index {index} out of range"),
            Self::Ends => f.write_str("unexpected end of string"),
            Self::UnknownClause(byte) => write!(f, "{CLAUSE}unrecognized formatting clause \"{byte}\""),
            Self::PrecisionEnds => write!(f, "{CLAUSE}{PRECISION}could not find end of precision specifier"),
            Self::Precision(cause) => {
                write!(f, "{CLAUSE}{PRECISION}error while converting precision to integer: {cause}")
            }
        }
    }
}

/// Why a value cannot be formatted, in cel-go's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ValueError {
    /// The clause does not take values of this type.
    Unsuited { rule: &'static str, type_name: String },
    /// Values of this type cannot be formatted within a list or a map.
    NoText(String),
    /// Keys of this type cannot be formatted.
    NoKeyText(String),
    /// The bytes are not valid UTF-8.
    NotUtf8,
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsuited { rule, type_name } => write!(f, "{rule}, was given {type_name}"),
            Self::NoText(type_name) => write!(f, "no formatting function for {type_name}"),
            Self::NoKeyText(type_name) => write!(f, "no formatting function for map key of type {type_name}"),
            Self::NotUtf8 => f.write_str(
                "could not convert argument \"invalid UTF-8 in bytes, cannot convert to string\" to string",
            ),
        }
    }
}

impl Clause {
    /// The error for a value whose type the clause does not accept.
    pub(crate) fn unsuited(self, type_name: &str) -> ValueError {
        let rule = match self {
            Self::Text => {
                "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, \
                 durations, and timestamps"
            }
            Self::Decimal => "decimal clause can only be used on integers",
            Self::Fixed(_) => "fixed-point clause can only be used on doubles",
            Self::Scientific(_) => "scientific clause can only be used on doubles",
            Self::Binary => "only integers and bools can be formatted as binary",
            Self::Octal => "octal clause can only be used on integers",
            Self::Hexadecimal { .. } => "only integers, byte buffers, and strings can be formatted as hex",
        };
        ValueError::Unsuited { rule, type_name: type_name.to_owned() }
    }
}

/// The parts of a format string for `arguments` values; after an error there are no more.
pub(crate) fn pieces(
    template: &str,
    arguments: usize,
) -> impl Iterator<Item = Result<Piece<'_>, TemplateError>> {
    let mut rest = template;
    let mut index = 0_usize;
    std::iter::from_fn(move || {
        let (piece, after) = next_piece(rest, index, arguments)?;
        if matches!(piece, Ok(Piece::Clause { .. })) {
            index = index.saturating_add(1);
        }
        rest = after;
        Some(piece)
    })
}

type Next<'t> = (Result<Piece<'t>, TemplateError>, &'t str);

fn next_piece(text: &str, index: usize, arguments: usize) -> Option<Next<'_>> {
    let Some(after) = text.strip_prefix('%') else {
        let end = text.find('%').unwrap_or(text.len());
        let (literal, rest) = text.split_at_checked(end)?;
        return (!literal.is_empty()).then_some((Ok(Piece::Text(literal)), rest));
    };
    if let Some(rest) = after.strip_prefix('%') {
        return Some((Ok(Piece::Text("%")), rest));
    }
    if index >= arguments {
        return Some((Err(TemplateError::OutOfRange(index)), ""));
    }
    if after.is_empty() {
        return Some((Err(TemplateError::Ends), ""));
    }
    Some(match parse_clause(after) {
        Ok((clause, rest)) => (Ok(Piece::Clause { index, clause }), rest),
        Err(error) => (Err(error), ""),
    })
}

fn parse_clause(text: &str) -> Result<(Clause, &str), TemplateError> {
    let (precision, rest) = parse_precision(text)?;
    let mut chars = rest.chars();
    let clause = match chars.next() {
        Some('s') => Clause::Text,
        Some('d') => Clause::Decimal,
        Some('f') => Clause::Fixed(precision),
        Some('e') => Clause::Scientific(precision),
        Some('b') => Clause::Binary,
        Some('o') => Clause::Octal,
        Some('x') => Clause::Hexadecimal { upper: false },
        Some('X') => Clause::Hexadecimal { upper: true },
        _ => {
            // The reference looks at one byte and shows it as a character.
            let byte = rest.bytes().next().map_or(' ', char::from);
            return Err(TemplateError::UnknownClause(byte));
        }
    };
    Ok((clause, chars.as_str()))
}

fn parse_precision(text: &str) -> Result<(Option<usize>, &str), TemplateError> {
    let Some(after) = text.strip_prefix('.') else { return Ok((None, text)) };
    let end = after.find(|c: char| !c.is_ascii_digit());
    let (digits, rest) =
        end.and_then(|end| after.split_at_checked(end)).ok_or(TemplateError::PrecisionEnds)?;
    let precision = atoi(digits).map_err(TemplateError::Precision)?;
    Ok((Some(usize::try_from(precision).unwrap_or(usize::MAX)), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clauses_and_literals_alternate() {
        let pieces: Result<Vec<_>, _> = pieces("a%s%%é%.2f", 2).collect();
        let clause = |index, clause| Piece::Clause { index, clause };
        let expected = [
            Piece::Text("a"),
            clause(0, Clause::Text),
            Piece::Text("%"),
            Piece::Text("é"),
            clause(1, Clause::Fixed(Some(2))),
        ];
        assert_eq!(pieces.unwrap(), expected);
    }

    #[test]
    fn errors_in_the_reference_s_words() {
        for (template, arguments, text) in [
            ("%s", 0, "index 0 out of range"),
            ("%", 1, "unexpected end of string"),
            ("%z", 1, "could not parse formatting clause: unrecognized formatting clause \"z\""),
            ("%é", 1, "could not parse formatting clause: unrecognized formatting clause \"Ã\""),
            (
                "%.12",
                1,
                "could not parse formatting clause: error while parsing precision: could not find end of precision specifier",
            ),
            (
                "%.f",
                1,
                "could not parse formatting clause: error while parsing precision: error while converting precision \
                 to integer: strconv.Atoi: parsing \"\": invalid syntax",
            ),
        ] {
            let told = pieces(template, arguments).last().and_then(|piece| piece.err());
            assert_eq!(told.map(|error| error.to_string()).as_deref(), Some(text), "{template}");
        }
    }
}
