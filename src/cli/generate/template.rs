//! Templates of manifests: one text, from which both the kustomize base and the Helm chart are made.
//!
//! ```text
//! image: $(image)          a setting; `$(namespace)` is the namespace of the release
//! #if certificates=secret  the lines up to `#end` stand only where the setting has that value
//! #end
//! ```
//!
//! For the base the settings are filled in; for the chart they become references to its values, so that rendering the
//! chart with its own defaults gives the base.

use std::fmt::Write as _;

use thiserror::Error;

use super::settings::Settings;

/// Why a template cannot be rendered. Templates are part of the program: a test renders all of them.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(super) enum TemplateError {
    #[error("line {0}: there is no setting `{1}`")]
    Unknown(usize, String),
    #[error("line {0}: `$(` without `)`")]
    Unclosed(usize),
    #[error("line {0}: `#end` without `#if`, or `#if` without `#end`")]
    Unbalanced(usize),
}

/// What becomes of settings and conditions.
trait Form {
    fn value(&self, name: &str) -> Option<String>;
    /// What stands for the `#if` line: a line of its own, if any.
    fn open(&self, name: &str, value: &str) -> Option<String>;
    fn close(&self) -> Option<&'static str>;
    /// Whether the lines inside of a condition are kept.
    fn keeps(&self, name: &str, value: &str) -> bool;
    fn plain(&self, text: &str) -> String;
}

/// The text with `settings` filled in.
///
/// # Errors
/// When the template names a setting that does not exist, or is not well formed.
pub(super) fn filled(template: &str, settings: &Settings) -> Result<String, TemplateError> {
    render(template, settings)
}

/// The text as a template of a chart.
///
/// # Errors
/// As [`filled`].
pub(super) fn chart(template: &str) -> Result<String, TemplateError> {
    render(template, &Chart)
}

struct Chart;

impl Form for Settings {
    fn value(&self, name: &str) -> Option<String> {
        self.get(name).map(ToOwned::to_owned)
    }

    fn open(&self, _name: &str, _value: &str) -> Option<String> {
        None
    }

    fn close(&self) -> Option<&'static str> {
        None
    }

    fn keeps(&self, name: &str, value: &str) -> bool {
        self.get(name) == Some(value)
    }

    fn plain(&self, text: &str) -> String {
        text.to_owned()
    }
}

impl Form for Chart {
    fn value(&self, name: &str) -> Option<String> {
        Settings::is_known(name).then(|| format!("{{{{ {} }}}}", reference(name)))
    }

    fn open(&self, name: &str, value: &str) -> Option<String> {
        Some(format!("{{{{- if eq (toString {}) \"{value}\" }}}}", reference(name)))
    }

    fn close(&self) -> Option<&'static str> {
        Some("{{- end }}")
    }

    fn keeps(&self, _name: &str, _value: &str) -> bool {
        true
    }

    fn plain(&self, text: &str) -> String {
        text.replace("{{", "{{ \"{{\" }}")
    }
}

fn reference(name: &str) -> String {
    if name == super::settings::NAMESPACE {
        ".Release.Namespace".to_owned()
    } else {
        format!(".Values.{name}")
    }
}

fn render(template: &str, form: &impl Form) -> Result<String, TemplateError> {
    let mut out = String::with_capacity(template.len());
    // For each open condition, whether its lines are kept.
    let mut open: Vec<bool> = Vec::new();
    let mut last = 0;
    for (number, line) in (1..).zip(template.lines()) {
        last = number;
        let own_line = if let Some(condition) = line.strip_prefix("#if ") {
            let (name, value) = condition.split_once('=').unwrap_or((condition, "true"));
            if !Settings::is_known(name) {
                return Err(TemplateError::Unknown(number, name.to_owned()));
            }
            open.push(form.keeps(name, value));
            form.open(name, value)
        } else if line == "#end" {
            open.pop().ok_or(TemplateError::Unbalanced(number))?;
            form.close().map(ToOwned::to_owned)
        } else if open.iter().all(|kept| *kept) {
            Some(with_settings(line, number, form)?)
        } else {
            None
        };
        if let Some(line) = own_line {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "{line}");
        }
    }
    if open.is_empty() { Ok(out) } else { Err(TemplateError::Unbalanced(last)) }
}

fn with_settings(line: &str, number: usize, form: &impl Form) -> Result<String, TemplateError> {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("$(") {
        let (name, after) = after.split_once(')').ok_or(TemplateError::Unclosed(number))?;
        let value = form.value(name).ok_or_else(|| TemplateError::Unknown(number, name.to_owned()))?;
        out.push_str(&form.plain(before));
        out.push_str(&value);
        rest = after;
    }
    out.push_str(&form.plain(rest));
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEMPLATE: &str = "a: $(replicas)\n#if certificates=secret\nb: {{ $(namespace) }}\n#end\nc\n";

    #[test]
    fn settings_are_filled_in_or_referred_to() {
        let settings = Settings::new("ns", &["certificates=secret".to_owned()]).unwrap();
        assert_eq!(filled(TEMPLATE, &settings).unwrap(), "a: 2\nb: {{ ns }}\nc\n");
        let other = Settings::new("ns", &["certificates=cert-manager".to_owned()]).unwrap();
        assert_eq!(filled(TEMPLATE, &other).unwrap(), "a: 2\nc\n");
        let expected = "a: {{ .Values.replicas }}\n\
            {{- if eq (toString .Values.certificates) \"secret\" }}\n\
            b: {{ \"{{\" }} {{ .Release.Namespace }} }}\n{{- end }}\nc\n";
        assert_eq!(chart(TEMPLATE).unwrap(), expected);
    }

    #[test]
    fn what_is_not_well_formed_is_refused() {
        assert_eq!(chart("$(nothing)"), Err(TemplateError::Unknown(1, "nothing".to_owned())));
        assert_eq!(chart("\n$(image"), Err(TemplateError::Unclosed(2)));
        assert_eq!(chart("#end"), Err(TemplateError::Unbalanced(1)));
        assert_eq!(chart("#if monitoring\n"), Err(TemplateError::Unbalanced(1)));
    }
}
