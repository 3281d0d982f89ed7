//! Format strings: literal text and clauses. The checker's validator of literal format strings reads them with this too.

use admit_apimachinery::go::integer::atoi;

/// How a value is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clause {
    Text,
    Decimal,
    /// Digits after the point; none where the format string does not say.
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

impl Clause {
    /// What is said of a value whose type the clause does not take.
    pub(crate) fn unsuited(self, type_name: &str) -> String {
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
        format!("{rule}, was given {type_name}")
    }
}

/// The parts of a format string for `arguments` values; after an error there are no more.
pub(crate) fn pieces(template: &str, arguments: usize) -> impl Iterator<Item = Result<Piece<'_>, String>> {
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

type Next<'t> = (Result<Piece<'t>, String>, &'t str);

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
        return Some((Err(format!("index {index} out of range")), ""));
    }
    if after.is_empty() {
        return Some((Err("unexpected end of string".to_owned()), ""));
    }
    Some(match parse_clause(after) {
        Ok((clause, rest)) => (Ok(Piece::Clause { index, clause }), rest),
        Err(cause) => (Err(format!("could not parse formatting clause: {cause}")), ""),
    })
}

fn parse_clause(text: &str) -> Result<(Clause, &str), String> {
    let (precision, rest) =
        parse_precision(text).map_err(|cause| format!("error while parsing precision: {cause}"))?;
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
            return Err(format!("unrecognized formatting clause \"{byte}\""));
        }
    };
    Ok((clause, chars.as_str()))
}

fn parse_precision(text: &str) -> Result<(Option<usize>, &str), String> {
    let Some(after) = text.strip_prefix('.') else { return Ok((None, text)) };
    let end = after.find(|c: char| !c.is_ascii_digit());
    let (digits, rest) = end
        .and_then(|end| after.split_at_checked(end))
        .ok_or_else(|| "could not find end of precision specifier".to_owned())?;
    let precision =
        atoi(digits).map_err(|cause| format!("error while converting precision to integer: {cause}"))?;
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
            assert_eq!(pieces(template, arguments).last(), Some(Err(text.to_owned())), "{template}");
        }
    }
}
