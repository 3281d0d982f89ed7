//! Expands macros that Kubernetes does not offer: `cel.bind`, `cel.block`, `math.least` and `math.greatest`.

use super::{Expander, Expansion, Macro, Site};
use crate::syntax::ast::{Expr, ExprId, Literal};

/// `cel.bind(name, value, expression)`.
pub(crate) const BIND: &[Macro] = &[Macro {
    name: "bind",
    receiver: true,
    args: Some(3),
    doc: "cel.bind(name, value, expression): the expression, in which the name stands for the value.",
    expand: bind,
}];

/// Macros that optimisers generate for common subexpressions: `cel.block([values], expression)`, in which `cel.index(n)` refers to the
/// value at that position, and macro variables with reserved names.
pub(crate) const BLOCK: &[Macro] = &[
    Macro {
        name: "block",
        receiver: true,
        args: Some(2),
        doc: "cel.block([values], expression): the expression, in which cel.index(n) stands for the value at that position.",
        expand: block,
    },
    Macro {
        name: "index",
        receiver: true,
        args: Some(1),
        doc: "cel.index(n): the value at that position of cel.block.",
        expand: |e, s| numbered(e, s, "@index"),
    },
    Macro {
        name: "iterVar",
        receiver: true,
        args: Some(2),
        doc: "cel.iterVar(depth, n): the variable of a macro.",
        expand: |e, s| numbered(e, s, "@it"),
    },
    Macro {
        name: "accuVar",
        receiver: true,
        args: Some(2),
        doc: "cel.accuVar(depth, n): the result of a macro while it is being made.",
        expand: |e, s| numbered(e, s, "@ac"),
    },
];

/// `math.least(…)` and `math.greatest(…)`, of any number of numbers or of one list.
pub(crate) const MATH: &[Macro] = &[
    Macro {
        name: "least",
        receiver: true,
        args: None,
        doc: "math.least(a, b, ...): the smallest of numbers, or of a list of them.",
        expand: |e, s| extreme(e, s, "math.least()", "math.@min"),
    },
    Macro {
        name: "greatest",
        receiver: true,
        args: None,
        doc: "math.greatest(a, b, ...): the greatest of numbers, or of a list of them.",
        expand: |e, s| extreme(e, s, "math.greatest()", "math.@max"),
    },
];

fn is_called_on(e: &Expander<'_>, site: &Site<'_>, namespace: &str) -> bool {
    matches!(e.build.expr(site.target()), Some(Expr::Ident(name)) if **name == *namespace)
}

fn bind(e: &mut Expander<'_>, site: &Site<'_>) -> Expansion {
    if !is_called_on(e, site, "cel") {
        return Ok(None);
    }
    let name = e.simple_name(site.arg(0), "cel.bind() variable names must be simple identifiers")?;
    let step = e.ident(&name);
    Ok(Some(e.let_in(name, site.arg(1), step, site.arg(2))))
}

/// A variable for every value, each in sight of the values after it.
fn block(e: &mut Expander<'_>, site: &Site<'_>) -> Expansion {
    if !is_called_on(e, site, "cel") {
        return Ok(None);
    }
    let values = match e.build.expr(site.arg(0)) {
        Some(Expr::List { elements, optional }) if optional.is_empty() => elements.clone(),
        _ => return e.error(site.arg(0), "cel.block requires the first arg to be a list literal"),
    };
    let mut result = site.arg(1);
    for (index, value) in values.iter().enumerate().rev() {
        let name = format!("@index{index}");
        let step = e.ident(&name);
        result = e.let_in(name.into(), *value, step, result);
    }
    Ok(Some(result))
}

/// Builds a name from the numbers in the arguments.
fn numbered(e: &mut Expander<'_>, site: &Site<'_>, prefix: &str) -> Expansion {
    if !is_called_on(e, site, "cel") {
        return Ok(None);
    }
    let mut name = prefix.to_owned();
    for (at, arg) in site.args.iter().enumerate() {
        let Some(Expr::Literal(Literal::Int(number @ 0..))) = e.build.expr(*arg) else {
            return e.error(*arg, "argument must be a non-negative int literal");
        };
        let separator = if site.args.len() > 1 || at > 0 { ":" } else { "" };
        name = format!("{name}{separator}{number}");
    }
    Ok(Some(e.ident(&name)))
}

fn extreme(e: &mut Expander<'_>, site: &Site<'_>, shown: &str, function: &str) -> Expansion {
    if !is_called_on(e, site, "math") {
        return Ok(None);
    }
    match site.args {
        [] => e.error(site.target(), format!("{shown} requires at least one argument")),
        [arg] if may_be_number(e, *arg) || is_list_of_numbers(e, *arg) => Ok(Some(e.call(function, &[*arg]))),
        [arg] => e.error(*arg, format!("{shown} invalid single argument value")),
        args => {
            if let Some(wrong) = args.iter().find(|arg| !may_be_number(e, **arg)) {
                return e.error(*wrong, format!("{shown} simple literal arguments must be numeric"));
            }
            if args.len() == 2 {
                return Ok(Some(e.call(function, args)));
            }
            let list = e.list(args);
            Ok(Some(e.call(function, &[list])))
        }
    }
}

/// Whether an argument is a number, or may be one at run time.
fn may_be_number(e: &Expander<'_>, arg: ExprId) -> bool {
    match e.build.expr(arg) {
        Some(Expr::Literal(literal)) => {
            matches!(literal, Literal::Int(_) | Literal::Uint(_) | Literal::Double(_))
        }
        Some(Expr::List { .. } | Expr::Map(_) | Expr::Struct { .. }) | None => false,
        Some(_) => true,
    }
}

fn is_list_of_numbers(e: &Expander<'_>, arg: ExprId) -> bool {
    match e.build.expr(arg) {
        Some(Expr::List { elements, .. }) => {
            !elements.is_empty() && elements.iter().all(|element| may_be_number(e, *element))
        }
        _ => false,
    }
}
