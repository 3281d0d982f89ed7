//! The JSONPath of printer columns: `.spec.a`, `['a']`, `[0]`, `[-1]`, `[1:3]`, `[*]`, `..name`, `[?(@.type=="Ready")]`,
//! unions `['a','b']`. Missing members select nothing.

use std::cmp::Ordering;

use serde_json::Value;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Member(String),
    /// `..`: the value itself and everything below it.
    Descend,
    Wildcard,
    Slice {
        start: Option<i64>,
        end: Option<i64>,
        step: usize,
    },
    Index(i64),
    Union(Vec<Self>),
    Filter {
        left: Operand,
        comparison: Option<(Comparison, Operand)>,
    },
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Path(JsonPath),
    Literal(Value),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

const COMPARISONS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

impl JsonPath {
    /// `None` where the text is no path of this subset.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut rest = text.trim();
        rest = rest.strip_prefix(['$', '@']).unwrap_or(rest);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            let (step, after) = if let Some(after) = rest.strip_prefix("..") {
                (Step::Descend, if after.starts_with('[') { after } else { rest.get(1..)? })
            } else if let Some(after) = rest.strip_prefix('.') {
                if after.is_empty() || after.starts_with('[') {
                    rest = after;
                    continue;
                }
                member(after)
            } else if let Some(after) = rest.strip_prefix('[') {
                let end = closing_bracket(after)?;
                (bracket(after.get(..end)?)?, after.get(end + 1..)?)
            } else {
                return None;
            };
            steps.push(step);
            rest = after;
        }
        Some(Self { steps })
    }

    /// Everything that the path selects, in document order.
    pub(super) fn select<'v>(&self, root: &'v Value) -> Vec<&'v Value> {
        let mut selected = vec![root];
        for step in &self.steps {
            selected = selected.into_iter().flat_map(|value| step.select(value)).collect();
        }
        selected
    }
}

impl Step {
    fn select<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        match self {
            Self::Member(name) => {
                value.as_object().and_then(|members| members.get(name)).into_iter().collect()
            }
            Self::Index(index) => element(value, *index).into_iter().collect(),
            Self::Wildcard => children(value),
            Self::Descend => {
                let mut all = vec![value];
                for child in children(value) {
                    all.extend(Self::Descend.select(child));
                }
                all
            }
            Self::Slice { start, end, step } => slice(value, *start, *end, *step),
            Self::Union(steps) => steps.iter().flat_map(|step| step.select(value)).collect(),
            Self::Filter { left, comparison } => value
                .as_array()
                .map(|items| items.iter().filter(|item| holds(item, left, comparison.as_ref())).collect())
                .unwrap_or_default(),
        }
    }
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(members) => members.values().collect(),
        _ => Vec::new(),
    }
}

fn element(value: &Value, index: i64) -> Option<&Value> {
    let items = value.as_array()?;
    let length = i64::try_from(items.len()).ok()?;
    let index = if index < 0 { index.checked_add(length)? } else { index };
    items.get(usize::try_from(index).ok()?)
}

fn slice(value: &Value, start: Option<i64>, end: Option<i64>, step: usize) -> Vec<&Value> {
    let Some(items) = value.as_array() else { return Vec::new() };
    let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let clamp = |index: i64| {
        let index = if index < 0 { index.saturating_add(length) } else { index };
        usize::try_from(index.clamp(0, length)).unwrap_or_default()
    };
    let (start, end) = (clamp(start.unwrap_or(0)), clamp(end.unwrap_or(length)));
    items.get(start..end.max(start)).unwrap_or_default().iter().step_by(step.max(1)).collect()
}

fn holds(item: &Value, left: &Operand, comparison: Option<&(Comparison, Operand)>) -> bool {
    fn resolve<'v>(operand: &'v Operand, item: &'v Value) -> Option<&'v Value> {
        match operand {
            Operand::Path(path) => path.select(item).first().copied(),
            Operand::Literal(literal) => Some(literal),
        }
    }
    let Some(left) = resolve(left, item) else { return false };
    let Some((comparison, right)) = comparison else { return true };
    let Some(right) = resolve(right, item) else { return false };
    let order = match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.as_f64().partial_cmp(&right.as_f64()),
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (left, right) => (left == right).then_some(Ordering::Equal),
    };
    match comparison {
        Comparison::Equal => order == Some(Ordering::Equal),
        Comparison::NotEqual => order != Some(Ordering::Equal),
        Comparison::Less => order == Some(Ordering::Less),
        Comparison::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Comparison::Greater => order == Some(Ordering::Greater),
        Comparison::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    }
}

/// A name up to the next unescaped `.` or `[`; `\.` stands for a dot inside it.
fn member(text: &str) -> (Step, &str) {
    let mut name = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => name.extend(characters.next().map(|(_, escaped)| escaped)),
            '.' | '[' => return (named(name), text.get(at..).unwrap_or_default()),
            other => name.push(other),
        }
    }
    (named(name), "")
}

fn named(name: String) -> Step {
    if name == "*" { Step::Wildcard } else { Step::Member(name) }
}

/// The position of the bracket that closes the one before `text`, brackets inside quotes and filters aside.
fn closing_bracket(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    let mut quote = None;
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        match (quote, character) {
            _ if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), close) if open == close => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(character),
            (None, '[' | '(') => depth += 1,
            (None, ']') if depth == 0 => return Some(at),
            (None, ']' | ')') => depth = depth.checked_sub(1)?,
            (None, _) => {}
        }
    }
    None
}

fn bracket(text: &str) -> Option<Step> {
    let text = text.trim();
    if let Some(filter) = text.strip_prefix("?(").and_then(|rest| rest.strip_suffix(')')) {
        return parse_filter(filter);
    }
    let parts = split_outside_quotes(text, ',');
    if parts.len() > 1 {
        return Some(Step::Union(parts.into_iter().map(bracket).collect::<Option<_>>()?));
    }
    if text == "*" {
        return Some(Step::Wildcard);
    }
    if let Some(name) = quoted(text) {
        return Some(Step::Member(name));
    }
    let numbers: Vec<&str> = text.split(':').map(str::trim).collect();
    let number = |text: &str| if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) };
    match numbers.as_slice() {
        [index] => Some(Step::Index(index.parse().ok()?)),
        [start, end] => Some(Step::Slice { start: number(start)?, end: number(end)?, step: 1 }),
        [start, end, step] => {
            Some(Step::Slice { start: number(start)?, end: number(end)?, step: step.parse().ok()? })
        }
        _ => None,
    }
}

fn parse_filter(text: &str) -> Option<Step> {
    for (symbol, comparison) in COMPARISONS {
        if let Some((left, right)) = text.split_once(symbol) {
            let comparison = Some((comparison, operand(right)?));
            return Some(Step::Filter { left: operand(left)?, comparison });
        }
    }
    Some(Step::Filter { left: operand(text)?, comparison: None })
}

fn operand(text: &str) -> Option<Operand> {
    let text = text.trim();
    if text.starts_with(['@', '$']) {
        return Some(Operand::Path(JsonPath::parse(text)?));
    }
    match quoted(text) {
        Some(text) => Some(Operand::Literal(Value::String(text))),
        None => serde_json::from_str(text).ok().map(Operand::Literal),
    }
}

fn quoted(text: &str) -> Option<String> {
    let inner = ['\'', '"'].iter().find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote))?;
    let mut name = String::new();
    let mut characters = inner.chars();
    while let Some(character) = characters.next() {
        if character == '\\' {
            name.extend(characters.next());
        } else {
            name.push(character);
        }
    }
    Some(name)
}

fn split_outside_quotes(text: &str, separator: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut quote = None;
    let mut start = 0;
    for (at, character) in text.char_indices() {
        match quote {
            Some(open) if character == open => quote = None,
            None if character == '\'' || character == '"' => quote = Some(character),
            None if character == separator => {
                parts.extend(text.get(start..at));
                start = at + character.len_utf8();
            }
            _ => {}
        }
    }
    parts.extend(text.get(start..));
    parts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_select_what_they_name() {
        let object = json!({"metadata": {"labels": {"a.b/c": "lbl"}}, "spec": {"l": ["a", "b", "c"], "n": 3},
            "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Old", "status": "False"}]}});
        for (path, selected) in [
            (".spec.n", json!([3])),
            (".metadata.labels.a\\.b/c", json!(["lbl"])),
            (".metadata.labels['a\\.b/c']", json!(["lbl"])),
            (".spec.l[0]", json!(["a"])),
            (".spec.l[-1]", json!(["c"])),
            (".spec.l[1:]", json!(["b", "c"])),
            (".spec.l[0,2]", json!(["a", "c"])),
            (".spec.l[*]", json!(["a", "b", "c"])),
            (".spec['n']", json!([3])),
            (".status.conditions[?(@.type==\"Ready\")].status", json!(["True"])),
            (".status.conditions[?(@.type!='Ready')].status", json!(["False"])),
            ("..type", json!(["Ready", "Old"])),
            (".status.conditions[?(@.nope)].status", json!([])),
            (".missing.deep", json!([])),
        ] {
            let parsed = JsonPath::parse(path).expect(path);
            assert_eq!(json!(parsed.select(&object)), selected, "{path}");
        }
    }

    #[test]
    fn broken_paths_are_no_paths() {
        for path in ["spec", ".spec[", ".spec[x]", ".spec[?(@.a==)]"] {
            assert_eq!(JsonPath::parse(path), None, "{path}");
        }
    }
}
