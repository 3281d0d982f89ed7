//! Defines the functions that parse a string to a number: quantities, timestamps, durations. The engine parses constants; for a given
//! result, this lists the strings that parse to it.

use std::sync::LazyLock;

use admit_cel::{
    Bindings, DeclKind, DeclType, Env, Evaluation, Mode, Node, Opaque, Program, Timestamp, Type, Value,
    Version,
};

/// Nanoseconds per second, and the scale of quantities.
pub(super) const BILLION: i64 = 1_000_000_000;
const DAY: i128 = 86_400 * BILLION as i128;

/// A function that parses a string to a number.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Reader {
    /// `quantity`, in billionths.
    Quantity,
    /// `timestamp`, in nanoseconds since 1970.
    Instant,
    /// `duration`, in nanoseconds.
    Span,
    /// Fields of the formats `date-time`, `date` and `duration`.
    DateTimeField,
    DateField,
    SpanField,
}

/// The result of parsing a string.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Read {
    pub(super) value: i128,
    /// For a quantity, the result of `asInteger`.
    pub(super) integer: Option<i64>,
}

/// The string is valid, but its value is too large to model.
#[derive(Clone, Copy, Debug)]
pub(super) struct TooLarge;

/// Compiled CEL programs of the functions; fields need none.
struct Programs {
    quantity: Option<Program>,
    instant: Option<Program>,
    span: Option<Program>,
}

static PROGRAMS: LazyLock<Programs> = LazyLock::new(|| {
    let env = Env::kubernetes(Version(1, 36), Mode::Stored).with_variable("t", Type::String);
    let of = |text: &str| env.program(&env.compile(text).ok()?).ok();
    Programs { quantity: of("quantity(t)"), instant: of("timestamp(t)"), span: of("duration(t)") }
});

static DATE_TIME: DeclType = DeclType::unbounded(DeclKind::Scalar(Type::Timestamp));
static DATE: DeclType = DeclType::unbounded(DeclKind::Date);
static SPAN: DeclType = DeclType::unbounded(DeclKind::Scalar(Type::Duration));

impl Reader {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Quantity => "the value of `quantity` of a string",
            Self::Instant => "the value of `timestamp` of a string",
            Self::Span => "the value of `duration` of a string",
            Self::DateTimeField => "the string form of a date-time",
            Self::DateField => "the string form of a date",
            Self::SpanField => "the string form of a duration",
        }
    }

    /// Parses a string with the engine; `None` if that is an error.
    pub(super) fn read(self, text: &str) -> Result<Option<Read>, TooLarge> {
        let arena = bumpalo::Bump::new();
        let field = |decl: &'static DeclType| Value::from_node(&arena, Node::String(text), Some(decl)).ok();
        let call = |program: &'static Option<Program>| {
            let program = program.as_ref()?;
            let mut bindings = Bindings::new(program);
            bindings.set("t", Value::String(text));
            program.eval(&bindings, &mut Evaluation::new(&arena)).ok()
        };
        let value = match self {
            Self::Quantity => call(&PROGRAMS.quantity),
            Self::Instant => call(&PROGRAMS.instant),
            Self::Span => call(&PROGRAMS.span),
            Self::DateTimeField => field(&DATE_TIME),
            Self::DateField => field(&DATE),
            Self::SpanField => field(&SPAN),
        };
        Ok(match value {
            Some(Value::Opaque(Opaque::Quantity(quantity))) => {
                let value = quantity.nanos().ok_or(TooLarge)?;
                Some(Read { value, integer: quantity.as_integer() })
            }
            Some(Value::Timestamp(Timestamp { seconds, nanos, .. })) => {
                let value = i128::from(seconds).saturating_mul(i128::from(BILLION));
                Some(Read { value: value.saturating_add(i128::from(nanos)), integer: None })
            }
            Some(Value::Duration(span)) => Some(Read { value: i128::from(span.0), integer: None }),
            _ => None,
        })
    }

    /// Returns strings of several forms that are invalid, and a few valid ones for expressions that test the form first.
    pub(super) const fn unreadable(self) -> &'static [&'static str] {
        match self {
            // This one satisfies the format and still cannot be parsed.
            Self::DateTimeField => &["2000-01-01T00:00:00x1z"],
            // The pattern that generators write allows an exponent with a fraction.
            Self::Quantity => &["x", "", "1e1.5", "1E+1.5", "1.1.1", "a1"],
            Self::Instant => &["x", "", "2000-13-01T00:00:00Z", "2000-01-01"],
            Self::Span => &[
                "x",
                "",
                "1",
                "1x",
                "1S",
                "99999999999999s",
                "9999999999999h",
                "99999s",
                "99999h",
                "0s",
                "1ms",
            ],
            Self::DateField | Self::SpanField => &[],
        }
    }

    /// Returns strings of several forms that parse to this value.
    pub(super) fn spellings(self, value: i128, is_integer: bool) -> Vec<String> {
        let mut texts = match self {
            Self::Quantity => quantities(value, is_integer),
            Self::Span | Self::SpanField => spans(value),
            Self::Instant | Self::DateTimeField => vec![instant(value)],
            Self::DateField => vec![instant(value).chars().take(10).collect()],
        };
        texts.retain(|text| match self.read(text) {
            Ok(Some(read)) => {
                read.value == value && (self != Self::Quantity || read.integer.is_some() == is_integer)
            }
            _ => false,
        });
        texts
    }

    /// Returns the least and the greatest result; `None` for quantities.
    pub(super) fn bounds(self) -> Option<(i128, i128)> {
        let seconds = |seconds: i64| i128::from(seconds).saturating_mul(i128::from(BILLION));
        // `timestamp`: from 0001-01-01T00:00:00Z to the second before 10000-01-01T00:00:00Z. The field formats start at year 0, `date`
        // ends at the last midnight, and offsets may add up to two days.
        const INSTANTS: (i64, i64) = (-62_135_596_800, 253_402_300_799);
        const DATES: (i64, i64) = (-62_167_219_200, 253_402_214_400);
        const DATE_TIMES: (i64, i64) = (-62_167_392_000, 253_402_473_599);
        let last = i128::from(BILLION).saturating_sub(1);
        match self {
            Self::Quantity => None,
            Self::Instant => Some((seconds(INSTANTS.0), seconds(INSTANTS.1).saturating_add(last))),
            Self::Span | Self::SpanField => Some((i128::from(i64::MIN), i128::from(i64::MAX))),
            Self::DateField => Some((seconds(DATES.0), seconds(DATES.1))),
            Self::DateTimeField => Some((seconds(DATE_TIMES.0), seconds(DATE_TIMES.1).saturating_add(last))),
        }
    }

    /// Reports whether every string valid for the field's format can be parsed.
    pub(super) const fn always_reads(self) -> bool {
        matches!(self, Self::DateField | Self::SpanField)
    }

    /// Reports whether it parses durations.
    pub(super) const fn is_span(self) -> bool {
        matches!(self, Self::Span | Self::SpanField)
    }

    /// The unit of which every result is a multiple.
    pub(super) const fn grain(self) -> Option<i128> {
        match self {
            Self::DateField => Some(DAY),
            _ => None,
        }
    }
}

fn quantities(value: i128, is_integer: bool) -> Vec<String> {
    let (sign, magnitude) = (if value < 0 { "-" } else { "" }, value.unsigned_abs());
    let billion = u128::from(BILLION.unsigned_abs());
    let (whole, rest) = (magnitude.div_euclid(billion), magnitude.rem_euclid(billion));
    let digits = format!("{rest:09}");
    let mut texts = match (rest, is_integer) {
        (0, true) => vec![format!("{sign}{whole}")],
        // With a fraction, the integer does not convert with `asInteger`.
        (0, false) => vec![format!("{sign}{whole}.0")],
        _ => vec![format!("{sign}{whole}.{}", digits.trim_end_matches('0'))],
    };
    let units =
        [("n", 1), ("u", 1_000), ("m", 1_000_000), ("k", 1_000 * billion), ("M", 1_000_000 * billion)];
    let binary = [("Ki", billion << 10), ("Mi", billion << 20), ("Gi", billion << 30)];
    for (unit, size) in units.into_iter().chain([("G", billion.saturating_mul(billion))]).chain(binary) {
        if magnitude.checked_rem(size) == Some(0) {
            texts.push(format!("{sign}{}{unit}", magnitude.checked_div(size).unwrap_or(0)));
        }
    }
    texts
}

/// Writes a duration in hours, minutes, seconds and fractions, combined and each unit alone.
fn spans(value: i128) -> Vec<String> {
    const UNITS: [(u128, &str); 6] = [
        (3_600_000_000_000, "h"),
        (60_000_000_000, "m"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
        (1, "ns"),
    ];
    let sign = if value < 0 { "-" } else { "" };
    let (mut parts, mut alone) = (String::new(), Vec::new());
    let mut rest = value.unsigned_abs();
    for (size, unit) in UNITS {
        let count = rest.checked_div(size).unwrap_or(0);
        rest = rest.checked_rem(size).unwrap_or(0);
        if count > 0 {
            parts.push_str(&format!("{count}{unit}"));
        }
        if value.unsigned_abs().checked_rem(size) == Some(0) {
            alone.push(format!("{sign}{}{unit}", value.unsigned_abs().checked_div(size).unwrap_or(0)));
        }
    }
    let together = if parts.is_empty() { "0s".to_owned() } else { format!("{sign}{parts}") };
    std::iter::once(together).chain(alone).collect()
}

fn instant(value: i128) -> String {
    let billion = i128::from(BILLION);
    let seconds = i64::try_from(value.div_euclid(billion)).unwrap_or(0);
    let nanos = u32::try_from(value.rem_euclid(billion)).unwrap_or(0);
    Timestamp { seconds, nanos, offset: 0 }.to_string()
}
