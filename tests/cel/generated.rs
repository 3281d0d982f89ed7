//! Well-typed expressions and conforming documents, made from a tape of bytes: whoever shortens or lowers the tape gets
//! a simpler expression, which is how property tests shrink and how fuzzing goes on from what it found.
//!
//! Every expression is about `self`, an object of [`declared`]'s type. Included by each program that needs it.

use std::sync::Arc;

use admit_cel::{DeclField, DeclKind, DeclType, ListType, Type};
use serde_json::{Value as Json, json};

/// The types of expressions that are generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Bool,
    Int,
    Double,
    String,
    Ints,
    Strings,
}

const KINDS: [Kind; 6] = [Kind::Bool, Kind::Int, Kind::Double, Kind::String, Kind::Ints, Kind::Strings];

/// A tape of choices; past its end every choice is the first.
#[derive(Debug)]
pub(crate) struct Tape<'t> {
    bytes: &'t [u8],
    at: usize,
    /// Iteration variables in sight.
    locals: Vec<(String, Kind)>,
}

impl<'t> Tape<'t> {
    pub(crate) fn new(bytes: &'t [u8]) -> Self {
        Self { bytes, at: 0, locals: Vec::new() }
    }

    fn pick(&mut self, choices: usize) -> usize {
        let byte = self.bytes.get(self.at).copied().unwrap_or_default();
        self.at += 1;
        usize::from(byte) % choices
    }

    /// One of several texts.
    fn one(&mut self, of: &[&str]) -> String {
        of[self.pick(of.len())].to_owned()
    }

    /// A document of the declared type.
    pub(crate) fn document(&mut self) -> Json {
        let double = [0.0, 1.5, -2.25, 1e300][self.pick(4)];
        let mut document = json!({
            "b": self.pick(2) == 1,
            "i": self.int(),
            "j": self.int(),
            "d": double,
            "s": self.word(),
            "t": self.word(),
            "l": (0..self.pick(6)).map(|_| self.int()).collect::<Vec<_>>(),
            "n": (0..self.pick(6)).map(|_| self.word()).collect::<Vec<_>>(),
            "m": (0..self.pick(5)).map(|_| (self.word(), json!(self.int()))).collect::<serde_json::Map<_, _>>(),
        });
        if self.pick(2) == 1 {
            document["o"] = json!({"a": self.word(), "c": self.int()});
            if self.pick(2) == 1 {
                document["o"]["p"] = json!({"q": self.word()});
            }
            if self.pick(2) == 1 {
                document["o"]["p"]["r"] = json!(self.int());
            }
        }
        document
    }

    fn int(&mut self) -> i64 {
        [0, 1, -1, 2, 7, 100, i64::MAX, i64::MIN][self.pick(8)]
    }

    fn word(&mut self) -> String {
        self.one(&["", "a", "b", "ab", "abc", "key", "a,b", "é", "10"])
    }

    /// An expression of any type.
    pub(crate) fn expression(&mut self) -> String {
        let kind = KINDS[self.pick(KINDS.len())];
        self.of(kind, 4)
    }

    fn of(&mut self, kind: Kind, depth: usize) -> String {
        if depth == 0 || self.pick(4) == 0 {
            return self.leaf(kind);
        }
        let depth = depth - 1;
        if self.pick(12) == 1 {
            let parts = [self.of(Kind::Bool, depth), self.of(kind, depth), self.of(kind, depth)];
            return format!("({} ? {} : {})", parts[0], parts[1], parts[2]);
        }
        match kind {
            Kind::Bool => self.bool(depth),
            Kind::Int => self.number(depth),
            Kind::Double => self.double(depth),
            Kind::String => self.string(depth),
            Kind::Ints => self.list(Kind::Int, depth),
            Kind::Strings => self.list(Kind::String, depth),
        }
    }

    fn leaf(&mut self, kind: Kind) -> String {
        let locals: Vec<String> =
            self.locals.iter().filter(|(_, of)| *of == kind).map(|(name, _)| name.clone()).collect();
        if !locals.is_empty() && self.pick(2) == 0 {
            return locals[self.pick(locals.len())].clone();
        }
        self.one(match kind {
            Kind::Bool => &[
                "self.b",
                "true",
                "false",
                "has(self.o)",
                "has(self.o.a)",
                "has(self.o.p.q)",
                "(has(self.o) && has(self.o.p))",
                "self.o.?p.q.hasValue()",
            ],
            Kind::Int => &[
                "self.i",
                "self.j",
                "1",
                "0",
                "-3",
                "self.o.c",
                "self.m['a']",
                "self.l[0]",
                "self.o.p.r",
                "self.?o.c.orValue(5)",
                "self.o.?p.r.orValue(6)",
            ],
            Kind::Double => &["self.d", "1.0", "0.5", "-1e10"],
            Kind::String => {
                &["self.s", "self.t", "'a'", "''", "'ab'", "self.o.a", "self.n[0]", "'\\n\"'", "self.o.p.q"]
            }
            Kind::Ints => &["self.l", "[1, 2]", "[self.i]"],
            Kind::Strings => &["self.n", "['a', 'b']", "[self.s, self.t]"],
        })
    }

    fn bool(&mut self, depth: usize) -> String {
        match self.pick(12) {
            0 => format!("({} && {})", self.of(Kind::Bool, depth), self.of(Kind::Bool, depth)),
            1 => format!("({} || {})", self.of(Kind::Bool, depth), self.of(Kind::Bool, depth)),
            2 => format!("!{}", self.of(Kind::Bool, depth)),
            3 => {
                let kind = KINDS[self.pick(KINDS.len())];
                let operator = self.one(&["==", "!="]);
                format!("({} {operator} {})", self.of(kind, depth), self.of(kind, depth))
            }
            4 => {
                let kind = [Kind::Int, Kind::String, Kind::Double, Kind::Bool][self.pick(4)];
                let operator = self.one(&["<", "<=", ">", ">="]);
                format!("({} {operator} {})", self.of(kind, depth), self.of(kind, depth))
            }
            5 => {
                let function = self.one(&["contains", "startsWith", "endsWith"]);
                format!("{}.{function}({})", self.of(Kind::String, depth), self.of(Kind::String, depth))
            }
            6 => format!("({} in {})", self.of(Kind::Int, depth), self.of(Kind::Ints, depth)),
            7 => format!("({} in {})", self.of(Kind::String, depth), self.of(Kind::Strings, depth)),
            8 => format!("({} in self.m)", self.of(Kind::String, depth)),
            9 => {
                let pattern = self.one(&["'^a'", "'b$'", "'[a-z]+'", "'^(a|b)*$'"]);
                format!("{}.matches({pattern})", self.of(Kind::String, depth))
            }
            10 => self.quantifier(Kind::Int, depth),
            _ => self.quantifier(Kind::String, depth),
        }
    }

    fn quantifier(&mut self, kind: Kind, depth: usize) -> String {
        let (range, quantifier) = (self.range(kind, depth), self.one(&["all", "exists", "exists_one"]));
        let (name, body) = self.under(kind, Kind::Bool, depth);
        format!("{range}.{quantifier}({name}, {body})")
    }

    fn number(&mut self, depth: usize) -> String {
        match self.pick(8) {
            0..=4 => {
                let operator = self.one(&["+", "-", "*", "/", "%"]);
                format!("({} {operator} {})", self.of(Kind::Int, depth), self.of(Kind::Int, depth))
            }
            5 => format!("size({})", self.of(Kind::String, depth)),
            6 => format!("{}.size()", self.of(Kind::Ints, depth)),
            _ => format!("int({})", self.of(Kind::Double, depth)),
        }
    }

    fn double(&mut self, depth: usize) -> String {
        match self.pick(3) {
            0 => format!("double({})", self.of(Kind::Int, depth)),
            _ => {
                let operator = self.one(&["+", "-", "*", "/"]);
                format!("({} {operator} {})", self.of(Kind::Double, depth), self.of(Kind::Double, depth))
            }
        }
    }

    fn string(&mut self, depth: usize) -> String {
        match self.pick(3) {
            0 => format!("string({})", self.of(Kind::Int, depth)),
            1 => format!("({} + {})", self.of(Kind::String, depth), self.of(Kind::String, depth)),
            _ => format!("{}[{}]", self.of(Kind::Strings, depth), self.of(Kind::Int, depth)),
        }
    }

    fn list(&mut self, item: Kind, depth: usize) -> String {
        let kind = if item == Kind::Int { Kind::Ints } else { Kind::Strings };
        match self.pick(4) {
            0 => format!("[{}, {}]", self.of(item, depth), self.of(item, depth)),
            1 => format!("({} + {})", self.of(kind, depth), self.of(kind, depth)),
            2 => {
                let range = self.range(item, depth);
                let (name, body) = self.under(item, Kind::Bool, depth);
                format!("{range}.filter({name}, {body})")
            }
            _ => {
                let from = [Kind::Int, Kind::String][self.pick(2)];
                let range = self.range(from, depth);
                let (name, body) = self.under(from, item, depth);
                format!("{range}.map({name}, {body})")
            }
        }
    }

    /// What a macro walks over to get items of a type: a list, or the keys of the map.
    fn range(&mut self, item: Kind, depth: usize) -> String {
        if item == Kind::String && self.pick(3) == 1 {
            return "self.m".to_owned();
        }
        self.of(if item == Kind::Int { Kind::Ints } else { Kind::Strings }, depth)
    }

    /// A new iteration variable, and an expression that may name it.
    fn under(&mut self, variable: Kind, body: Kind, depth: usize) -> (String, String) {
        let name = format!("x{}", self.locals.len());
        self.locals.push((name.clone(), variable));
        let body = self.of(body, depth);
        self.locals.pop();
        (name, body)
    }
}

/// The type of `self`, with bounds that every generated document keeps.
pub(crate) fn declared() -> Arc<DeclType> {
    // Schemas of Kubernetes say a size of zero for numbers, whose comparison its meter counts as one.
    let scalar = |ty: Type, max: u64| {
        Arc::new(DeclType { max_elements: Some(max), ..DeclType::unbounded(DeclKind::Scalar(ty)) })
    };
    let string = || scalar(Type::String, 12);
    let int = || scalar(Type::Int, 1);
    let list = |items: Arc<DeclType>| {
        let kind = DeclKind::List { items, list_type: ListType::Atomic };
        Arc::new(DeclType { max_elements: Some(5), ..DeclType::unbounded(kind) })
    };
    let map = DeclKind::Map { key: string(), value: int() };
    let map = Arc::new(DeclType { max_elements: Some(4), ..DeclType::unbounded(map) });
    let innermost = object("innermost", vec![("q", string()), ("r", int())]);
    let inner = object("inner", vec![("a", string()), ("c", int()), ("p", innermost)]);
    let fields = vec![
        ("b", scalar(Type::Bool, 1)),
        ("d", scalar(Type::Double, 1)),
        ("i", int()),
        ("j", int()),
        ("l", list(int())),
        ("m", map),
        ("n", list(string())),
        ("o", inner),
        ("s", string()),
        ("t", string()),
    ];
    object("document", fields)
}

fn object(name: &str, fields: Vec<(&str, Arc<DeclType>)>) -> Arc<DeclType> {
    let field = |(name, decl): (&str, Arc<DeclType>)| DeclField {
        name: name.into(),
        cel_name: name.into(),
        decl,
        required: false,
    };
    let fields = fields.into_iter().map(field).collect();
    Arc::new(DeclType::unbounded(DeclKind::Object { name: name.into(), fields }))
}
