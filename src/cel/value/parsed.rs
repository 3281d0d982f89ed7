//! Represents values parsed from strings: URLs, versions, and named string formats.

use std::cmp::Ordering;

use super::Map;

/// A URL in its parts.
#[derive(Clone, Copy, Debug)]
pub struct Url<'a> {
    /// The whole, as Go writes it.
    pub text: &'a str,
    pub(crate) scheme: &'a str,
    pub(crate) host: &'a str,
    pub(crate) hostname: &'a str,
    pub(crate) port: &'a str,
    pub(crate) escaped_path: &'a str,
    pub(crate) query: Map<'a>,
}

impl PartialEq for Url<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// A semantic version.
///
/// ```
/// use admit_cel::{Bindings, Env, Evaluation, Mode, Opaque, Value, Version};
///
/// let env = Env::kubernetes(Version(1, 36), Mode::New);
/// let program = env.program(&env.compile("[semver('1.2.3'), semver('1.10.0')]")?)?;
/// let arena = bumpalo::Bump::new();
/// let Value::List(list) = program.eval(&Bindings::new(&program), &mut Evaluation::new(&arena))? else { panic!() };
/// if let [Value::Opaque(Opaque::Semver(one)), Value::Opaque(Opaque::Semver(other))] = list.to_slice(&arena)? {
///     assert!(one.compare(other).is_lt());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Semver<'a> {
    /// The whole, in canonical form.
    pub text: &'a str,
    pub(crate) major: u64,
    pub(crate) minor: u64,
    pub(crate) patch: u64,
    /// Identifiers with dots between them; none for a release.
    pub(crate) prerelease: Option<&'a str>,
}

impl PartialEq for Semver<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.compare(other).is_eq()
    }
}

impl Semver<'_> {
    /// The order of the specification; build metadata does not count.
    #[must_use]
    pub fn compare(&self, other: &Semver<'_>) -> Ordering {
        let numbers = |v: &Semver<'_>| (v.major, v.minor, v.patch);
        numbers(self).cmp(&numbers(other)).then_with(|| match (self.prerelease, other.prerelease) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Greater,
            (Some(_), None) => Ordering::Less,
            (Some(x), Some(y)) => x.split('.').map(identifier).cmp(y.split('.').map(identifier)),
        })
    }
}

/// Numbers sort before strings; strings by their bytes.
fn identifier(text: &str) -> (bool, u64, &str) {
    let is_number = text.bytes().all(|b| b.is_ascii_digit());
    if is_number { (false, text.parse().unwrap_or(u64::MAX), "") } else { (true, 0, text) }
}

/// A named string format.
#[derive(Clone, Copy, Debug)]
pub struct NamedFormat {
    /// The name of its values: `DNS1123Label`.
    pub name: &'static str,
    /// Returns the errors in a string.
    pub(crate) check: fn(&str) -> Vec<String>,
    /// The length of the regular expression that a check is charged for.
    pub(crate) regex_length: u64,
}

impl PartialEq for NamedFormat {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}
