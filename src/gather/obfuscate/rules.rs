//! Parses the file of obfuscation rules for must-gathers, in the format of the tool `must-gather-clean`: what is replaced, what is omitted.
//!
//! An unknown rule is an error: otherwise users would assume that it is followed.

use std::collections::BTreeMap;

use admit_apimachinery::yaml::{self, Duplicate, Tree};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

/// Why a file of rules is invalid.
#[derive(Clone, Debug, thiserror::Error, PartialEq)]
pub enum RulesError {
    #[error("the rules are not YAML as this program knows it: {0}")]
    Syntax(#[from] FileError),
    /// The list in the file, and the index of the invalid rule.
    #[error("config.{list}[{at}]: {why}")]
    Rule { list: &'static str, at: usize, why: RuleError },
}

/// Why a text is not a file of rules.
#[derive(Clone, Debug, thiserror::Error, PartialEq)]
pub enum FileError {
    #[error(transparent)]
    Yaml(#[from] yaml::YamlError),
    #[error("there has to be one document")]
    Documents,
    #[error("{}:{}: key `{}` is already set in this map", .0.position.line, .0.position.column, .0.key)]
    Duplicate(Duplicate),
    /// A field is missing, unknown or has the wrong type.
    #[error("{0}")]
    Form(String),
}

/// Why a rule is invalid.
#[derive(Clone, Debug, thiserror::Error, PartialEq)]
pub enum RuleError {
    #[error("{field} `{found}` is not known: {known}")]
    Unknown { field: &'static str, found: String, known: &'static str },
    #[error("a Regex has to say which, as `regex`")]
    MissingRegex,
    #[error("it names no text that it replaces, or an empty one")]
    MissingText,
    #[error("it has to name a kind, as kubernetesResource.kind")]
    MissingKind,
    #[error("it has to say which files, as pattern")]
    MissingPattern,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ruleset {
    /// Replacements, applied in this order.
    pub replace: Vec<Replace>,
    pub omit: Vec<Omit>,
}

/// What is replaced, and where.
#[derive(Clone, Debug, PartialEq)]
pub struct Replace {
    pub what: What,
    /// Whether equal matches have equal replacements, so that a reader can follow them; otherwise they become `x`.
    pub consistent: bool,
    pub in_paths: bool,
    pub in_contents: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum What {
    Ip,
    Mac,
    /// These domains; those of the cluster if there are none.
    Domains(Vec<String>),
    /// Strings with their replacements.
    Texts(BTreeMap<String, String>),
    Regex(String),
}

/// What is omitted.
#[derive(Clone, Debug, PartialEq)]
pub enum Omit {
    /// Files that contain objects of a kind, in one of these namespaces if there are any.
    Kubernetes {
        kind: String,
        api_version: Option<String>,
        namespaces: Vec<String>,
    },
    /// Files whose relative path matches a glob.
    File(String),
    Links,
}

impl Ruleset {
    /// Returns the default rules: addresses and the cluster's domains become labels, Secrets and ConfigMaps are omitted.
    #[must_use]
    pub fn usual() -> Self {
        let replace = |what| Replace { what, consistent: true, in_paths: true, in_contents: true };
        let omit = |kind: &str| Omit::Kubernetes {
            kind: kind.to_owned(),
            api_version: None,
            namespaces: Vec::new(),
        };
        Self {
            replace: vec![replace(What::Mac), replace(What::Ip), replace(What::Domains(Vec::new()))],
            omit: vec![omit("Secret"), omit("ConfigMap")],
        }
    }

    /// Parses a file of rules.
    ///
    /// # Errors
    /// [`RulesError`] for a malformed file, and for unknown rules.
    pub fn parse(text: &str) -> Result<Self, RulesError> {
        let Config { obfuscate, omit, _seed: _ } = read(text)?.config;
        Ok(Self {
            replace: each("obfuscate", obfuscate, ReplaceText::read)?,
            omit: each("omit", omit, OmitText::read)?,
        })
    }
}

/// Converts all rules of a list, or returns the first error.
fn each<T, R>(
    list: &'static str,
    rules: Vec<T>,
    read: fn(T) -> Result<R, RuleError>,
) -> Result<Vec<R>, RulesError> {
    let read = |(at, rule)| read(rule).map_err(|why| RulesError::Rule { list, at, why });
    rules.into_iter().enumerate().map(read).collect()
}

fn read(text: &str) -> Result<File, FileError> {
    let mut trees = yaml::parse_values(text)?.into_iter();
    let (Some(Tree { mut value, duplicates, .. }), None) = (trees.next(), trees.next()) else {
        return Err(FileError::Documents);
    };
    if let Some(duplicate) = duplicates.into_iter().next() {
        return Err(FileError::Duplicate(duplicate));
    }
    make_texts(&mut value);
    serde_json::from_value(value).map_err(|error| FileError::Form(error.to_string()))
}

/// Converts scalars in rules, such as `1` and `yes`, to strings, as the tool does.
fn make_texts(value: &mut Value) {
    match value {
        Value::Bool(_) | Value::Number(_) => *value = Value::String(value.to_string()),
        Value::Array(items) => items.iter_mut().for_each(make_texts),
        Value::Object(members) => members.values_mut().for_each(make_texts),
        Value::Null | Value::String(_) => {}
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    config: Config,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    #[serde(default)]
    obfuscate: Vec<ReplaceText>,
    #[serde(default)]
    omit: Vec<OmitText>,
    /// Seeds random names in the tool's replacements; this program has none.
    #[serde(default, rename = "randSeed")]
    _seed: IgnoredAny,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ReplaceText {
    #[serde(rename = "type")]
    type_: String,
    #[serde(default)]
    replacement_type: Option<String>,
    #[serde(default)]
    target: Option<String>,
    #[serde(default)]
    domain_names: Vec<String>,
    #[serde(default)]
    replacement: BTreeMap<String, String>,
    #[serde(default)]
    exact_replacements: Vec<Exact>,
    #[serde(default)]
    regex: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exact {
    original: String,
    replacement: String,
}

impl ReplaceText {
    fn read(self) -> Result<Replace, RuleError> {
        let unknown =
            |field, found: &str, known| RuleError::Unknown { field, found: found.to_owned(), known };
        let consistent = match self.replacement_type.as_deref() {
            None | Some("Static") => false,
            Some("Consistent") => true,
            Some(other) => return Err(unknown("replacementType", other, "Static or Consistent")),
        };
        let (in_paths, in_contents) = match self.target.as_deref() {
            None | Some("FileContents") => (false, true),
            Some("FilePath") => (true, false),
            Some("All") => (true, true),
            Some(other) => return Err(unknown("target", other, "FileContents, FilePath or All")),
        };
        let what = match self.type_.as_str() {
            "IP" => What::Ip,
            "MAC" => What::Mac,
            "Domain" => What::Domains(self.domain_names),
            "Keywords" => What::Texts(self.replacement),
            "Exact" => {
                let exact = self.exact_replacements.into_iter();
                What::Texts(exact.map(|Exact { original, replacement }| (original, replacement)).collect())
            }
            "Regex" if !self.regex.is_empty() => What::Regex(self.regex),
            "Regex" => return Err(RuleError::MissingRegex),
            other => return Err(unknown("type", other, "IP, MAC, Domain, Keywords, Exact or Regex")),
        };
        if let What::Texts(texts) = &what
            && (texts.is_empty() || texts.contains_key(""))
        {
            return Err(RuleError::MissingText);
        }
        Ok(Replace { what, consistent, in_paths, in_contents })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct OmitText {
    #[serde(rename = "type")]
    type_: String,
    #[serde(default)]
    pattern: String,
    #[serde(default)]
    kubernetes_resource: Option<Resource>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Resource {
    kind: String,
    #[serde(default)]
    api_version: Option<String>,
    #[serde(default)]
    namespaces: Vec<String>,
}

impl OmitText {
    fn read(self) -> Result<Omit, RuleError> {
        match (self.type_.as_str(), self.kubernetes_resource) {
            ("Kubernetes", Some(Resource { kind, api_version, namespaces })) if !kind.is_empty() => {
                Ok(Omit::Kubernetes { kind, api_version, namespaces })
            }
            ("Kubernetes", _) => Err(RuleError::MissingKind),
            ("File", _) if !self.pattern.is_empty() => Ok(Omit::File(self.pattern)),
            ("File", _) => Err(RuleError::MissingPattern),
            ("SymbolicLink", _) => Ok(Omit::Links),
            (other, _) => Err(RuleError::Unknown {
                field: "type",
                found: other.to_owned(),
                known: "Kubernetes, File or SymbolicLink",
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_every_type_are_read() {
        let read = Ruleset::parse(
            "config:\n  obfuscate:\n  - {type: IP, replacementType: Consistent, target: All}\n  - {type: MAC}\n  - type: Domain\n    domainNames: [a.test]\n  - {type: Keywords, target: FilePath, replacement: {a: b}}\n  - {type: Exact, exactReplacements: [{original: c, replacement: d}]}\n  - {type: Regex, regex: 'x+'}\n  omit:\n  - {type: Kubernetes, kubernetesResource: {kind: Secret, apiVersion: v1, namespaces: [n]}}\n  - {type: File, pattern: '*/a.log'}\n  - {type: SymbolicLink}\n  randSeed: 1\n",
        )
        .unwrap();
        let whats: Vec<_> = read.replace.iter().map(|rule| (&rule.what, rule.consistent)).collect();
        let texts = |from: &str, to: &str| What::Texts(BTreeMap::from([(from.to_owned(), to.to_owned())]));
        assert_eq!(
            whats,
            [
                (&What::Ip, true),
                (&What::Mac, false),
                (&What::Domains(vec!["a.test".to_owned()]), false),
                (&texts("a", "b"), false),
                (&texts("c", "d"), false),
                (&What::Regex("x+".to_owned()), false),
            ]
        );
        let places: Vec<_> = read.replace.iter().map(|rule| (rule.in_paths, rule.in_contents)).collect();
        assert_eq!(places[..4], [(true, true), (false, true), (false, true), (true, false)]);
        assert_eq!(read.omit.len(), 3);
    }

    #[test]
    fn whatever_rules_say_are_texts() {
        let read =
            Ruleset::parse("config: {obfuscate: [{type: Keywords, replacement: {12: 7, a: yes}}]}").unwrap();
        let texts =
            BTreeMap::from([("12", "7"), ("a", "true")].map(|(from, to)| (from.to_owned(), to.to_owned())));
        assert_eq!(read.replace[0].what, What::Texts(texts));
    }

    #[test]
    fn what_is_not_known_is_refused_by_name() {
        for (text, expected) in [
            (
                "config: {obfuscate: [{type: IP}, {type: AzureResources}]}",
                "config.obfuscate[1]: type `AzureResources`",
            ),
            ("config: {obfuscate: [{type: IP, target: Everything}]}", "target `Everything`"),
            ("config: {obfuscate: [{type: IP, replacementType: Random}]}", "replacementType `Random`"),
            ("config: {obfuscate: [{type: Regex}]}", "has to say which"),
            ("config: {obfuscate: [{type: Keywords}]}", "names no text"),
            ("config: {omit: [{type: Kubernetes}]}", "config.omit[0]: it has to name a kind"),
            ("config: {omit: [{type: Socket}]}", "type `Socket`"),
            ("config: {obfuscate: [{type: IP, tarpet: All}]}", "tarpet"),
            ("obfuscate: []", "obfuscate"),
            ("config: [", "not YAML"),
            ("config: {omit: [{type: File, pattern: a, pattern: b}]}", "1:42: key `pattern` is already set"),
            ("config: {}\n---\nconfig: {}", "one document"),
            ("config: {obfuscate: [{type: Keywords, replacement: {a: []}}]}", "sequence"),
        ] {
            let error = Ruleset::parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
