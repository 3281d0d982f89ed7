//! Estimates cost statically: walks a checked expression and bounds the cost of its evaluation, as cel-go's `checker/cost.go` does with
//! the sizes that a schema declares (apiextensions-apiserver `pkg/apiserver/schema/cel/compilation.go`).
//!
//! Input: a [`CheckedAst`] and, if there is one, the declared type of the document. Output: [`Bounds`]. The rows of the library say
//! what a call costs beyond its arguments.

mod scope;

use crate::check::{CheckedAst, Reference};
use crate::cost::{Bounds, Operand};
use crate::library::history::{self, Walk};
use crate::library::{Overload, Version};
use crate::syntax::macros::ACCUMULATOR;
use crate::syntax::{Comprehension, Entry, Expr, ExprId, Literal};
use crate::types::{DeclType, Type};

use scope::{EntrySize, Local, Path, Step};

const CREATE_LIST: Bounds = Bounds::exactly(10);
const CREATE_MAP: Bounds = Bounds::exactly(30);
const CREATE_STRUCT: Bounds = Bounds::exactly(40);

/// Bounds the cost of an expression whose paths start from a value of type `root`.
#[must_use]
pub(crate) fn estimate(checked: &CheckedAst, root: Option<&DeclType>, release: Version) -> Bounds {
    let count = checked.ast().len();
    let mut estimator = Estimator {
        checked,
        root,
        release,
        walk: history::walk(release),
        paths: vec![Path::Empty; count],
        sizes: vec![None; count],
        entries: vec![None; count],
        locals: Vec::new(),
    };
    estimator.cost(checked.ast().root())
}

struct Estimator<'c> {
    checked: &'c CheckedAst,
    root: Option<&'c DeclType>,
    /// The release whose build estimates.
    release: Version,
    walk: Walk,
    paths: Vec<Path<'c>>,
    sizes: Vec<Option<Bounds>>,
    entries: Vec<Option<EntrySize>>,
    /// Variables of the comprehensions around the current expression, innermost last.
    locals: Vec<Local<'c>>,
}

impl<'c> Estimator<'c> {
    fn cost(&mut self, id: ExprId) -> Bounds {
        let checked = self.checked;
        match checked.ast().expr(id) {
            Expr::Literal(_) => Bounds::ZERO,
            Expr::Ident(name) => self.ident(id, name),
            Expr::Select { operand, field, test_only } => self.select(id, *operand, field, *test_only),
            Expr::Call { function, target, args } => self.call(id, function, *target, args),
            Expr::List { elements, .. } => self.list(id, elements),
            Expr::Map(entries) => self.map(id, entries),
            Expr::Struct { entries, .. } => {
                entries.iter().fold(CREATE_STRUCT, |sum, entry| sum.plus(self.cost(entry.value)))
            }
            Expr::Comprehension(fold) => match self.walk {
                Walk::Early { sizes } => self.early_comprehension(id, fold, sizes),
                Walk::Current if self.is_let(fold) => self.let_in(id, fold),
                Walk::Current => self.comprehension(id, fold),
            },
        }
    }

    fn ident(&mut self, id: ExprId, name: &str) -> Bounds {
        let path = self.local(name).map_or(Path::At(self.root), |local| local.path);
        self.set_path(id, path);
        Bounds::ONE
    }

    /// Presence tests cost no more than their operand.
    fn select(&mut self, id: ExprId, operand: ExprId, field: &str, test_only: bool) -> Bounds {
        let cost = self.cost(operand);
        if test_only {
            return cost;
        }
        let path = self.path(operand).step(self.root, Step::Field(field));
        self.set_path(id, path);
        match self.checked.type_of(operand) {
            Type::Map(..) | Type::Object(_) => cost.plus(Bounds::ONE),
            _ => cost,
        }
    }

    fn call(&mut self, id: ExprId, function: &str, target: Option<ExprId>, args: &[ExprId]) -> Bounds {
        if let ("dyn", [arg], Walk::Current) = (function, args, self.walk) {
            let cost = self.cost(*arg).plus(Bounds::ONE);
            self.copy_sizes(id, *arg);
            return cost;
        }
        let costs: Vec<Bounds> = args.iter().map(|arg| self.cost(*arg)).collect();
        let target_cost = target.map_or(Bounds::ZERO, |target| self.cost(target));
        let checked = self.checked;
        let Some(Reference::Overloads(rows)) = checked.reference(id) else { return Bounds::ZERO };
        let operands: Vec<Operand<'c>> =
            target.iter().chain(args).map(|operand| self.operand(*operand)).collect();
        let call = Call { id, args, costs: &costs, operands: &operands };
        let mut cost = Bounds::NONE;
        let mut size: Option<Bounds> = None;
        for row in rows.iter() {
            let (row_cost, row_size) = self.overload(row, &call);
            cost = cost.union(row_cost);
            if let Some(row_size) = row_size {
                size = Some(size.map_or(row_size, |size| size.union(row_size)));
            }
            let step = match row.id {
                "index_list" => Some(Step::Items),
                "index_map" => Some(Step::Values),
                _ => None,
            };
            if let (Some(step), Some(container)) = (step, args.first()) {
                if self.walk == Walk::Current {
                    size = self.entry_size(*container).map(|entry| entry.value);
                }
                let path = self.path(*container).step(self.root, step);
                self.set_path(id, path);
            }
            if self.walk == Walk::Current {
                size = size.or_else(|| self.size(id));
            }
        }
        self.set_size(id, size);
        target_cost.plus(cost)
    }

    /// The cost of one overload, its arguments included, and the size of its result.
    fn overload(&mut self, row: &'static Overload, call: &Call<'_, 'c>) -> (Bounds, Option<Bounds>) {
        match (row.id, call.costs, call.args) {
            // A first operand that decides spares the second.
            ("logical_and" | "logical_or", [left, right], _) => {
                return (Bounds::new(left.min, left.plus(*right).max), None);
            }
            ("conditional", [condition, then, otherwise], [_, first, second]) => {
                let size = self.size_or_unbounded(*first).union(self.size_or_unbounded(*second));
                let entry = EntrySize::union(self.entry_size(*first), self.entry_size(*second));
                self.set_entry_size(call.id, entry);
                return (condition.plus(then.union(*otherwise)), Some(size));
            }
            ("add_string" | "add_bytes" | "add_list", _, [first, second]) => {
                let entry = EntrySize::union(self.entry_size(*first), self.entry_size(*second));
                self.set_entry_size(call.id, entry);
            }
            _ => {}
        }
        let row = history::in_build(row, self.release).unwrap_or(row);
        let estimate = (row.estimate)(call.operands);
        let arguments = call.costs.iter().fold(Bounds::ZERO, |sum, cost| sum.plus(*cost));
        (estimate.cost.plus(arguments), estimate.result_size)
    }

    fn operand(&mut self, id: ExprId) -> Operand<'c> {
        let checked = self.checked;
        let ty = checked.type_of(id);
        let items = match (ty, self.path(id)) {
            (Type::List(_), Path::At(_)) => self.path(id).step(self.root, Step::Items).size(),
            _ => None,
        };
        let literal = match checked.ast().expr(id) {
            Expr::Literal(literal) => Some(literal),
            _ => None,
        };
        Operand { size: self.size(id), ty, items, literal }
    }

    fn list(&mut self, id: ExprId, elements: &[ExprId]) -> Bounds {
        let mut cost = CREATE_LIST;
        let mut size = Bounds::new(if elements.is_empty() { 0 } else { u64::MAX }, 0);
        for element in elements {
            cost = cost.plus(self.cost(*element));
            size = size.union(self.size_or_unbounded(*element));
        }
        self.set_entry_size(id, Some(EntrySize { list: true, key: Bounds::ONE, value: size }));
        cost
    }

    fn map(&mut self, id: ExprId, entries: &[Entry]) -> Bounds {
        let mut cost = CREATE_MAP;
        let none = Bounds::new(if entries.is_empty() { 0 } else { u64::MAX }, 0);
        let (mut keys, mut values) = (none, none);
        for Entry { key, value, .. } in entries {
            cost = cost.plus(self.cost(*key)).plus(self.cost(*value));
            keys = keys.union(self.size_or_unbounded(*key));
            values = values.union(self.size_or_unbounded(*value));
        }
        self.set_entry_size(id, Some(EntrySize { list: false, key: keys, value: values }));
        cost
    }

    fn comprehension(&mut self, id: ExprId, fold: &'c Comprehension) -> Bounds {
        let mut cost = self.cost(fold.range).plus(self.cost(fold.accu_init));
        let outer = self.locals.len();
        self.push_accumulator(fold);
        let inner = self.locals.len();
        self.push_variables(fold);
        let round = self.cost(fold.condition).plus(self.cost(fold.step));
        self.locals.truncate(inner);
        cost = cost.plus(self.cost(fold.result));
        self.locals.truncate(outer);
        let count = self.size_or_unbounded(fold.range);
        match self.checked.ast().expr(fold.accu_init) {
            Expr::Literal(_) => {
                let size = self.size(fold.accu_init);
                self.set_size(id, size);
            }
            Expr::List { .. } | Expr::Map(_) => {
                self.set_size(id, Some(count));
                let entry = self.entry_size(fold.step);
                self.set_entry_size(id, entry);
            }
            _ => {}
        }
        cost.plus(count.times(round))
    }

    /// Only the first variable has a path, and none a size; a fold that gives a value a name is one like all others.
    fn early_comprehension(&mut self, id: ExprId, fold: &'c Comprehension, sizes: bool) -> Bounds {
        let cost = self.cost(fold.range).plus(self.cost(fold.accu_init));
        let outer = self.locals.len();
        if *fold.accu_var == *ACCUMULATOR {
            self.push_nameless(&fold.accu_var);
        }
        let inner = self.locals.len();
        self.push_iteration(fold);
        let round = self.cost(fold.condition).plus(self.cost(fold.step));
        self.locals.truncate(inner);
        let cost = cost.plus(self.cost(fold.result));
        self.locals.truncate(outer);
        let count = self.size_or_unbounded(fold.range);
        if sizes {
            self.set_size(id, Some(count));
        }
        cost.plus(count.times(round))
    }

    /// A fold over nothing that gives a value a name.
    fn is_let(&self, fold: &Comprehension) -> bool {
        let ast = self.checked.ast();
        matches!(ast.expr(fold.range), Expr::List { elements, .. } if elements.is_empty())
            && matches!(ast.expr(fold.condition), Expr::Literal(Literal::Bool(false)))
    }

    fn let_in(&mut self, id: ExprId, fold: &'c Comprehension) -> Bounds {
        let cost = self.cost(fold.range).plus(self.cost(fold.accu_init));
        let outer = self.locals.len();
        self.push_accumulator(fold);
        let cost = cost.plus(self.cost(fold.result));
        self.locals.truncate(outer);
        self.copy_sizes(id, fold.result);
        cost
    }
}

/// A call whose arguments have been estimated.
struct Call<'a, 'c> {
    id: ExprId,
    args: &'a [ExprId],
    /// The costs of the arguments, without the target.
    costs: &'a [Bounds],
    /// The target, if any, and the arguments.
    operands: &'a [Operand<'c>],
}
