//! Decides which files the rules omit.

use std::path::{Component, Path};

use regex_automata::meta::Regex;

use super::kinds::{Object, Objects};
use crate::gather::obfuscate::PatternError;
use crate::gather::obfuscate::rules::Omit;

/// The suffixes of files that contain Kubernetes objects.
const OBJECTS: [&str; 6] = [".yaml", ".yml", ".json", ".yaml.gz", ".yml.gz", ".json.gz"];
/// The folder that contains a folder per namespace.
const NAMESPACES: &str = "namespaces";

#[derive(Debug)]
pub(super) struct Omission {
    paths: Option<Regex>,
    kinds: Vec<(String, Option<String>, Vec<String>)>,
    pub(super) links: bool,
}

impl Omission {
    pub(super) fn new(rules: &[Omit]) -> Result<Self, PatternError> {
        let (mut patterns, mut kinds, mut links) = (Vec::new(), Vec::new(), false);
        for rule in rules {
            match rule {
                Omit::File(pattern) => patterns.push(glob(pattern)?),
                Omit::Links => links = true,
                Omit::Kubernetes { kind, api_version, namespaces } => {
                    kinds.push((kind.clone(), api_version.clone(), namespaces.clone()));
                }
            }
        }
        let refused = |error: regex_automata::meta::BuildError| PatternError::of(&error);
        let paths =
            if patterns.is_empty() { None } else { Some(Regex::new_many(&patterns).map_err(refused)?) };
        Ok(Self { paths, kinds, links })
    }

    /// Whether the rules omit a file by its path.
    pub(super) fn names(&self, name: &Path) -> bool {
        self.paths.as_ref().is_some_and(|paths| paths.is_match(name.to_string_lossy().as_bytes()))
    }

    /// Whether the rules need to know the objects in a file.
    pub(super) fn looks_into(&self, name: &Path) -> bool {
        let name = name.to_string_lossy().to_ascii_lowercase();
        !self.kinds.is_empty() && OBJECTS.iter().any(|ending| name.ends_with(ending))
    }

    /// Returns why a file with these objects is omitted, if it is.
    pub(super) fn holds(&self, name: &Path, objects: &Objects) -> Option<String> {
        let Objects::Known(objects) = objects else {
            return Some("it cannot be told which objects it holds".to_owned());
        };
        let namespace = namespace(name);
        let left_out = |(kind, version, namespaces): &&(String, Option<String>, Vec<String>)| {
            // If the namespace is unknown, it may be any.
            let there =
                namespaces.is_empty() || namespace.is_none_or(|of| namespaces.iter().any(|one| one == of));
            there && objects.iter().any(|object| is(object, kind, version.as_deref()))
        };
        self.kinds.iter().find(left_out).map(|(kind, ..)| format!("the rules leave out {kind}"))
    }
}

/// Whether an object, or a list of such objects, is of a kind; the version is compared only if both have one.
fn is(object: &Object, kind: &str, version: Option<&str>) -> bool {
    let of_kind =
        object.kind.as_deref().is_some_and(|own| own == kind || own.strip_suffix("List") == Some(kind));
    let of_version = match (version, object.api_version.as_deref()) {
        (Some(wanted), Some(own)) => wanted == own,
        _ => true,
    };
    of_kind && of_version
}

fn namespace(name: &Path) -> Option<&str> {
    let mut parts = name.components().filter_map(|part| match part {
        Component::Normal(part) => part.to_str(),
        _ => None,
    });
    parts.find(|part| *part == NAMESPACES)?;
    parts.next()
}

/// Converts a glob to a regular expression: `*` and `?` stay within a path component, `[a-z]` and `[^a-z]` match one character.
fn glob(pattern: &str) -> Result<String, PatternError> {
    let (mut out, mut signs) = ("^".to_owned(), pattern.chars());
    while let Some(sign) = signs.next() {
        match sign {
            '*' => out.push_str("[^/]*"),
            '?' => out.push_str("[^/]"),
            '[' => {
                let inside: String = signs.by_ref().take_while(|sign| *sign != ']').collect();
                let (not, inside) =
                    inside.strip_prefix('^').map_or(("", inside.as_str()), |rest| ("^", rest));
                if inside.is_empty() || inside.contains(['[', '\\', '&', '~']) {
                    return Err(PatternError::of(&format!("`{pattern}` is no pattern of paths")));
                }
                out.push_str(&format!("[{not}{inside}]"));
            }
            '\\' => {
                let Some(next) = signs.next() else {
                    return Err(PatternError::of(&format!("`{pattern}` is no pattern of paths")));
                };
                escaped(next, &mut out);
            }
            sign => escaped(sign, &mut out),
        }
    }
    out.push('$');
    Ok(out)
}

fn escaped(sign: char, out: &mut String) {
    if sign.is_ascii_punctuation() {
        out.push('\\');
    }
    out.push(sign);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_matched_part_by_part() {
        for (pattern, path, expected) in [
            ("*/namespaces/*/pods/*.log", "img/namespaces/n/pods/a.log", true),
            ("*/namespaces/*/pods/*.log", "img/namespaces/n/pods/a/b.log", false),
            ("*.log", "a/b.log", false),
            ("a.log", "aXlog", false),
            ("a?[b-d][^x]", "a/bc", false),
            ("a?[b-d][^x]", "aZcy", true),
            ("a\\*", "a*", true),
            ("a\\*", "ab", false),
        ] {
            let omission = Omission::new(&[Omit::File(pattern.to_owned())]).unwrap();
            assert_eq!(omission.names(Path::new(path)), expected, "{pattern} {path}");
        }
        for pattern in ["a[", "a[]", "a\\"] {
            assert!(Omission::new(&[Omit::File(pattern.to_owned())]).is_err(), "{pattern}");
        }
    }

    #[test]
    fn kinds_are_left_out_in_their_namespaces() {
        let rule = Omit::Kubernetes {
            kind: "Secret".to_owned(),
            api_version: Some("v1".to_owned()),
            namespaces: vec!["a".to_owned()],
        };
        let omission = Omission::new(&[rule]).unwrap();
        let object = |kind: &str, version: &str| {
            Objects::Known(vec![Object {
                kind: Some(kind.to_owned()),
                api_version: Some(version.to_owned()),
            }])
        };
        for (path, objects, expected) in [
            ("img/namespaces/a/core/secrets.yaml", object("Secret", "v1"), true),
            ("img/namespaces/a/core/secrets.yaml", object("SecretList", "v1"), true),
            ("img/namespaces/b/core/secrets.yaml", object("Secret", "v1"), false),
            ("secrets.yaml", object("Secret", "v1"), true),
            ("img/namespaces/a/x.yaml", object("Secret", "other/v1"), false),
            ("img/namespaces/a/x.yaml", object("SecretStore", "v1"), false),
            ("x.yaml", Objects::Unclear, true),
        ] {
            assert_eq!(omission.holds(Path::new(path), &objects).is_some(), expected, "{path} {objects:?}");
        }
        assert!(omission.looks_into(Path::new("a.YAML")) && omission.looks_into(Path::new("a.json.gz")));
        assert!(!omission.looks_into(Path::new("a.log")));
    }
}
