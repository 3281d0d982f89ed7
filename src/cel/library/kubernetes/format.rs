//! Implements named string formats: `format.dns1123Label().validate(text)` returns the errors in a string, if any.

use admit_apimachinery::go::{Layout, layout, url};
use admit_apimachinery::{labels, names};

use crate::cost::{CallEstimate, Operand, REGEX_LENGTH, STRING_TRAVERSAL, scale};
use crate::library::{Context, Overload, Version, cost, mismatch, regex};
use crate::value::{EvalError, List, NamedFormat, Opaque, Value};

/// The formats, by the names of their functions.
static FORMATS: [(&str, NamedFormat); 13] = [
    ("dns1123Label", NamedFormat { name: "DNS1123Label", check: names::dns1123_label, regex_length: 30 }),
    (
        "dns1123Subdomain",
        NamedFormat { name: "DNS1123Subdomain", check: names::dns1123_subdomain, regex_length: 60 },
    ),
    ("dns1035Label", NamedFormat { name: "DNS1035Label", check: names::dns1035_label, regex_length: 30 }),
    ("qualifiedName", NamedFormat { name: "QualifiedName", check: labels::key, regex_length: 60 }),
    (
        "dns1123LabelPrefix",
        NamedFormat {
            name: "DNS1123LabelPrefix",
            check: |text| names::dns1123_label(&names::mask_trailing_dash(text)),
            regex_length: 30,
        },
    ),
    (
        "dns1123SubdomainPrefix",
        NamedFormat {
            name: "DNS1123SubdomainPrefix",
            check: |text| names::dns1123_subdomain(&names::mask_trailing_dash(text)),
            regex_length: 60,
        },
    ),
    (
        "dns1035LabelPrefix",
        NamedFormat {
            name: "DNS1035LabelPrefix",
            check: |text| names::dns1035_label(&names::mask_trailing_dash(text)),
            regex_length: 30,
        },
    ),
    ("labelValue", NamedFormat { name: "LabelValue", check: labels::value, regex_length: 40 }),
    (
        "uri",
        NamedFormat {
            name: "URI",
            check: |text| url::check_request(text).err().iter().map(ToString::to_string).collect(),
            regex_length: 1103,
        },
    ),
    (
        "uuid",
        NamedFormat {
            name: "uuid",
            check: |text| verdict(is_uuid(text), "does not match the UUID format"),
            regex_length: 70,
        },
    ),
    (
        "byte",
        NamedFormat {
            name: "byte",
            check: |text| verdict(is_base64(text), "invalid base64"),
            regex_length: 84,
        },
    ),
    (
        "date",
        NamedFormat { name: "date", check: |text| verdict(is_date(text), "invalid date"), regex_length: 71 },
    ),
    (
        "datetime",
        NamedFormat {
            name: "datetime",
            check: |text| verdict(is_date_time(text), "invalid datetime"),
            regex_length: 71,
        },
    ),
];

const SINCE: Version = Version(1, 31);

/// The row of the function that yields a format.
macro_rules! constant {
    ($name:literal) => {
        Overload::new(
            concat!("format.", $name),
            concat!("format.", $name, "() -> kubernetes.NamedFormat"),
            |_, _| find($name).map_or_else(mismatch, Ok),
            concat!("The format `", $name, "`."),
        )
        .since(SINCE)
    };
}

pub(super) const ROWS: &[Overload] = &[
    Overload::new(
        "format-validate",
        "kubernetes.NamedFormat.validate(string) -> optional_type(list(string))",
        validate,
        "What is wrong with a string; none if it is of the format.",
    )
    .costs_by_name(estimate_validate, charge_validate)
    .since(SINCE),
    Overload::new(
        "format-named",
        "format.named(string) -> optional_type(kubernetes.NamedFormat)",
        |context, args| match args {
            [Value::String(name)] => {
                Ok(Value::Optional(find(name).map(|format| context.keep(format)).transpose()?))
            }
            _ => mismatch(),
        },
        "The format of a name, if there is one.",
    )
    .since(SINCE),
    constant!("dns1123Label"),
    constant!("dns1123Subdomain"),
    constant!("dns1035Label"),
    constant!("qualifiedName"),
    constant!("dns1123LabelPrefix"),
    constant!("dns1123SubdomainPrefix"),
    constant!("dns1035LabelPrefix"),
    constant!("labelValue"),
    constant!("uri"),
    constant!("uuid"),
    constant!("byte"),
    constant!("date"),
    constant!("datetime"),
];

fn find<'a>(name: &str) -> Option<Value<'a>> {
    let (_, format) = FORMATS.iter().find(|(function, _)| *function == name)?;
    Some(Value::Opaque(Opaque::Format(format)))
}

fn validate<'a>(context: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let [Value::Opaque(Opaque::Format(format)), Value::String(text)] = args else { return mismatch() };
    let problems = (format.check)(text);
    if problems.is_empty() {
        return Ok(Value::Optional(None));
    }
    let problems: Vec<_> = problems.iter().map(|problem| context.text(problem)).collect::<Result<_, _>>()?;
    let problems = context.slice(problems.len(), problems.into_iter())?;
    context.keep(Value::List(List::Values(problems))).map(|list| Value::Optional(Some(list)))
}

/// Charges as for matching a regular expression of the format's length.
fn charge_validate(args: &[Value<'_>], _: &Value<'_>) -> u64 {
    let Some(Value::Opaque(Opaque::Format(format))) = args.first() else { return 1 };
    let text = scale(cost::size_of(args, 1).saturating_add(1), STRING_TRAVERSAL);
    text.saturating_mul(scale(format.regex_length, REGEX_LENGTH))
}

/// The longest regular expression that the estimate reckons with.
const LONGEST_REGEX: f64 = 128.0;

fn estimate_validate(args: &[Operand<'_>]) -> CallEstimate {
    let text = cost::bounds_of(args, 1).scaled(STRING_TRAVERSAL);
    CallEstimate::of_cost(text.scaled(LONGEST_REGEX * REGEX_LENGTH))
}

fn verdict(is_valid: bool, problem: &str) -> Vec<String> {
    if is_valid { Vec::new() } else { vec![problem.to_owned()] }
}

fn is_uuid(text: &str) -> bool {
    matches(r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$", text)
}

/// Whether it is base64 in the standard alphabet with padding; an empty string is not.
fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    let padding = text.len().saturating_sub(digits.len());
    !text.is_empty()
        && text.len().is_multiple_of(4)
        && padding <= 2
        && digits.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/'))
}

fn is_date(text: &str) -> bool {
    layout::parse(Layout::Date, text).is_ok()
}

/// A date, a time of day and an offset; the seconds may have a fraction after any character.
fn is_date_time(text: &str) -> bool {
    let text = text.to_lowercase();
    let mut parts = text.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    is_date(date)
        && matches(r"^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$", time)
}

/// Whether a string matches one of our patterns.
fn matches(pattern: &str, text: &str) -> bool {
    regex::compile(pattern).is_ok_and(|regex| regex.is_match(text))
}
