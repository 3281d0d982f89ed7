//! Ways through documents that share a beginning: each expression has its value whatever the one before it looked at,
//! in documents that were read and in `serde_json` values, observed and unobserved.

use admit_cel::{
    Bindings, Env, Evaluation, Extra, Mode, Node, Program, ReadLimits, Trace, Type, Value, Version, document,
};
use bumpalo::Bump;
use serde_json::{Value as Json, json};

fn documents() -> [(&'static str, Json); 2] {
    let item = |spec: Json| json!({"spec": spec, "name": "n"});
    let this = json!({
        "spec": {"a": {"b": {"c": 1}, "limits": {"memory": "1Mi"}}, "n": null, "text": "t"},
        "items": [
            item(json!({"meta": {"name": "x", "deep": {"er": 1}}})),
            item(json!({"meta": {"name": "y"}})),
            item(json!({"other": 1})),
            item(json!({"meta": "text"})),
            item(json!({"meta": {"name": "z", "deep": {"er": 2}}})),
        ],
    });
    let old = json!({"spec": {"a": {"b": {"c": 2}}}, "items": []});
    [("self", this), ("oldSelf", old)]
}

fn outcome(program: &Program, bindings: &Bindings<'_>, arena: &Bump) -> (String, u64) {
    let mut cx = Evaluation::new(arena);
    let outcome = program.eval(bindings, &mut cx);
    (outcome.map_or_else(|error| error.to_string(), |value| value.preview(500)), cx.cost())
}

const CASES: &[(&str, &str)] = &[
    ("has(self.spec.a) && has(self.spec.a.b) && self.spec.a.b.c == 1", "true"),
    ("has(self.spec.a.b) && has(oldSelf.spec.a.b) && oldSelf.spec.a.b.c == self.spec.a.b.c + 1", "true"),
    ("has(self.spec.a.limits) && 'memory' in self.spec.a.limits && !('cpu' in self.spec.a.limits)", "true"),
    ("has(self.spec.a.b) && self.spec.?a.b.c.hasValue()", "true"),
    (
        "has(self.spec.a.b) && has(self.spec.a.limits) ? self.?spec.a.limits.memory : optional.none()",
        "optional.of(\"1Mi\")",
    ),
    ("has(self.spec.a.b) ? self.spec.a.?b.x : optional.of(dyn(1))", "optional.none()"),
    ("has(self.spec.a.b) && self.spec.a[?'b'].c == optional.of(dyn(1))", "true"),
    ("has(self.spec.a.b) && self.spec.?a.b.x.orValue(3) == 3", "true"),
    ("has(self.spec.a.b) ? self.spec.text : ''", "\"t\""),
    ("has(self.spec.a.b) && has(self.spec.a.x)", "false"),
    ("has(self.spec.a.b) && self.spec.a.x == 1", "no such key: x"),
    ("has(self.spec.text) && has(self.spec.text.b)", "false"),
    ("has(self.spec.n) && has(self.spec.n.b)", "false"),
    ("has(self.spec.a.b) && self.spec.a['b']['c'] == 1 && self['spec'].a.b.c == 1", "true"),
    (
        "self.items.map(i, has(i.spec.meta) && has(i.spec.meta.name) ? i.spec.meta.name : '-')",
        "[\"x\", \"y\", \"-\", \"-\", \"z\"]",
    ),
    ("self.items.filter(i, has(i.spec.meta.deep) && i.spec.meta.deep.er > 0).size()", "no such key: meta"),
    (
        "self.items.filter(i, has(i.spec.meta) && has(i.spec.meta.deep) && i.spec.meta.deep.er > 0).size()",
        "2",
    ),
    (
        "self.items.map(i, self.items.map(j, has(i.spec.meta) && has(j.spec.meta) && i.spec.meta == j.spec.meta)\
         .filter(same, same).size())",
        "[1, 1, 0, 1, 1]",
    ),
    (
        "self.items.map(i, cel.bind(b, i.spec, has(b.meta) && has(b.meta.name) ? b.meta.name : '-'))",
        "[\"x\", \"y\", \"-\", \"-\", \"z\"]",
    ),
    (
        "self.items.map(i, has(i.spec.meta)).size() == 5 && \
         self.items.map(i, has(i.spec.meta.name))[4] && has(self.items[0].spec.meta.name)",
        "no such key: meta",
    ),
];

#[test]
fn a_way_that_was_gone_before_leads_to_the_same_value() {
    let env = Env::kubernetes(Version(1, 36), Mode::New)
        .with_library(Extra::Bindings)
        .with_variables([("self", Type::Dyn), ("oldSelf", Type::Dyn)]);
    let documents = documents();
    let texts = documents.each_ref().map(|(name, json)| (*name, json.to_string()));
    for (text, expected) in CASES {
        let program = env.program(&env.compile(text).unwrap()).unwrap();
        let arena = Bump::new();
        let (mut viewed, mut read) = (Bindings::new(&program), Bindings::new(&program));
        for ((name, json), (_, text)) in documents.iter().zip(&texts) {
            viewed.set(name, Value::untyped(Node::from_json(json)));
            let node = document::parse(&arena, text.as_bytes(), &ReadLimits::default()).unwrap();
            read.set(name, Value::untyped(node));
        }
        let (value, cost) = outcome(&program, &viewed, &arena);
        assert_eq!(value, *expected, "{text}");
        assert_eq!(outcome(&program, &read, &arena), (value.clone(), cost), "{text}, read");
        let (mut trace, mut cx) = (Trace::new(1_000), Evaluation::new(&arena));
        let observed = program.observe(&viewed, &mut cx, &mut trace);
        let observed = observed.map_or_else(|error| error.to_string(), |value| value.preview(500));
        assert_eq!((observed, cx.cost()), (value, cost), "{text}, observed");
    }
}
