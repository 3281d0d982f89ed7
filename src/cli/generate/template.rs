//! Expands templates of manifests: the kustomize base and the Helm chart are both generated from the same text.
//!
//! ```text
//! image: $(image)          a setting; `$(namespace)` is the namespace of the release
//! #if certificates=secret  the lines up to `#end` stand only where the setting has that value
//! #end
//! #unless apiServers=any   or only where it has another
//! #end
//! #each apiServers         the lines up to `#end` stand once for each part of the setting between commas, which is `$(item)`
//! #end
//! ```
//!
//! For the base the settings are filled in; for the chart they become references to its values, so that rendering the
//! chart with its own defaults gives the base.

use std::fmt::Write as _;

use thiserror::Error;

use super::settings::Settings;

/// Why a template cannot be rendered. Templates are part of the program, and a test renders all of them.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(super) enum TemplateError {
    #[error("line {0}: there is no setting `{1}`")]
    Unknown(usize, String),
    #[error("line {0}: `$(` without `)`")]
    Unclosed(usize),
    #[error("line {0}: `#end` without what it ends, or the other way round")]
    Unbalanced(usize),
}

/// How settings and conditions are rendered.
trait Form {
    fn value(&self, name: &str) -> Option<String>;
    /// Renders the line that opens a condition, if it becomes a line.
    fn open(&self, condition: &Condition<'_>) -> Option<String>;
    fn close(&self) -> Option<&'static str>;
    /// Whether the lines inside a condition are kept.
    fn keeps(&self, condition: &Condition<'_>) -> bool;
    /// Renders `lines` that are repeated for each part of a setting.
    fn each(&self, name: &str, lines: &[&str]) -> Vec<String>;
    fn plain(&self, text: &str) -> String;
}

/// A condition that a setting has a value, or with `unless` that it has another.
struct Condition<'t> {
    name: &'t str,
    value: &'t str,
    unless: bool,
}

impl<'t> Condition<'t> {
    /// Parses the condition of a line, if it is one.
    fn of(line: &'t str) -> Option<Self> {
        let (unless, text) = match line.strip_prefix("#if ") {
            Some(text) => (false, text),
            None => (true, line.strip_prefix("#unless ")?),
        };
        let (name, value) = text.split_once('=').unwrap_or((text, "true"));
        Some(Self { name, value, unless })
    }
}

/// The placeholder for a part of a setting.
const ITEM: &str = "$(item)";

/// Renders the template with the values of `settings`.
///
/// # Errors
/// When the template names a setting that does not exist, or is malformed.
pub(super) fn filled(template: &str, settings: &Settings) -> Result<String, TemplateError> {
    render(template, settings)
}

/// Renders the template as one of a Helm chart.
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

    fn open(&self, _condition: &Condition<'_>) -> Option<String> {
        None
    }

    fn close(&self) -> Option<&'static str> {
        None
    }

    fn keeps(&self, condition: &Condition<'_>) -> bool {
        (self.get(condition.name) == Some(condition.value)) != condition.unless
    }

    fn each(&self, name: &str, lines: &[&str]) -> Vec<String> {
        let items = self.get(name).unwrap_or_default().split(',');
        items.flat_map(|item| lines.iter().map(move |line| line.replace(ITEM, item))).collect()
    }

    fn plain(&self, text: &str) -> String {
        text.to_owned()
    }
}

impl Form for Chart {
    fn value(&self, name: &str) -> Option<String> {
        Settings::is_known(name).then(|| format!("{{{{ {} }}}}", reference(name)))
    }

    fn open(&self, Condition { name, value, unless }: &Condition<'_>) -> Option<String> {
        let compare = if *unless { "ne" } else { "eq" };
        Some(format!("{{{{- if {compare} (toString {}) \"{value}\" }}}}", reference(name)))
    }

    fn close(&self) -> Option<&'static str> {
        Some("{{- end }}")
    }

    fn keeps(&self, _condition: &Condition<'_>) -> bool {
        true
    }

    fn each(&self, name: &str, lines: &[&str]) -> Vec<String> {
        let range = format!("{{{{- range splitList \",\" (toString {}) }}}}", reference(name));
        let lines = lines
            .iter()
            .map(|line| line.split(ITEM).map(|part| self.plain(part)).collect::<Vec<_>>().join("{{ . }}"));
        std::iter::once(range).chain(lines).chain(["{{- end }}".to_owned()]).collect()
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
    let mut out = Vec::new();
    // For each open condition, whether its lines are kept.
    let mut open: Vec<bool> = Vec::new();
    let mut repeated: Option<(&str, Vec<&str>)> = None;
    let known = |number, name: &str| {
        if Settings::is_known(name) { Ok(()) } else { Err(TemplateError::Unknown(number, name.to_owned())) }
    };
    let mut last = 0;
    for (number, line) in (1..).zip(template.lines()) {
        last = number;
        let kept = open.iter().all(|kept| *kept);
        if let Some((name, mut lines)) = repeated.take() {
            if line != "#end" {
                lines.push(line);
                repeated = Some((name, lines));
            } else if kept {
                out.extend(form.each(name, &lines));
            }
        } else if let Some(name) = line.strip_prefix("#each ") {
            known(number, name)?;
            repeated = Some((name, Vec::new()));
        } else if let Some(condition) = Condition::of(line) {
            known(number, condition.name)?;
            open.push(form.keeps(&condition));
            out.extend(form.open(&condition));
        } else if line == "#end" {
            open.pop().ok_or(TemplateError::Unbalanced(number))?;
            out.extend(form.close().map(ToOwned::to_owned));
        } else if kept {
            out.push(with_settings(line, number, form)?);
        }
    }
    if !open.is_empty() || repeated.is_some() {
        return Err(TemplateError::Unbalanced(last));
    }
    let mut text = String::with_capacity(template.len());
    for line in out {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{line}");
    }
    Ok(text)
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
    fn parts_of_a_setting_are_repeated() {
        let template = "#unless apiServers=any\nfrom:\n#each apiServers\n- \"$(item)\"\n#end\n#end\nrest\n";
        let of = |value: &str| Settings::new("ns", &[format!("apiServers={value}")]).unwrap();
        assert_eq!(filled(template, &of("any")).unwrap(), "rest\n");
        let two = "from:\n- \"10.0.0.1/32\"\n- \"fd00::/8\"\nrest\n";
        assert_eq!(filled(template, &of("10.0.0.1/32,fd00::/8")).unwrap(), two);
        let expected = "{{- if ne (toString .Values.apiServers) \"any\" }}\nfrom:\n\
            {{- range splitList \",\" (toString .Values.apiServers) }}\n- \"{{ . }}\"\n{{- end }}\n{{- end }}\nrest\n";
        assert_eq!(chart(template).unwrap(), expected);
        assert_eq!(chart("#each apiServers\n"), Err(TemplateError::Unbalanced(1)));
    }

    #[test]
    fn what_is_not_well_formed_is_refused() {
        assert_eq!(chart("$(nothing)"), Err(TemplateError::Unknown(1, "nothing".to_owned())));
        assert_eq!(chart("\n$(image"), Err(TemplateError::Unclosed(2)));
        assert_eq!(chart("#end"), Err(TemplateError::Unbalanced(1)));
        assert_eq!(chart("#if monitoring\n"), Err(TemplateError::Unbalanced(1)));
    }
}
