//! Expands macros: calls that the parser replaces by other expressions, before type checking.
//!
//! Expansions are cel-go's (`parser/macro.go`, `cel/library.go`, `ext/`), node by node, because costs count them. Every added node has
//! the span of the macro's call. Macros that Kubernetes does not offer are in `extra`.

mod extra;
mod offered;

pub(crate) use extra::{BIND, BLOCK, MATH};
pub use offered::{LISTS, OPTIONAL, STANDARD, TWO_VARIABLE};

use crate::source::Span;

use super::ast::{Comprehension, Expr, ExprId, Literal};
use super::builder::Builder;

/// The variable for the result of a fold; no identifier can clash with it.
pub const ACCUMULATOR: &str = "@result";

/// The old name of the accumulator, which is still rejected as a variable of a macro.
const OLD_ACCUMULATOR: &str = "__result__";

/// The iteration variable of folds over nothing, whose accumulator is a plain variable.
const UNUSED: &str = "#unused";

/// A macro: the call that it replaces, and its expansion.
#[derive(Debug)]
pub struct Macro {
    /// The function's name in the call.
    pub name: &'static str,
    /// Called on a target: `list.all(x, p)`, as opposed to `has(a.b)`.
    pub receiver: bool,
    /// The number of arguments without the target; none for any number.
    pub args: Option<usize>,
    /// Its use and its meaning, in one line.
    pub doc: &'static str,
    pub(crate) expand: fn(&mut Expander<'_>, &Site<'_>) -> Expansion,
}

impl Macro {
    pub(crate) fn takes(&self, args: usize) -> bool {
        self.args.is_none_or(|wanted| wanted == args)
    }
}

/// The expansion; None if the call is an ordinary one after all; or the error in the arguments, with its offset.
pub(crate) type Expansion = Result<Option<ExprId>, (u32, String)>;

/// The call to be replaced.
#[derive(Debug)]
pub(crate) struct Site<'c> {
    pub(crate) target: Option<ExprId>,
    pub(crate) args: &'c [ExprId],
}

impl Site<'_> {
    fn arg(&self, index: usize) -> ExprId {
        self.args.get(index).copied().unwrap_or(ExprId(u32::MAX))
    }

    fn target(&self) -> ExprId {
        self.target.unwrap_or(ExprId(u32::MAX))
    }

    /// The last argument, and the one before it where there are more than `least`.
    fn transform_and_filter(&self, least: usize) -> (ExprId, Option<ExprId>) {
        let last = self.args.len().saturating_sub(1);
        let filter = (self.args.len() > least).then(|| self.arg(last.saturating_sub(1)));
        (self.arg(last), filter)
    }
}

/// Adds the nodes of an expansion.
#[derive(Debug)]
pub(crate) struct Expander<'b> {
    pub(crate) build: &'b mut Builder,
    pub(crate) span: Span,
    pub(crate) anchor: u32,
}

impl Expander<'_> {
    fn add(&mut self, expr: Expr) -> ExprId {
        self.build.add(expr, self.span, self.anchor)
    }

    fn bool(&mut self, value: bool) -> ExprId {
        self.add(Expr::Literal(Literal::Bool(value)))
    }

    fn int(&mut self, value: i64) -> ExprId {
        self.add(Expr::Literal(Literal::Int(value)))
    }

    fn ident(&mut self, name: &str) -> ExprId {
        self.add(Expr::Ident(name.into()))
    }

    fn accumulator(&mut self) -> ExprId {
        self.ident(ACCUMULATOR)
    }

    fn list(&mut self, elements: &[ExprId]) -> ExprId {
        self.add(Expr::List { elements: elements.into(), optional: [].into() })
    }

    fn call(&mut self, function: &str, args: &[ExprId]) -> ExprId {
        self.add(Expr::Call { function: function.into(), target: None, args: args.into() })
    }

    fn member_call(&mut self, function: &str, target: ExprId, args: &[ExprId]) -> ExprId {
        self.add(Expr::Call { function: function.into(), target: Some(target), args: args.into() })
    }

    fn fold(&mut self, fold: Comprehension) -> ExprId {
        self.add(Expr::Comprehension(Box::new(fold)))
    }

    /// Builds the accumulator with an element appended; unchanged where a filter excludes it.
    fn append(&mut self, element: ExprId, filter: Option<ExprId>) -> ExprId {
        let accumulator = self.accumulator();
        let list = self.list(&[element]);
        let step = self.call("_+_", &[accumulator, list]);
        self.filtered(step, filter)
    }

    fn filtered(&mut self, step: ExprId, filter: Option<ExprId>) -> ExprId {
        let Some(filter) = filter else { return step };
        let accumulator = self.accumulator();
        self.call("_?_:_", &[filter, step, accumulator])
    }

    /// A fold that visits every element and whose result is the accumulator.
    fn collect(&mut self, range: ExprId, vars: Vars, accu_init: ExprId, step: ExprId) -> ExprId {
        let condition = self.bool(true);
        let result = self.accumulator();
        let (iter_var, iter_var2) = vars;
        let accu_var = ACCUMULATOR.into();
        self.fold(Comprehension { range, iter_var, iter_var2, accu_var, accu_init, condition, step, result })
    }

    /// Builds a fold over an empty list: `result`, in which `name` is bound to `value`.
    fn let_in(&mut self, name: Box<str>, value: ExprId, step: ExprId, result: ExprId) -> ExprId {
        let range = self.list(&[]);
        let condition = self.bool(false);
        self.fold(Comprehension {
            range,
            iter_var: UNUSED.into(),
            iter_var2: None,
            accu_var: name,
            accu_init: value,
            condition,
            step,
            result,
        })
    }

    fn error<T>(&self, at: ExprId, message: impl Into<String>) -> Result<T, (u32, String)> {
        Err((self.build.anchor(at), message.into()))
    }

    fn simple_name(&self, arg: ExprId, otherwise: &str) -> Result<Box<str>, (u32, String)> {
        match self.build.expr(arg) {
            Some(Expr::Ident(name)) => Ok(name.clone()),
            _ => self.error(arg, otherwise),
        }
    }

    /// The variable or variables of a fold.
    fn variables(&self, site: &Site<'_>, two: bool, otherwise: &str) -> Result<Vars, (u32, String)> {
        let first = self.simple_name(site.arg(0), otherwise)?;
        let second = if two { Some(self.simple_name(site.arg(1), otherwise)?) } else { None };
        if second.as_ref() == Some(&first) {
            return self.error(site.arg(1), format!("duplicate variable name: {first}"));
        }
        for (index, name) in [Some(&first), second.as_ref()].into_iter().enumerate() {
            if name.is_some_and(|name| [ACCUMULATOR, OLD_ACCUMULATOR].contains(&&**name)) {
                return self.error(site.arg(index), "iteration variable overwrites accumulator variable");
            }
        }
        Ok((first, second))
    }
}

type Vars = (Box<str>, Option<Box<str>>);

const NO_NAME: &str = "argument must be a simple name";
const NO_IDENT: &str = "argument is not an identifier";

fn has(e: &mut Expander<'_>, site: &Site<'_>) -> Expansion {
    match e.build.expr(site.arg(0)) {
        Some(Expr::Select { operand, field, .. }) => {
            let (operand, field) = (*operand, field.clone());
            Ok(Some(e.add(Expr::Select { operand, field, test_only: true })))
        }
        _ => e.error(site.arg(0), "invalid argument to has() macro"),
    }
}

#[derive(Clone, Copy, Debug)]
enum Quantifier {
    All,
    Exists,
    ExistsOne,
}

fn quantify(e: &mut Expander<'_>, site: &Site<'_>, quantifier: Quantifier) -> Expansion {
    let (iter_var, iter_var2) = e.variables(site, site.args.len() == 3, NO_NAME)?;
    let (predicate, _) = site.transform_and_filter(usize::MAX);
    let (accu_init, condition, step, result);
    match quantifier {
        Quantifier::All => {
            accu_init = e.bool(true);
            let accumulator = e.accumulator();
            condition = e.call("@not_strictly_false", &[accumulator]);
            let accumulator = e.accumulator();
            step = e.call("_&&_", &[accumulator, predicate]);
            result = e.accumulator();
        }
        Quantifier::Exists => {
            accu_init = e.bool(false);
            let accumulator = e.accumulator();
            let not = e.call("!_", &[accumulator]);
            condition = e.call("@not_strictly_false", &[not]);
            let accumulator = e.accumulator();
            step = e.call("_||_", &[accumulator, predicate]);
            result = e.accumulator();
        }
        Quantifier::ExistsOne => {
            accu_init = e.int(0);
            condition = e.bool(true);
            let (accumulator, one) = (e.accumulator(), e.int(1));
            let next = e.call("_+_", &[accumulator, one]);
            step = e.filtered(next, Some(predicate));
            let (accumulator, one) = (e.accumulator(), e.int(1));
            result = e.call("_==_", &[accumulator, one]);
        }
    }
    let (range, accu_var) = (site.target(), ACCUMULATOR.into());
    Ok(Some(e.fold(Comprehension {
        range,
        iter_var,
        iter_var2,
        accu_var,
        accu_init,
        condition,
        step,
        result,
    })))
}

fn map(e: &mut Expander<'_>, site: &Site<'_>) -> Expansion {
    let vars = e.variables(site, false, NO_IDENT)?;
    let (transform, filter) = site.transform_and_filter(2);
    let accu_init = e.list(&[]);
    let step = e.append(transform, filter);
    Ok(Some(e.collect(site.target(), vars, accu_init, step)))
}

fn filter(e: &mut Expander<'_>, site: &Site<'_>) -> Expansion {
    let vars = e.variables(site, false, NO_IDENT)?;
    let accu_init = e.list(&[]);
    let step = e.append(site.arg(0), Some(site.arg(1)));
    Ok(Some(e.collect(site.target(), vars, accu_init, step)))
}

fn transform_list(e: &mut Expander<'_>, site: &Site<'_>) -> Expansion {
    let vars = e.variables(site, true, NO_NAME)?;
    let (transform, filter) = site.transform_and_filter(3);
    let accu_init = e.list(&[]);
    let step = e.append(transform, filter);
    Ok(Some(e.collect(site.target(), vars, accu_init, step)))
}

fn transform_map(e: &mut Expander<'_>, site: &Site<'_>) -> Expansion {
    let vars = e.variables(site, true, NO_NAME)?;
    let (transform, filter) = site.transform_and_filter(3);
    let (accumulator, key) = (e.accumulator(), e.ident(&vars.0));
    let step = e.call("cel.@mapInsert", &[accumulator, key, transform]);
    let step = e.filtered(step, filter);
    let accu_init = e.add(Expr::Map([].into()));
    Ok(Some(e.collect(site.target(), vars, accu_init, step)))
}

fn transform_map_entry(e: &mut Expander<'_>, site: &Site<'_>) -> Expansion {
    let vars = e.variables(site, true, NO_NAME)?;
    let (transform, filter) = site.transform_and_filter(3);
    let accumulator = e.accumulator();
    let step = e.call("cel.@mapInsert", &[accumulator, transform]);
    let step = e.filtered(step, filter);
    let accu_init = e.add(Expr::Map([].into()));
    Ok(Some(e.collect(site.target(), vars, accu_init, step)))
}

fn opt_map(e: &mut Expander<'_>, site: &Site<'_>) -> Expansion {
    let name = e.simple_name(site.arg(0), "optMap() variable name must be a simple identifier")?;
    optional_map(e, site, name, true)
}

fn opt_flat_map(e: &mut Expander<'_>, site: &Site<'_>) -> Expansion {
    let name = e.simple_name(site.arg(0), "optFlatMap() variable name must be a simple identifier")?;
    optional_map(e, site, name, false)
}

fn optional_map(e: &mut Expander<'_>, site: &Site<'_>, name: Box<str>, wrap: bool) -> Expansion {
    let present = e.member_call("hasValue", site.target(), &[]);
    let copy = e.build.copy(site.target());
    let value = e.member_call("value", copy, &[]);
    let step = e.ident(&name);
    let mut mapped = e.let_in(name, value, step, site.arg(1));
    if wrap {
        mapped = e.call("optional.of", &[mapped]);
    }
    let none = e.call("optional.none", &[]);
    Ok(Some(e.call("_?_:_", &[present, mapped, none])))
}

/// Computes the keys first, then sorts by them; the list is bound to a variable so that it is computed once.
fn sort_by(e: &mut Expander<'_>, site: &Site<'_>) -> Expansion {
    const INPUT: &str = "@__sortBy_input__";
    if matches!(e.build.expr(site.target()), Some(Expr::Literal(_) | Expr::Map(_) | Expr::Struct { .. })) {
        let message =
            "sortBy can only be applied to a list, identifier, comprehension, call or select expression";
        return e.error(site.target(), message);
    }
    let range = e.ident(INPUT);
    let keys = map(e, &Site { target: Some(range), args: site.args })?;
    let input = e.ident(INPUT);
    let sorted = e.member_call("@sortByAssociatedKeys", input, keys.as_slice());
    let step = e.ident(INPUT);
    Ok(Some(e.let_in(INPUT.into(), site.target(), step, sorted)))
}
