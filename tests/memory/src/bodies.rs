//! Generates the worst known request bodies, each of about the requested number of bytes.

use std::fmt::Write as _;
use std::ops::Range;

use serde_json::{Value, json};

/// The name of an attack, and its body.
pub type Named = (&'static str, String);

/// Returns JSON whose decoded values take far more memory than its bytes.
#[must_use]
pub fn json(size: usize) -> Vec<Named> {
    let key = "k".repeat(size / 2);
    let deep: String = (0..400).map(|_| format!("{{\"{}\":", "k".repeat(size / 1_000))).collect();
    vec![
        ("repeats under a long name", format!("{{\"{key}\":{}}}", members("\"a\":1", size / 2))),
        ("repeats far down", format!("{deep}{}{}", members("\"a\":1", size / 2), "}".repeat(400))),
        ("numbers", list("0", size)),
        ("empty lists", list("[]", size)),
        ("empty maps", list("{}", size)),
        ("small maps", list("{\"\":0}", size)),
        ("names", named(size, "0")),
        ("empty texts", list("\"\"", size)),
        ("maps in maps", list(&format!("{}0{}", "{\"\":".repeat(300), "}".repeat(300)), size)),
        ("lists in lists", list(&format!("{}{}", "[".repeat(300), "]".repeat(300)), size)),
        ("one text", format!("\"{}\"", "x".repeat(size))),
        ("escapes", format!("\"{}\"", "\\u0000".repeat(size / 6))),
        ("no UTF-8 is nearly there", format!("[{}", list("0", size))),
    ]
}

/// Returns YAML whose decoded values take far more memory than its bytes.
#[must_use]
pub fn yaml(size: usize) -> Vec<Named> {
    let text = "x".repeat(size / 3);
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..9 {
        let _ = writeln!(laughs, "a{level}: &a{level} [{}]", vec![format!("*a{}", level - 1); 10].join(", "));
    }
    let anchors: String = (0..200).map(|level| format!("&a{level} [")).collect();
    vec![
        ("aliases of a text", format!("x: &a \"{text}\"\ny: {}\n", list("*a", size * 2 / 3))),
        ("aliases as names", format!("x: &a \"{text}\"\ny: [{}]\n", "{*a : 1},".repeat(size / 14))),
        ("laughs", laughs),
        ("nested anchors", format!("{anchors}\"{text}\"{}", "]".repeat(200))),
        ("merges", format!("x: &a {{{}b: 1}}\ny:\n{}", pairs(size / 3), "- {<<: *a}\n".repeat(size / 20))),
        ("items in a line", list("a", size)),
        ("keys in a line", format!("{{{}b}}", "a,".repeat(size / 2))),
        ("items in lines", "- \n".repeat(size / 3)),
        ("keys in lines", "a: 1\n".repeat(size / 5)),
        ("documents", "---\na\n".repeat(size / 6)),
        ("names", pairs(size).replace(", ", "\n")),
    ]
}

/// Returns policies and definitions that are expensive to compile, and invalid files.
#[must_use]
pub fn policies(size: usize) -> Vec<Named> {
    let policy = |validations: String| {
        format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {{name: p}}\nspec:\n  \
             matchConstraints:\n    resourceRules: [{{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], resources: \
             ['*']}}]\n  validations:\n{validations}"
        )
    };
    let unknown = "a: {b: 1}\n".repeat(size / 10);
    vec![
        ("validations", policy("  - expression: 'true'\n".repeat(size / 24))),
        ("unknown fields", policy(format!("  - {{expression: 'true', {}}}\n", pairs(size)))),
        ("a long expression", policy(format!("  - expression: \"true{}\"\n", "&&true".repeat(size / 6)))),
        ("a long text", policy(format!("  - expression: \"'{}' == ''\"\n", "x".repeat(size)))),
        ("no policies", unknown),
        ("documents of no kind", "---\n{a: 1}\n".repeat(size / 11)),
    ]
}

/// Returns a distinct regular expression for each number that takes megabytes when compiled; the first exceeds the limit alone.
fn pattern(number: usize) -> String {
    let times = if number == 0 { 1_000 } else { 63 };
    format!("^[\\pL\\pN]{{1,{times}}}x{number}$")
}

/// Returns a policy, a definition, and one with rules, each with so many patterns beginning with number `first`.
#[must_use]
pub fn patterns(first: usize, count: usize) -> [(&'static str, Value); 3] {
    let numbers = first..first + count;
    let property = |n| json!({"type": "string", "pattern": pattern(n)});
    let with_rule = |n| {
        let rule = json!({"rule": format!("self.matches(r'{}')", pattern(n))});
        json!({"type": "string", "maxLength": 10, "x-kubernetes-validations": [rule]})
    };
    [
        ("a policy", policy_of(numbers.clone())),
        ("a definition", patterned(numbers.clone(), property)),
        ("rules of a definition", patterned(numbers, with_rule)),
    ]
}

fn policy_of(numbers: Range<usize>) -> Value {
    let validation = |n| json!({"expression": format!("object.metadata.name.matches(r'{}')", pattern(n))});
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {"resourceRules": [
                {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]},
            ]},
            "validations": numbers.map(validation).collect::<Value>(),
        },
    })
}

fn patterned(numbers: Range<usize>, property: impl Fn(usize) -> Value) -> Value {
    let properties: serde_json::Map<_, _> = numbers.map(|n| (format!("p{n}"), property(n))).collect();
    definition(&json!({"type": "object", "properties": properties}))
}

/// Returns a definition whose objects' `spec` has this schema.
#[must_use]
pub fn definition(spec: &Value) -> Value {
    let schema = json!({"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "ps.e.x"},
        "spec": {
            "group": "e.x", "scope": "Namespaced",
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}],
            "names": {"plural": "ps", "singular": "p", "kind": "P", "listKind": "PList"},
        },
    })
}

/// Returns a Pod of so many empty containers in protobuf.
#[must_use]
pub fn protobuf_pod(containers: usize) -> Vec<u8> {
    let field = |number: u8, bytes: &[u8]| {
        let mut out = vec![number << 3 | 2];
        varint(bytes.len(), &mut out);
        out.extend_from_slice(bytes);
        out
    };
    let spec: Vec<u8> = [0x12, 0].repeat(containers);
    let object = [field(1, &field(1, b"b")), field(2, &spec)].concat();
    let kind = [field(1, b"v1"), field(2, b"Pod")].concat();
    [vec![0x6b, 0x38, 0x73, 0], field(1, &kind), field(2, &object)].concat()
}

fn varint(mut number: usize, out: &mut Vec<u8>) {
    while number > 0x7f {
        out.push(u8::try_from(number & 0x7f).unwrap_or_default() | 0x80);
        number >>= 7;
    }
    out.push(u8::try_from(number).unwrap_or_default());
}

/// Returns `[ITEM,ITEM,…]` of about `size` bytes.
#[must_use]
pub fn list(item: &str, size: usize) -> String {
    let mut text = format!("[{item}");
    text.reserve(size);
    while text.len() < size {
        text.push(',');
        text.push_str(item);
    }
    text.push(']');
    text
}

/// Returns `{MEMBER,MEMBER,…}` of about `size` bytes.
fn members(member: &str, size: usize) -> String {
    let list = list(member, size);
    format!("{{{}}}", list.trim_matches(['[', ']']))
}

/// Returns `{"0":VALUE,"1":VALUE,…}` of about `size` bytes.
#[must_use]
pub fn named(size: usize, value: &str) -> String {
    let mut text = "{\"_\":".to_owned() + value;
    for number in 0.. {
        if text.len() >= size {
            break;
        }
        let _ = write!(text, ",\"{number:x}\":{value}");
    }
    text.push('}');
    text
}

/// Returns `0: 1, 1: 1, …` of about `size` bytes.
fn pairs(size: usize) -> String {
    let mut text = String::new();
    for number in 0.. {
        if text.len() >= size {
            break;
        }
        let _ = write!(text, "k{number:x}: 1, ");
    }
    text
}

/// Returns about `size` bytes of random pieces of a language, which are nearly valid; deterministic for a seed.
#[must_use]
pub fn generated(pieces: &[&str], seed: u64, size: usize) -> String {
    let mut state = seed | 1;
    let mut text = String::new();
    while text.len() < size {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let at = usize::try_from(state >> 33).unwrap_or_default() % pieces.len().max(1);
        let times = if state & 0x3f == 0 { 400 } else { 1 };
        (0..times).for_each(|_| text.push_str(pieces.get(at).copied().unwrap_or_default()));
    }
    text
}

/// The pieces for generated JSON.
pub const JSON: [&str; 16] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"a\":",
    "\"\"",
    "0,",
    "[],",
    "{},",
    "{\"a\":0},",
    "\"a\":1,",
    "null,",
    "1e9",
    "\"\\u0000\",",
];

/// The pieces for generated YAML.
pub const YAML: [&str; 16] = [
    "a: ",
    "- ",
    "\n",
    "\n  ",
    "&a ",
    "*a",
    "*a,",
    "[",
    "]",
    "{",
    "}",
    "<<: *a\n",
    "x",
    ", ",
    "--- \n",
    "\"xxxxxxxxxxxxxxxx\"",
];
