//! The parser: what it reads, what the printer gives back, and what it refuses however large the text.

use admit_cel::Source;
use admit_cel::syntax::{self, Ast, Expr, ExprId, Options, macros};

use crate::corpora::rows;

pub(crate) fn options() -> Options {
    let sets = [macros::STANDARD, macros::OPTIONAL, macros::TWO_VARIABLE, macros::LISTS];
    Options { optional_syntax: true, escaped_identifiers: true, macros: sets.into_iter().flatten().collect() }
}

fn parse(text: &str) -> Result<Ast, String> {
    syntax::parse(&Source::new(text), &options()).map_err(|error| error.to_string())
}

/// The tree without places and ids.
pub(crate) fn shape(ast: &Ast, id: ExprId) -> String {
    let of = |id: &ExprId| shape(ast, *id);
    match ast.expr(id) {
        Expr::Literal(literal) => format!("{literal:?}"),
        Expr::Ident(name) => name.to_string(),
        Expr::Select { operand, field, test_only } => format!("({}.{field} {test_only})", of(operand)),
        Expr::Call { function, target, args } => {
            let args: Vec<_> = args.iter().map(of).collect();
            let target = target.map(|target| of(&target)).unwrap_or_default();
            format!("({function} {target}| {})", args.join(" "))
        }
        Expr::List { elements, optional } => {
            format!("[{} {optional:?}]", elements.iter().map(of).collect::<Vec<_>>().join(" "))
        }
        Expr::Map(entries) | Expr::Struct { entries, .. } => {
            let entry = |e: &syntax::Entry| format!("{} {} {}", of(&e.key), of(&e.value), e.optional);
            format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(" "))
        }
        Expr::Comprehension(fold) => format!(
            "fold({} {} {:?} {} {} {} {} {})",
            of(&fold.range),
            fold.iter_var,
            fold.iter_var2,
            fold.accu_var,
            of(&fold.accu_init),
            of(&fold.condition),
            of(&fold.step),
            of(&fold.result)
        ),
    }
}

fn assert_printed_parses_alike(text: &str) {
    let ast = parse(text).unwrap();
    let printed = ast.to_string();
    let again = parse(&printed).unwrap_or_else(|error| panic!("{text}\nprinted {printed}\n{error}"));
    assert_eq!(shape(&ast, ast.root()), shape(&again, again.root()), "{text}\nprinted {printed}");
    assert_eq!(again.to_string(), printed, "printing twice");
}

#[test]
fn printing_gives_back_what_was_read() {
    let cases = [
        ("a&&b&&c&&d", "a && b && c && d"),
        ("a&&(b&&(c&&d))", "a && (b && (c && d))"),
        ("(a&&b)&&(c&&d)", "a && b && c && d"),
        ("a||b&&c", "a || b && c"),
        ("(a||b)&&c", "(a || b) && c"),
        ("1-(2-3)-4", "1 - (2 - 3) - 4"),
        ("-(1)", "-(1)"),
        ("- - x", "x"),
        ("-(-x)", "-(-x)"),
        ("!(!a)", "!(!a)"),
        ("(a?b:c)?d:e?f:g", "(a ? b : c) ? d : e ? f : g"),
        ("(a+b).c[0][?1].?d", "(a + b).c[0][?1].?d"),
        ("a.`b-c`", "a.`b-c`"),
        ("[?a,b,]", "[?a, b]"),
        ("{?'a':1,}", "{?\"a\": 1}"),
        ("x.y.Z{a:1,?b:c}", "x.y.Z{a: 1, ?b: c}"),
        ("has(a.b)&&l.all(x,x>0)", "has(a.b) && l.all(x, x > 0)"),
        ("l.map(x,x>0,l.exists(y,y==x))", "l.map(x, x > 0, l.exists(y, y == x))"),
        ("o.optMap(v,v+1).orValue(0)", "o.optMap(v, v + 1).orValue(0)"),
        (".a in .b.c()", ".a in .b.c()"),
        ("1.0/-2u.x+1e300", "1.0 / -2u.x + 1e300"),
        ("---0.x[1].f()", "-(0.x[1].f())"),
        ("-(1.0.map(x,x))", "-(1.0.map(x, x))"),
        ("-0.x", "0.x"),
        ("-(-1)", "-(-1)"),
    ];
    for (text, printed) in cases {
        assert_eq!(parse(text).unwrap().to_string(), printed, "{text}");
        assert_printed_parses_alike(text);
    }
}

#[test]
fn literals_have_their_values() {
    let cases = [
        (r#""a\x41\u00e9\U0001F600\101\n\`\?""#, "String(\"aAé😀A\\n`?\")"),
        (r#"b"\xff\377é""#, "Bytes([255, 255, 195, 169])"),
        (r#"r"\d\n""#, r#"String("\\d\\n")"#),
        ("'''a'b''c\r\nd'''", "String(\"a'b''c\\nd\")"),
        (r#"bR"\x""#, "Bytes([92, 120])"),
        ("0xFF", "Int(255)"),
        ("-9223372036854775808", "Int(-9223372036854775808)"),
        ("18446744073709551615u", "Uint(18446744073709551615)"),
        (".5e1", "Double(5.0)"),
    ];
    for (text, value) in cases {
        let ast = parse(text).unwrap();
        assert_eq!(shape(&ast, ast.root()), value, "{text}");
    }
}

#[test]
fn every_recorded_expression_survives_printing() {
    let Some(corpus) = testing::corpus("cel-expressions").unwrap() else { return };
    let mut count = 0;
    for row in rows(&corpus) {
        assert_printed_parses_alike(row["expr"].as_str().unwrap());
        count += 1;
    }
    assert!(count > 8000, "{count} expressions");
}

/// Texts made to exhaust a parser: each is refused, or read, on the stack of a test's thread.
#[test]
fn hostile_texts_are_answered() {
    let times = |n: usize, text: &str| text.repeat(n);
    let nested = |n, open: &str, middle: &str, close: &str| times(n, open) + middle + &times(n, close);
    let deep = "recursion limit exceeded: 250";
    let high = "max recursion depth exceeded";
    let refused = [
        (nested(10_000, "(", "1", ")"), deep),
        (nested(10_000, "[", "1", "]"), deep),
        (nested(10_000, "f(", "1", ")"), deep),
        (nested(10_000, "{1:", "1", "}"), deep),
        (times(10_000, "a?b:") + "c", deep),
        (times(10_000, "1+") + "1", high),
        ("a".to_owned() + &times(10_000, "[0]"), high),
        ("a".to_owned() + &times(10_000, ".b"), high),
        (times(10_000, "a<") + "a", high),
        ("o".to_owned() + &times(10_000, ".?b") + ".optMap(x, x)", high),
        (times(200_000, " "), "code point size exceeds limit: size: 200000, limit 100000"),
        (times(10_000, "("), deep),
        (times(10_000, ")"), "mismatched input"),
        (times(10_000, "#"), "1 more errors were truncated"),
        ("o".to_owned() + &times(200, ".optMap(x, x)"), "expression is too large"),
        (times(10_000, "[1 +,"), "1 more errors were truncated"),
        (times(5_000, "1 1 "), "mismatched input '1' expecting <EOF>"),
    ];
    for (text, expected) in refused {
        let start: String = text.chars().take(20).collect();
        let error = parse(&text).expect_err(&start);
        assert!(error.contains(expected), "{start}: {}", error.chars().take(300).collect::<String>());
    }
    for text in [times(10_000, "a&&") + "a", times(10_000, "!") + "a", times(10_000, "-") + "a"] {
        parse(&text).unwrap();
    }
}

/// Fragments that meet in odd places.
const FRAGMENTS: [&str; 56] = [
    "a",
    "b.c",
    "1",
    "2u",
    "-3",
    ".5",
    "1e3",
    "'s'",
    "b'b'",
    "r\"r\"",
    "\"\"\"t\"\"\"",
    "true",
    "null",
    "in",
    "for",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "?",
    ".",
    "..",
    ".?",
    "[?",
    "{?",
    "!",
    "-",
    "--",
    "+",
    "*",
    "/",
    "%",
    "<",
    "<=",
    "==",
    "!=",
    "&&",
    "||",
    "&",
    "=",
    "\"",
    "'",
    "`",
    "`f`",
    "//",
    "\n",
    " ",
    "#",
    "é",
    "l.all(x, ",
    "has(a.b)",
    "o.optMap(v, ",
];

/// Numbers that look random and are the same each time.
fn sequence(mut state: u64) -> impl FnMut(usize) -> usize {
    move |below| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % u64::try_from(below).unwrap()).unwrap()
    }
}

#[test]
fn any_text_is_read_or_refused() {
    let mut next = sequence(0x9e37_79b9_7f4a_7c15);
    let (mut read, mut refused) = (0, 0);
    for _ in 0..20_000 {
        let length = 1 + next(24);
        let text: String = (0..length).map(|_| FRAGMENTS[next(FRAGMENTS.len())]).collect();
        match parse(&text) {
            Ok(_) => {
                assert_printed_parses_alike(&text);
                read += 1;
            }
            Err(error) => {
                assert!(error.starts_with("ERROR: <input>:"), "{text}: {error}");
                refused += 1;
            }
        }
    }
    assert!(read > 200 && refused > 10_000, "{read} read, {refused} refused");
}
