//! Evaluates the JSONPath of printer columns: `.spec.a`, `['a']`, `[0]`, `[-1]`, `[1:3]`, `[*]`, `..name`,
//! `[?(@.type=="Ready")]`, unions `['a','b']`. Missing members select nothing.

mod parse;

use std::cmp::Ordering;
use std::ops::ControlFlow;

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

/// Number of values that may still be visited. A path with several `..` can visit very many: of n nested
/// values n² / 2 for two of them, n³ / 6 for three.
#[derive(Debug)]
pub(super) struct Budget(u32);

impl Budget {
    /// The budget for all paths of one row: some milliseconds, enough to visit every value of the largest real objects once.
    pub(super) const fn of_row() -> Self {
        Self(1 << 18)
    }

    fn spend(&mut self) -> ControlFlow<()> {
        self.0 = self.0.saturating_sub(1);
        if self.0 == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Receives each selected value; a break ends the search.
type Found<'f, 'v> = &'f mut dyn FnMut(&'v Value) -> ControlFlow<()>;

impl JsonPath {
    /// Returns the first selected value in document order. None if there is none, or if the budget ends before it is found.
    pub(super) fn first<'v>(&self, root: &'v Value, budget: &mut Budget) -> Option<&'v Value> {
        let mut first = None;
        let _ = walk(&self.steps, root, budget, &mut |value| {
            first = Some(value);
            ControlFlow::Break(())
        });
        first
    }
}

/// Passes everything that the steps select to `found`.
fn walk<'v>(steps: &[Step], value: &'v Value, budget: &mut Budget, found: Found<'_, 'v>) -> ControlFlow<()> {
    budget.spend()?;
    let Some((step, rest)) = steps.split_first() else { return found(value) };
    match step {
        Step::Member(name) => match value.as_object().and_then(|members| members.get(name)) {
            Some(member) => walk(rest, member, budget, found),
            None => ControlFlow::Continue(()),
        },
        Step::Index(index) => match element(value, *index) {
            Some(element) => walk(rest, element, budget, found),
            None => ControlFlow::Continue(()),
        },
        Step::Wildcard => children(value).try_for_each(|child| walk(rest, child, budget, found)),
        Step::Descend => {
            walk(rest, value, budget, found)?;
            children(value).try_for_each(|child| walk(steps, child, budget, found))
        }
        Step::Slice { start, end, step } => {
            slice(value, *start, *end, *step).try_for_each(|item| walk(rest, item, budget, found))
        }
        Step::Union(ways) => ways.iter().try_for_each(|way| {
            let mut on = Vec::new();
            let ended = walk(std::slice::from_ref(way), value, budget, &mut |value| {
                on.push(value);
                ControlFlow::Continue(())
            });
            on.into_iter().try_for_each(|value| walk(rest, value, budget, found))?;
            ended
        }),
        Step::Filter { left, comparison } => {
            let mut items = value.as_array().into_iter().flatten();
            items.try_for_each(|item| {
                if holds(item, left, comparison.as_ref(), budget) {
                    walk(rest, item, budget, found)?;
                }
                budget.spend()
            })
        }
    }
}

fn children(value: &Value) -> impl Iterator<Item = &Value> {
    let items = value.as_array().into_iter().flatten();
    items.chain(value.as_object().into_iter().flat_map(|members| members.values()))
}

fn element(value: &Value, index: i64) -> Option<&Value> {
    let items = value.as_array()?;
    let length = i64::try_from(items.len()).ok()?;
    let index = if index < 0 { index.checked_add(length)? } else { index };
    items.get(usize::try_from(index).ok()?)
}

fn slice(value: &Value, start: Option<i64>, end: Option<i64>, step: usize) -> impl Iterator<Item = &Value> {
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let clamp = |index: i64| {
        let index = if index < 0 { index.saturating_add(length) } else { index };
        usize::try_from(index.clamp(0, length)).unwrap_or_default()
    };
    let (start, end) = (clamp(start.unwrap_or(0)), clamp(end.unwrap_or(length)));
    items.get(start..end.max(start)).unwrap_or_default().iter().step_by(step.max(1))
}

impl Operand {
    fn value<'v>(&'v self, item: &'v Value, budget: &mut Budget) -> Option<&'v Value> {
        match self {
            Self::Path(path) => path.first(item, budget),
            Self::Literal(literal) => Some(literal),
        }
    }
}

fn holds(
    item: &Value,
    left: &Operand,
    comparison: Option<&(Comparison, Operand)>,
    budget: &mut Budget,
) -> bool {
    let Some(left) = left.value(item, budget) else { return false };
    let Some((comparison, right)) = comparison else { return true };
    let Some(right) = right.value(item, budget) else { return false };
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
            assert_eq!(json!(select(path, &object)), selected, "{path}");
        }
    }

    fn select<'v>(path: &str, object: &'v Value) -> Vec<&'v Value> {
        let (parsed, mut all) = (JsonPath::parse(path).expect(path), Vec::new());
        let whole = walk(&parsed.steps, object, &mut Budget::of_row(), &mut |value| {
            all.push(value);
            ControlFlow::Continue(())
        });
        assert!(whole.is_continue(), "{path}");
        assert_eq!(parsed.first(object, &mut Budget::of_row()), all.first().copied(), "{path}");
        all
    }

    #[test]
    fn paths_with_more_ways_than_anybody_can_go_select_nothing() {
        let deep = (0..100).fold(json!(1), |inner, _| json!({"a": inner}));
        let path = JsonPath::parse(".spec..a..a..a..a..a..b").unwrap();
        let object = json!({"spec": deep});
        assert_eq!(path.first(&object, &mut Budget::of_row()), None);
        // All columns of a row share one budget.
        let mut budget = Budget::of_row();
        let simple = JsonPath::parse(".spec.a").unwrap();
        assert!(simple.first(&object, &mut budget).is_some());
        path.first(&object, &mut budget);
        assert_eq!(simple.first(&object, &mut budget), None);
        // One `..` reaches the end of a large object.
        let wide = json!({"spec": vec![json!({"c": 1}); 60_000], "z": {"last": 2}});
        let last = JsonPath::parse("..last").unwrap();
        assert_eq!(last.first(&wide, &mut Budget::of_row()), Some(&json!(2)));
    }
}
