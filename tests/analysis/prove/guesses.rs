//! Claims that hold over values that are not followed: no object that is thrown may break one. The fields may be no text, absent, null
//! or of another type than the one that a function wants, which is where an expression fails that looks as if it could not.

use admit_analysis::prove::{Inquiry, Question, Side, Subject, Verdict};
use serde_json::{Map, Value, json};

use super::dice::Dice;
use super::solvers::{Both, Program, tell};

const FIELDS: &[&str] = &["port", "any", "name", "opt", "none", "when", "day", "mode", "count", "ratio"];

fn definition(rules: &[&str]) -> Value {
    let rules: Vec<Value> = rules.iter().map(|rule| json!({"rule": rule})).collect();
    let spec = json!({
        "type": "object",
        "required": ["port", "name"],
        "x-kubernetes-validations": rules,
        "properties": {
            "port": {"x-kubernetes-int-or-string": true},
            "any": {"x-kubernetes-preserve-unknown-fields": true},
            "name": {"type": "string", "maxLength": 10},
            "opt": {"type": "string", "maxLength": 10},
            "none": {"type": "string", "maxLength": 10, "nullable": true},
            "when": {"type": "string", "format": "date-time", "maxLength": 30},
            "day": {"type": "string", "format": "date", "maxLength": 10},
            "mode": {"type": "string", "enum": ["a", "B", "1"]},
            "count": {"type": "integer"},
            "ratio": {"type": "number"},
            "list": {"type": "array", "maxItems": 3, "items": {"type": "string", "maxLength": 5}},
            "ports": {"type": "array", "maxItems": 3, "items": {"x-kubernetes-int-or-string": true}},
            "tags": {"type": "array", "maxItems": 3, "x-kubernetes-list-type": "set", "items": {"type": "string", "maxLength": 5}},
            "map": {"type": "object", "maxProperties": 3, "additionalProperties": {"type": "string", "maxLength": 5}},
        },
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "things.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "required": ["spec"], "properties": {"spec": spec}}}}]},
    })
}

fn object(dice: &mut Dice) -> Value {
    let choices: &[(&str, Value)] = &[
        ("port", json!([0, 7, "", "x", "80", "1.2.3.4"])),
        ("any", json!([{}, [], "x", 3, true, 1.5, {"a": 1}, ["x"]])),
        ("name", json!(["", "a", "X", "1.2.3.4", "10.0.0.0/8", "http://a", "1Gi", "a,b"])),
        ("opt", json!(["", "x"])),
        ("none", json!([null, "a"])),
        ("when", json!(["2020-01-01T00:00:00Z"])),
        ("day", json!(["2020-01-01"])),
        ("mode", json!(["a", "B", "1"])),
        ("count", json!([0, 1, -1])),
        ("ratio", json!([0, 1, -0.5])),
        ("list", json!([[], ["a"], ["x", "y"]])),
        ("ports", json!([[], [1], ["x", 2]])),
        ("tags", json!([[], ["a"], ["x", "http://a"]])),
        ("map", json!([{}, {"a": "x"}, {"b": "a"}])),
    ];
    let mut spec = Map::new();
    for (name, values) in choices {
        let values = values.as_array().expect("values");
        if matches!(*name, "port" | "name") || dice.roll(5) < 3 {
            spec.insert((*name).to_owned(), values[dice.roll(values.len())].clone());
        }
    }
    json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x", "namespace": "y"}, "spec": spec})
}

fn field(dice: &mut Dice) -> String {
    match dice.roll(12) {
        0 => format!("{:?}", dice.pick(&["x", "a,b", "1Gi", "", "1.2.3.4"])),
        1 => {
            let other = [
                "self.?list[?0].orValue('q')",
                "self.list[0]",
                "self.map.a",
                "self.ports[0]",
                "self.?any.a.orValue('')",
            ];
            dice.pick(&other).to_owned()
        }
        2..=4 => dice.pick(&["self.any", "self.any", "self.port", "self.none"]).to_owned(),
        _ => format!("self.{}", dice.pick(FIELDS)),
    }
}

fn value(dice: &mut Dice, depth: usize) -> String {
    if depth == 0 || dice.roll(3) == 0 {
        return field(dice);
    }
    let of = value(dice, depth - 1);
    match dice.roll(9) {
        0 => format!("{of}.lowerAscii()"),
        1 => format!("{of}.trim()"),
        2 => format!("{of}.replace('a', 'b')"),
        3 => format!("{of}.upperAscii()"),
        4 => format!("{of}.split(',')[0]"),
        5 => format!("{of}.substring(0)"),
        6 => format!("string({of})"),
        7 => format!("{of}.reverse()"),
        _ => format!("{of}.split(',', 2).join('-')"),
    }
}

fn claim(dice: &mut Dice, depth: usize) -> String {
    let of = value(dice, depth);
    match dice.roll(21) {
        0 => format!("{of}.contains('x')"),
        1 => format!("{of}.startsWith({})", field(dice)),
        2 => format!("isURL({of})"),
        3 => format!("isIP({of})"),
        4 => format!("isCIDR({of})"),
        5 => format!("isQuantity({of})"),
        6 => format!("{of}.matches('^[a-z]*$')"),
        7 => format!("{of}.matches({})", field(dice)),
        8 => format!("{of}.size() > 1"),
        9 => format!("size({of}) < 4"),
        10 => format!("{of} == {}", value(dice, 1)),
        11 => format!("{of}.endsWith('b')"),
        12 => format!("!{of}.contains('q')"),
        13 => format!("{of}.split(',').size() < 3"),
        14 => format!("{of}.split(',').exists(p, p.lowerAscii() == 'x')"),
        15 => format!("{of} in self.list"),
        16 => {
            let list = dice.pick(&["list", "ports", "tags"]);
            let of = dice.pick(&[
                "isURL(p)",
                "p.upperAscii().contains('X')",
                "p.matches(self.name)",
                "p != self.name.reverse()",
            ]);
            format!("self.{list}.{}(p, {of})", dice.pick(&["all", "exists", "exists_one"]))
        }
        17 => format!("self.map.{}(k, isIP(self.map[k]) || isURL(k))", dice.pick(&["all", "exists"])),
        18 => format!("({} ? {} : {})", claim(dice, 0), claim(dice, 1), claim(dice, 0)),
        19 => format!("!({})", claim(dice, 1)),
        _ => format!("{of}.find('[0-9]+') == ''"),
    }
}

/// The claim where the fields are there that it names, and some of them of a type.
fn guarded(dice: &mut Dice, claim: &str) -> String {
    let mut parts: Vec<String> = FIELDS
        .iter()
        .filter(|field| !matches!(**field, "port" | "name") && claim.contains(&format!("self.{field}")))
        .map(|field| format!("!has(self.{field})"))
        .collect();
    for (path, there) in
        [("list", "list.size() == 0"), ("ports", "ports.size() == 0"), ("map", "map.size() == 0")]
    {
        if claim.contains(&format!("self.{path}")) {
            parts.push(format!("!has(self.{path}) || self.{there}"));
        }
    }
    if claim.contains("self.map.a") {
        parts.push("!('a' in self.map)".to_owned());
    }
    for (path, kind) in
        [("port", "int"), ("port", "string"), ("any", "string"), ("any", "map"), ("none", "null_type")]
    {
        if claim.contains(&format!("self.{path}")) && dice.roll(3) == 0 {
            parts.push(format!("type(self.{path}) {} {kind}", dice.pick(&["==", "!="])));
        }
    }
    parts.push(claim.to_owned());
    parts.join(" || ")
}

fn rule(dice: &mut Dice) -> String {
    let one = claim(dice, 2);
    let one = guarded(dice, &one);
    match dice.roll(4) {
        0 => {
            let other = claim(dice, 1);
            format!("({one}) {} ({})", dice.pick(&["||", "&&"]), guarded(dice, &other))
        }
        _ => one,
    }
}

/// A rule that says the same, more or less, or something near it.
fn neighbour(dice: &mut Dice, rule: &str) -> String {
    let other = claim(dice, 1);
    let other = guarded(dice, &other);
    match dice.roll(8) {
        0 => format!("!(!({rule}))"),
        1 => format!("({rule}) || ({other})"),
        2 => format!("({other}) || ({rule})"),
        3 => format!("({rule}) && ({other})"),
        4 => format!("({other}) && ({rule})"),
        5 => format!("({other}) ? ({rule}) : ({rule})"),
        6 => rule.replace("self.any", "self.port").replace("'x'", "'b'"),
        _ => rule.replace("self.none", "self.opt").replace("self.list", "self.tags"),
    }
}

fn policy(dice: &mut Dice, rule: &str, subject: &Subject) -> Option<Side> {
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "random"},
        "spec": {
            "failurePolicy": dice.pick(&["Fail", "Fail", "Ignore"]),
            "matchConstraints": {"resourceRules": [{"apiGroups": ["example.com"], "apiVersions": ["v1"],
                "operations": ["CREATE"], "resources": ["things"]}]},
            "validations": [{"expression": rule.replace("self.", "object.spec.")}],
        },
    });
    Side::policy(&policy, subject).ok()
}

/// A claim, and whether an object breaks it.
struct Claim<'s> {
    question: Question,
    left: &'s Side,
    right: Option<&'s Side>,
}

impl Claim<'_> {
    fn is_broken_by(&self, subject: &Subject, object: &Value) -> bool {
        let left = self.left.said(subject, object, None);
        let is_denied = self.right.map(|right| right.said(subject, object, None).denied);
        match self.question {
            Question::NoErrors => left.failed,
            Question::Implies => !left.denied && is_denied == Some(true),
            Question::Equivalent => is_denied != Some(left.denied),
            Question::AlwaysDenies => !left.denied,
            Question::NeverDenies => left.denied,
        }
    }
}

/// What came of the claims.
#[derive(Default)]
struct Tally {
    asked: usize,
    held: usize,
    refuted: usize,
    wrong: Vec<String>,
}

impl Tally {
    fn ask(&mut self, subject: &Subject, objects: &[Value], claim: &Claim<'_>, told: &str) {
        let &Claim { question, left, right } = claim;
        let inquiry = Inquiry { question, subject, left, right, that: None, items: 3 };
        self.asked += 1;
        match inquiry.decide(Some(&mut Both::default()), &|| false) {
            Ok(Verdict::Holds { .. }) => {
                self.held += 1;
                if let Some(object) = objects.iter().find(|object| claim.is_broken_by(subject, object)) {
                    self.wrong.push(format!("{question:?} holds of {told}\n    {object}"));
                }
            }
            Ok(Verdict::Refuted(_)) => self.refuted += 1,
            Ok(Verdict::Undecided(_)) => {}
            Err(why) => self.wrong.push(format!("{question:?} {told}\n    {why:?}")),
        }
    }
}

/// `ADMIT_RULES` rules, each asked about in a definition and in a policy, alone and beside another one.
#[test]
fn what_holds_of_values_that_are_not_followed_holds_of_every_object() {
    if Program::installed().len() < 2 {
        return;
    }
    let rules = std::env::var("ADMIT_RULES").ok().and_then(|rules| rules.parse().ok()).unwrap_or(12);
    let dice = &mut Dice::new();
    let subject = Subject::new(&definition(&[]), None).expect("a definition");
    let objects: Vec<Value> = (0..160).filter_map(|_| subject.settled(&object(dice))).collect();
    assert!(objects.len() > 60, "{} are valid", objects.len());
    let mut tally = Tally::default();
    for _ in 0..rules {
        let rule = rule(dice);
        let near = neighbour(dice, &rule);
        let typed = |rule: &str| Side::definition(&definition(&[rule]), &subject).ok();
        let plain = |dice: &mut Dice| Some((policy(dice, &rule, &subject)?, policy(dice, &near, &subject)));
        let pairs = [typed(&rule).map(|left| (left, typed(&near))), plain(dice)];
        for (left, right) in pairs.iter().flatten() {
            for question in [Question::NoErrors, Question::NeverDenies] {
                tally.ask(&subject, &objects, &Claim { question, left, right: None }, &rule);
            }
            for question in [Question::Implies, Question::Equivalent] {
                let Some(right) = right else { continue };
                let claim = Claim { question, left, right: Some(right) };
                tally.ask(&subject, &objects, &claim, &format!("{rule}\n    beside {near}"));
            }
        }
    }
    let Tally { asked, held, refuted, wrong } = tally;
    tell(&format!("{asked} asked: {held} hold, {refuted} are refuted, {} wrong", wrong.len()));
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(held > rules / 4 && refuted > rules / 4, "{held} of {asked} hold, {refuted} are refuted");
}
