//! Random rules on random objects: what the terms say is what the engine says.

use std::hash::{DefaultHasher, Hash, Hasher};

use admit_analysis::prove::{Said, Side, Solver, Subject, agreement};
use serde_json::{Map, Value, json};

use super::dice::Dice;
use super::solvers::{Program, Soon, tell};
use super::table::definition;

const TEXTS: &[&str] = &["", "a", "ab", "b", "abc", "é", "On", "c\n"];

fn int(dice: &mut Dice, depth: usize, own: &str) -> String {
    let leaves =
        ["self.must", "self.int", "self.other", "self.some", "self.part.x", "self.list[0]", "self.map['a']"];
    if depth == 0 || dice.roll(3) == 0 {
        return match dice.roll(6) {
            0 => ["0", "1", "-1", "2", "9223372036854775807", "(-9223372036854775807 - 1)"][dice.roll(6)]
                .to_owned(),
            1 if !own.is_empty() => own.to_owned(),
            2 => format!("self.?int.orValue({})", dice.roll(4)),
            3 => format!("self.?list[?{}].orValue(1)", dice.roll(4)),
            _ => dice.pick(&leaves).to_owned(),
        };
    }
    match dice.roll(8) {
        0 => format!("size({})", text(dice, depth - 1)),
        1 => format!("size({})", list(dice, depth - 1)),
        2 => format!(
            "({} ? {} : {})",
            boolean(dice, depth - 1),
            int(dice, depth - 1, own),
            int(dice, depth - 1, own)
        ),
        3 => format!("{}.filter(y, y > {})[{}]", list(dice, depth - 1), dice.roll(3), dice.roll(3)),
        _ => {
            let op = dice.pick(&["+", "-", "*", "/", "%"]);
            format!("({} {op} {})", int(dice, depth - 1, own), int(dice, depth - 1, own))
        }
    }
}

fn text(dice: &mut Dice, depth: usize) -> String {
    let leaves = [
        "self.text",
        "self.more",
        "self.mode",
        "self.none",
        "self.my__dash__field",
        "self.part.t",
        "self.tags[0]",
        "self.labels.a",
    ];
    if depth == 0 || dice.roll(3) == 0 {
        return if dice.roll(3) == 0 {
            format!("{:?}", dice.pick(&TEXTS[..5]))
        } else {
            dice.pick(&leaves).to_owned()
        };
    }
    match dice.roll(3) {
        0 => format!("({} + {})", text(dice, depth - 1), text(dice, depth - 1)),
        1 => format!("self.?text.orValue({:?})", dice.pick(&TEXTS[..5])),
        _ => {
            format!("({} ? {} : {})", boolean(dice, depth - 1), text(dice, depth - 1), text(dice, depth - 1))
        }
    }
}

fn list(dice: &mut Dice, depth: usize) -> String {
    if depth == 0 || dice.roll(2) == 0 {
        return ["self.list", "self.?list.orValue([])", "[1, 2]"][dice.roll(3)].to_owned();
    }
    match dice.roll(4) {
        0 => format!("self.list.filter(z, z > {})", int(dice, depth - 1, "z")),
        1 => format!("self.list.map(z, {})", int(dice, depth - 1, "z")),
        2 => format!("[{}, {}]", int(dice, depth - 1, ""), int(dice, depth - 1, "")),
        _ => format!("({} + {})", list(dice, depth - 1), list(dice, depth - 1)),
    }
}

fn leaf(dice: &mut Dice) -> String {
    let fields = [
        "int",
        "other",
        "even",
        "text",
        "more",
        "mode",
        "flag",
        "port",
        "none",
        "my__dash__field",
        "part",
        "list",
        "tags",
        "keyed",
        "map",
        "labels",
        "any",
        "part.x",
        "part.t",
        "map.a",
    ];
    match dice.roll(23) {
        14 | 15 => measured(dice),
        16 | 17 => on_texts(dice),
        18..=22 => super::apart::apart(dice),
        12 => {
            let field = dice.pick(&["part", "tags", "keyed", "list", "map", "labels", "none", "port", "int"]);
            format!("self.{field} {} self.{field}", dice.pick(&["==", "!="]))
        }
        13 => "self.keyed[0] == self.keyed[1]".to_owned(),
        0 => "self.flag".to_owned(),
        1 => "self.?flag.orValue(true)".to_owned(),
        2 => format!("self.port == {}", ["80", "'80'", "0"][dice.roll(3)]),
        3 => "type(self.port) == int".to_owned(),
        4 => format!("self.tags == {}", ["['a', 'b']", "['b', 'a']", "[]", "['a']"][dice.roll(4)]),
        5 => format!("{:?} in self.tags", dice.pick(TEXTS)),
        6 => format!("self.keyed.exists_one(k, k.name == {:?} && k.size > 0)", dice.pick(&TEXTS[..4])),
        7 => format!("self.keyed.all(k, has(k.size) || k.name {} 'a')", dice.pick(&["==", "!=", "<", ">="])),
        8 => format!("self.map.exists(k, self.map[k] > {})", dice.roll(3)),
        9 => "self.labels.all(k, v, k != v)".to_owned(),
        10 => format!("{:?} in self.map", dice.pick(TEXTS)),
        _ => format!("has(self.{})", dice.pick(&fields)),
    }
}

/// About what is read of texts: quantities, instants and durations. In policies fields are texts, and the same is an error.
fn measured(dice: &mut Dice) -> String {
    let amounts = ["quantity(self.amount)", "quantity(self.limit)", "quantity(self.size)", "quantity('1k')"];
    let amount = dice.pick(&amounts);
    let other = match dice.roll(3) {
        0 => format!("{}.add({})", dice.pick(&amounts), dice.pick(&["1", "quantity(self.limit)"])),
        1 => format!("{}.sub(quantity('500m'))", dice.pick(&amounts)),
        _ => dice.pick(&amounts).to_owned(),
    };
    let times = [
        "self.since",
        "self.until",
        "timestamp('2024-01-01T00:00:00Z')",
        "timestamp(self.stamp)",
        "self.day",
    ];
    let spans = ["self.wait", "duration('90s')", "duration(self.timeout)", "(self.until - self.since)"];
    let op = dice.pick(&["<", "<=", ">", ">=", "==", "!="]);
    match dice.roll(9) {
        0 => format!("isQuantity(self.{})", dice.pick(&["amount", "limit", "text"])),
        1 => format!("{amount}.{}({other})", dice.pick(&["isGreaterThan", "isLessThan"])),
        2 => format!("{amount}.compareTo({other}) {op} {}", dice.pick(&["0", "1", "-1"])),
        3 => format!("{amount} {} {other}", dice.pick(&["==", "!="])),
        4 => format!("({amount}.isInteger() ? {amount}.asInteger() {op} 1 : sign({other}) {op} 0)"),
        5 => format!("{} {op} {}", dice.pick(&times), dice.pick(&times)),
        6 => format!("{} {op} {}", dice.pick(&spans), dice.pick(&spans)),
        7 => format!(
            "{} {} {} {op} {}",
            dice.pick(&times),
            dice.pick(&["+", "-"]),
            dice.pick(&spans),
            dice.pick(&times)
        ),
        _ => format!(
            "int({}) {op} {}",
            dice.pick(&["self.since", "self.wait", "duration(self.timeout)"]),
            dice.roll(3)
        ),
    }
}

/// Functions on texts.
fn on_texts(dice: &mut Dice) -> String {
    let text = text(dice, 1);
    let part = dice.pick(&["a", "b", "ab", "c"]);
    let op = dice.pick(&["<", "==", "!=", ">="]);
    match dice.roll(11) {
        0 => format!("{text}.substring({}) {op} {part:?}", dice.roll(3)),
        1 => format!("{text}.substring({}, {}) {op} {part:?}", dice.roll(3), dice.roll(3)),
        2 => format!("{text}.charAt({}) {op} {part:?}", dice.roll(4)),
        3 => format!(
            "{text}.indexOf({:?}, {}) {op} {}",
            dice.pick(&["a", "b", ""]),
            dice.roll(3),
            dice.roll(3)
        ),
        4 => format!("{text}.replace({part:?}, 'x', {}) {op} 'x'", dice.pick(&["0", "1"])),
        5 => format!(
            "self.{}.{}() == {part:?}",
            dice.pick(&["text", "mode", "none"]),
            dice.pick(&["lowerAscii", "upperAscii"])
        ),
        6 => format!("{text}.split({part:?})[{}] {op} ''", dice.roll(3)),
        7 => format!("{text}.split({part:?}, 2).size() {op} {}", dice.roll(3)),
        8 => format!("{text}.split({part:?}).exists(p, p {op} {part:?})"),
        9 => format!("self.tags.join({part:?}).contains('b')"),
        _ => match dice.roll(3) {
            0 => format!("int(self.{}) {op} {}", dice.pick(&["amount", "text", "limit"]), dice.roll(3)),
            1 => format!("string(self.must).contains('{}')", dice.roll(9)),
            _ => format!(
                "format.{}().validate(self.{}).hasValue()",
                dice.pick(&["dns1123Label", "qualifiedName", "labelValue"]),
                dice.pick(&["text", "mode"])
            ),
        },
    }
}

fn boolean(dice: &mut Dice, depth: usize) -> String {
    if depth == 0 {
        return leaf(dice);
    }
    let below = depth - 1;
    match dice.roll(13) {
        0 => leaf(dice),
        1 | 2 => format!("({} && {})", boolean(dice, below), boolean(dice, below)),
        3 | 4 => format!("({} || {})", boolean(dice, below), boolean(dice, below)),
        5 => format!("!{}", boolean(dice, below)),
        6 => format!("({} ? {} : {})", boolean(dice, below), boolean(dice, below), boolean(dice, below)),
        7 | 8 => {
            let op = dice.pick(&["<", "<=", ">", ">=", "==", "!="]);
            format!("({} {op} {})", int(dice, below, ""), int(dice, below, ""))
        }
        9 => {
            let op = dice.pick(&["<", "<=", ">", ">=", "==", "!="]);
            format!("({} {op} {})", text(dice, below), text(dice, below))
        }
        10 => {
            let function = dice.pick(&["startsWith", "endsWith", "contains"]);
            format!("{}.{function}({})", text(dice, below), text(dice, below))
        }
        11 => {
            let pattern =
                dice.pick(&["^a", "b$", "^[a-c]+$", "^a|b$", "(?i)on", ".", "^(a|b)?$", "a{2}", "^[^a]"]);
            format!("{}.matches('{pattern}')", text(dice, below))
        }
        _ => {
            let (quantifier, of) = (dice.pick(&["all", "exists", "exists_one"]), list(dice, below));
            format!("{of}.{quantifier}(x, {} > {})", int(dice, below, "x"), int(dice, below, "x"))
        }
    }
}

fn number(dice: &mut Dice) -> Value {
    match dice.roll(8) {
        0 => i64::MAX.into(),
        1 => i64::MIN.into(),
        other => (i64::try_from(other).expect("small") - 4).into(),
    }
}

fn object(dice: &mut Dice) -> Value {
    let mut spec = Map::new();
    spec.insert("must".into(), (i64::try_from(dice.roll(16)).expect("small") - 5).into());
    let mut put = |dice: &mut Dice, name: &str, value: fn(&mut Dice) -> Value| {
        if dice.roll(3) > 0 {
            let value = value(dice);
            spec.insert(name.into(), value);
        }
    };
    fn short(dice: &mut Dice) -> Value {
        dice.pick(TEXTS).into()
    }
    put(dice, "int", number);
    put(dice, "other", |dice| i64::try_from(dice.roll(5)).expect("small").into());
    put(dice, "even", |dice| (2 * i64::try_from(dice.roll(5)).expect("small") - 4).into());
    put(dice, "some", number);
    put(dice, "text", short);
    put(dice, "more", |dice| dice.pick(&["", "a", "abc", "cc"]).into());
    put(dice, "mode", |dice| dice.pick(&["On", "Off", "Auto"]).into());
    put(dice, "flag", |dice| (dice.roll(2) == 0).into());
    put(dice, "port", |dice| if dice.roll(2) == 0 { 80.into() } else { "80".into() });
    put(dice, "none", |dice| if dice.roll(2) == 0 { Value::Null } else { "a".into() });
    put(dice, "my-field", short);
    let amounts =
        |dice: &mut Dice| dice.pick(&["1", "1.0", "1k", "0.5", "-3m", "1e3", "x", "", "1Gi", "+5"]).into();
    put(dice, "amount", amounts);
    put(dice, "limit", amounts);
    put(dice, "size", |dice| dice.pick(&["1Gi", "2048Mi", "4G"]).into());
    let times = |dice: &mut Dice| {
        let all = [
            "2024-01-01T00:00:00Z",
            "2024-01-01T01:00:00+01:00",
            "2023-12-31T23:59:59.5Z",
            "0001-01-01T00:00:00Z",
        ];
        dice.pick(&[all[0], all[1], all[2], all[3], "9999-12-31T23:59:59Z", "2000-01-01T00:00:00x1z"]).into()
    };
    put(dice, "since", times);
    put(dice, "until", times);
    put(dice, "stamp", |dice| dice.pick(&["2024-01-01T00:00:00Z", "2024-01-01", "x"]).into());
    put(dice, "day", |dice| dice.pick(&["2024-01-01", "2024-02-29"]).into());
    put(dice, "wait", |dice| dice.pick(&["1s", "1m30s", "-2h", "3 days", "2562047h47m16.854775807s"]).into());
    put(dice, "timeout", |dice| dice.pick(&["90s", "1h30m", "0s", "5ms"]).into());
    super::apart::fields(dice, &mut put);
    put(dice, "part", |dice| {
        let mut part = Map::new();
        if dice.roll(2) == 0 {
            part.insert("x".into(), number(dice));
        }
        if dice.roll(2) == 0 {
            part.insert("t".into(), short(dice));
        }
        part.into()
    });
    put(dice, "list", |dice| (0..dice.roll(4)).map(|_| number(dice)).collect::<Vec<_>>().into());
    put(dice, "tags", |dice| {
        [json!([]), json!(["a"]), json!(["a", "b"]), json!(["b", "é", "a"])][dice.roll(4)].clone()
    });
    put(dice, "keyed", |dice| {
        [json!([]), json!([{"name": "a", "size": 1}]), json!([{"name": "b"}, {"name": "a", "size": 0}])]
            [dice.roll(3)]
        .clone()
    });
    put(dice, "map", |dice| {
        [json!({}), json!({"a": 1}), json!({"b": 0, "a": 3}), json!({"é": 2})][dice.roll(4)].clone()
    });
    put(dice, "labels", |dice| {
        [json!({}), json!({"a": "a"}), json!({"b": "x", "a": "b"})][dice.roll(3)].clone()
    });
    json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x", "namespace": "y"}, "spec": spec})
}

/// What the random rules are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Of {
    Creation,
    Update,
    Policy,
}

/// The rule with some of its objects as they were before.
fn looking_back(dice: &mut Dice, rule: &str) -> String {
    let mut parts = rule.split("self.");
    let mut out = parts.next().expect("a part").to_owned();
    for part in parts {
        out.push_str(if dice.roll(2) == 0 { "oldSelf." } else { "self." });
        out.push_str(part);
    }
    out
}

fn side(dice: &mut Dice, of: Of, subject: &Subject) -> Option<(String, Side)> {
    let rule = boolean(dice, 3);
    match of {
        Of::Creation => {
            let side = Side::definition(&definition(&[&rule]), subject).ok()?;
            Some((rule, side))
        }
        Of::Update => {
            let rule = looking_back(dice, &rule);
            let side = Side::definition(&definition(&[&rule]), subject).ok()?;
            Some((rule, side))
        }
        Of::Policy => {
            let plain = |rule: &str| rule.replace("self.", "object.spec.");
            let variable = plain(&boolean(dice, 2));
            let policy = json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
                "metadata": {"name": "random"},
                "spec": {
                    "failurePolicy": dice.pick(&["Fail", "Ignore"]),
                    "matchConstraints": {"resourceRules": [{"apiGroups": ["example.com"], "apiVersions": ["v1"],
                        "operations": ["CREATE"], "resources": ["things"]}]},
                    "matchConditions": [{"name": "one", "expression": format!("{} && request.operation == 'CREATE'", plain(&boolean(dice, 2)))},
                        {"name": "two", "expression": plain(&boolean(dice, 1))}],
                    "variables": [{"name": "v", "expression": variable}],
                    "validations": [{"expression": plain(&rule)}, {"expression": "variables.v || object.spec.flag"}],
                },
            });
            let side = Side::policy(&policy, subject).ok()?;
            Some((policy.to_string(), side))
        }
    }
}

/// Whether a text that is put together is read as a URL. What it is read as is open, so that more is possible than what the engine
/// says: claims about it do not hold, where they may.
fn is_put_together(rule: &str) -> bool {
    [" + self.ip)", " + oldSelf.ip)", " + object.spec.ip)"].iter().any(|part| rule.contains(part))
}

/// Whether the request is one that is thought of, and what the engine says of it is what the terms say; or is among it, where they
/// leave something open.
fn agree(answers: &[&str], said: &Said, is_open: bool) -> bool {
    let [thought_of, denied, failed] = answers else { return false };
    let is_told = |answer: &str, yes: bool| if yes { answer == "sat" } else { is_open || answer == "unsat" };
    *thought_of == "sat" && is_told(denied, said.denied) && is_told(failed, said.failed)
}

/// What came of comparing pairs of a rule and an object.
#[derive(Default)]
pub(super) struct Compared {
    /// Of each pair that a solver answered about, a number made of its texts.
    pub(super) pairs: Vec<u64>,
    /// Pairs that it did not answer about.
    pub(super) silent: usize,
    /// Scripts that were not written.
    pub(super) undecided: usize,
    /// The pairs that differ, with what was said.
    pub(super) wrong: Vec<String>,
}

fn number_of(pair: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    pair.hash(&mut hasher);
    hasher.finish()
}

/// Compares this many rules with this many objects each, as far as they are valid.
pub(super) fn compare(
    solver: &mut dyn Solver,
    dice: &mut Dice,
    of: Of,
    rules: usize,
    objects: usize,
) -> Compared {
    let subject = Subject::new(&definition(&[]), None).expect("a definition");
    let mut found = Compared::default();
    for _ in 0..rules {
        let Some((rule, side)) = side(dice, of, &subject) else { continue };
        let settled = |dice: &mut Dice| subject.settled(&object(dice));
        let requests: Vec<(Value, Option<Value>)> = (0..objects)
            .filter_map(|_| {
                let new = settled(dice)?;
                Some(if of == Of::Update { (new, Some(settled(dice)?)) } else { (new, None) })
            })
            .collect();
        // Few at once: a solver has seconds for what it is asked.
        for requests in requests.chunks(20) {
            let Ok(script) = agreement(&subject, &side, requests, 3) else {
                found.undecided += 1;
                continue;
            };
            let printed = solver.ask(&script).expect("an answer");
            let answers: Vec<&str> = printed.lines().collect();
            // Solvers are slow at times; what they did not answer is not compared.
            let answered = answers.iter().take_while(|answer| matches!(**answer, "sat" | "unsat")).count();
            found.silent += requests.len() - answered / 3;
            for ((new, old), answers) in requests.iter().zip(answers[..answered].chunks_exact(3)) {
                let said = side.said(&subject, new, old.as_ref());
                found.pairs.push(number_of((&rule, new.to_string(), old.as_ref().map(Value::to_string))));
                if !agree(answers, &said, is_put_together(&rule)) {
                    found.wrong.push(format!("{rule}\n    {new}\n    {old:?}\n    {answers:?} {said:?}"));
                }
            }
        }
    }
    found
}

fn agrees(of: Of, rules: usize, objects: usize) {
    if Program::installed().len() == 2 {
        let found = compare(&mut Soon, &mut Dice::new(), of, rules, objects);
        let (compared, wrong) = (found.pairs.len(), found.wrong);
        tell(&format!(
            "{of:?}: {compared} pairs, {} differ; {} not answered, {} scripts undecided",
            wrong.len(),
            found.silent,
            found.undecided
        ));
        assert!(
            wrong.is_empty(),
            "{} of {compared} differ:\n{}",
            wrong.len(),
            wrong[..wrong.len().min(8)].join("\n")
        );
        assert!(compared > rules, "{compared} were compared");
    }
}

#[test]
fn terms_and_the_engine_agree_on_creations() {
    agrees(Of::Creation, 30, 20);
}

#[test]
fn terms_and_the_engine_agree_on_updates() {
    agrees(Of::Update, 20, 20);
}

#[test]
fn terms_and_the_engine_agree_on_policies() {
    agrees(Of::Policy, 20, 20);
}
