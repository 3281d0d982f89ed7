//! Evaluates a checked CEL expression symbolically, over arbitrary objects: each possible result comes with the condition under which
//! it occurs.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use admit_cel::syntax::{Ast, Comprehension, Entry, Expr, ExprId, Literal};
use admit_cel::{escape_property, is_identifier};

use super::document::{Form, NodeId, World};
use super::term::Term;
use super::truth::is_truth;
use super::value::{HELD_OTHERWISE, Map, Outcome, Value, without_null};
use super::view::{View, is_open};
use super::{Undecided, undecided};

/// The variable for the request's operation, the only known part of a request; no CEL identifier can clash with it.
pub(super) const OPERATION: &str = "@operation";

/// The names that expressions may use, and their values.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope<'a> {
    pub(super) globals: BTreeMap<&'static str, Outcome>,
    /// The expressions of `variables`, in declaration order.
    pub(super) variables: Vec<(&'a str, &'a Ast)>,
}

/// Evaluates the expressions of one rule.
pub(super) struct Evaluator<'w, 's, 'a> {
    pub(super) world: &'w mut World<'s>,
    pub(super) scope: &'w Scope<'a>,
    pub(super) ast: &'a Ast,
    locals: Vec<(Box<str>, Outcome)>,
    /// The variables evaluated so far, each once, by index.
    known: BTreeMap<usize, Result<Outcome, Undecided>>,
    /// The number of variables that the current expression may use: those declared before it.
    in_sight: usize,
}

impl<'w, 's, 'a> Evaluator<'w, 's, 'a> {
    pub(super) fn new(world: &'w mut World<'s>, scope: &'w Scope<'a>, ast: &'a Ast) -> Self {
        let in_sight = scope.variables.len();
        Self { world, scope, ast, locals: Vec::new(), known: BTreeMap::new(), in_sight }
    }

    /// Evaluates the expression: whether it fails, and whether it is true.
    pub(super) fn run(mut self) -> Result<(Term, Term), Undecided> {
        self.truth_at(self.ast.root())
    }

    /// Returns the value of an identifier, if it stands for one.
    pub(super) fn named(&self, name: &str) -> Option<Outcome> {
        let local = self.locals.iter().rev().find(|(local, _)| **local == *name).map(|(_, outcome)| outcome);
        local.or_else(|| self.scope.globals.get(name)).cloned()
    }

    pub(super) fn eval(&mut self, id: ExprId) -> Result<Outcome, Undecided> {
        let outcome = self.world.check_size().and_then(|()| self.expression(id));
        let outcome = outcome.and_then(|outcome| match outcome.value.doubt() {
            Some(why) => Err(why.undecided()),
            None => Ok(outcome),
        });
        outcome.map_err(|undecided| undecided.at(self.ast.span(id)))
    }

    fn expression(&mut self, id: ExprId) -> Result<Outcome, Undecided> {
        let ast = self.ast;
        match ast.expr(id) {
            Expr::Literal(literal) => self.literal(literal),
            Expr::Ident(name) => self.name(name),
            Expr::Select { operand, field, test_only } => {
                if let Expr::Ident(name) = ast.expr(*operand)
                    && **name == *"variables"
                    && !self.is_local(name)
                {
                    return self.variable(field, *test_only);
                }
                if let Some(operation) = self.scope.globals.get(OPERATION)
                    && !test_only
                    && **field == *"operation"
                    && matches!(ast.expr(*operand), Expr::Ident(name) if **name == *"request")
                    && !self.is_local("request")
                {
                    return Ok(operation.clone());
                }
                let operand = self.operand(*operand)?;
                self.select(&operand, field, *test_only)
            }
            Expr::Call { function, target, args } => {
                let outcome = self.call(function, *target, args);
                match outcome {
                    Err(why) if is_truth(function) => {
                        let (error, value) = self.guess(id, why.at(ast.span(id)))?;
                        Ok(Outcome { error, value: Value::Bool(value) })
                    }
                    outcome => outcome,
                }
            }
            Expr::List { elements, optional } => {
                let mut items = Vec::new();
                let mut errors = Vec::new();
                for (at, element) in elements.iter().enumerate() {
                    let outcome = self.eval(*element)?;
                    errors.push(outcome.error);
                    let is_optional = optional.iter().any(|place| usize::try_from(*place) == Ok(at));
                    match (is_optional, outcome.value) {
                        (false, value) => items.push((self.world.terms.bool(true), value)),
                        (true, Value::Optional(there, value)) => items.push((there, (*value).clone())),
                        (true, _) => return Err(undecided("an optional element of several types")),
                    }
                }
                let error = self.world.terms.or(&errors);
                Ok(Outcome { error, value: Value::list(items) })
            }
            Expr::Map(entries) => self.map_literal(entries),
            Expr::Struct { .. } => Err(undecided("a message literal")),
            Expr::Comprehension(fold) => self.fold(fold),
        }
    }

    fn map_literal(&mut self, entries: &[Entry]) -> Result<Outcome, Undecided> {
        let mut found: Vec<(Term, Term, Value)> = Vec::new();
        let mut errors = Vec::new();
        for entry in entries {
            let (key, value) = (self.eval(entry.key)?, self.eval(entry.value)?);
            errors.extend([key.error, value.error]);
            let Value::Text(key) = key.value else { return Err(undecided("a map key that is not a string")) };
            if entry.optional || self.world.terms.known_text(key).is_none() {
                return Err(undecided("a map entry that is optional or has a computed key"));
            }
            if found.iter().any(|(_, known, _)| *known == key) {
                return Err(undecided("a duplicate map key"));
            }
            found.push((self.world.terms.bool(true), key, value.value));
        }
        let error = self.world.terms.or(&errors);
        let value = Value::Map(Map { entries: Rc::new(found), of_document: false });
        Ok(Outcome { error, value })
    }

    fn literal(&mut self, literal: &Literal) -> Result<Outcome, Undecided> {
        let value = match literal {
            Literal::Null => Value::Null,
            Literal::Bool(value) => Value::Bool(self.world.terms.bool(*value)),
            Literal::Int(value) => Value::Int(self.world.terms.int(*value)),
            Literal::String(text) => Value::Text(self.world.constant(text)?),
            Literal::Uint(_) => return Err(undecided("an unsigned integer")),
            Literal::Double(_) => return Err(undecided("a floating-point number")),
            Literal::Bytes(_) => return Err(undecided("bytes")),
        };
        Ok(self.world.good(value))
    }

    fn is_local(&self, name: &str) -> bool {
        self.locals.iter().any(|(local, _)| **local == *name)
    }

    fn name(&mut self, name: &str) -> Result<Outcome, Undecided> {
        if let Some(outcome) = self.named(name) {
            // Of `oldSelf` it is known that its types do not matter.
            let is_held_otherwise = self.is_local(name) && outcome.value.holds_otherwise(self.world.view);
            return if is_held_otherwise { Err(undecided(HELD_OTHERWISE)) } else { Ok(outcome) };
        }
        let named = ["int", "string", "bool", "list", "map", "null_type"].into_iter().find(|ty| *ty == name);
        match named {
            Some(ty) => Ok(self.world.good(Value::Type(ty))),
            None => Err(undecided(format!("`{name}`, of which nothing is known"))),
        }
    }

    /// Evaluates `variables.NAME`: the policy's expression of that name.
    fn variable(&mut self, name: &str, test_only: bool) -> Result<Outcome, Undecided> {
        if test_only {
            return Err(undecided("the presence of a variable"));
        }
        let Some(at) = self.declared(name, self.in_sight) else {
            return Err(undecided(format!("variables.{name}, which is not declared before")));
        };
        self.needed_for(at).into_iter().for_each(|needed| self.evaluate(needed));
        self.known
            .get(&at)
            .cloned()
            .unwrap_or_else(|| Err(undecided(format!("variables.{name}, which needs itself"))))
    }

    /// Finds the last variable with a name among the first `in_sight` ones.
    fn declared(&self, name: &str, in_sight: usize) -> Option<usize> {
        let before = self.scope.variables.iter().take(in_sight);
        before.enumerate().rev().find(|(_, (known, _))| *known == name).map(|(at, _)| at)
    }

    /// Lists a variable and its unevaluated dependencies in order, so that long chains do not recurse.
    fn needed_for(&self, at: usize) -> BTreeSet<usize> {
        let (mut needed, mut open) = (BTreeSet::new(), vec![at]);
        while let Some(at) = open.pop() {
            let Some((_, ast)) = self.scope.variables.get(at) else { continue };
            if self.known.contains_key(&at) || !needed.insert(at) {
                continue;
            }
            open.extend(ast.ids().filter_map(|id| {
                let Expr::Select { operand, field, .. } = ast.expr(id) else { return None };
                let is_of_variables =
                    matches!(ast.expr(*operand), Expr::Ident(name) if **name == *"variables");
                if is_of_variables { self.declared(field, at) } else { None }
            }));
        }
        needed
    }

    fn evaluate(&mut self, at: usize) {
        let scope: &'w Scope<'a> = self.scope;
        let Some((_, ast)) = scope.variables.get(at) else { return };
        let outer = (std::mem::take(&mut self.locals), self.ast, self.in_sight);
        (self.ast, self.in_sight) = (*ast, at);
        let outcome = self.eval(ast.root()).map_err(Undecided::in_variable);
        (self.locals, self.ast, self.in_sight) = outer;
        self.known.insert(at, outcome);
    }

    /// Applies an operation to each alternative of a value.
    pub(super) fn each(
        &mut self,
        outcome: &Outcome,
        then: &mut dyn FnMut(&mut Self, &Value) -> Result<Outcome, Undecided>,
    ) -> Result<Outcome, Undecided> {
        let found = self.each_value(&outcome.value, then)?;
        Ok(self.world.after(outcome.error, found))
    }

    fn each_value(
        &mut self,
        value: &Value,
        then: &mut dyn FnMut(&mut Self, &Value) -> Result<Outcome, Undecided>,
    ) -> Result<Outcome, Undecided> {
        self.world.check_size()?;
        match value {
            Value::Choice(condition, yes, no) => {
                let yes = self.each_value(yes, then)?;
                let no = self.each_value(no, then)?;
                Ok(self.world.choose(*condition, yes, no))
            }
            value => then(self, value),
        }
    }

    fn select(&mut self, operand: &Outcome, field: &str, test_only: bool) -> Result<Outcome, Undecided> {
        self.each(operand, &mut |this, value| {
            if let Value::Optional(there, inner) = value {
                let (found, selected) = this.optional_member(*there, inner, field)?;
                if test_only {
                    return this.world.presence(found, &selected);
                }
                return Ok(this.world.good(Value::Optional(found, Rc::new(selected))));
            }
            let (found, selected) = this.member(value, field)?;
            if test_only {
                return this.world.presence(found, &selected);
            }
            let error = this.world.terms.not(found);
            Ok(this.world.read(Outcome { error, value: selected }))
        })
    }

    /// Evaluates `a.?b`: empty as soon as a part of the chain is absent.
    pub(super) fn optional_member(
        &mut self,
        there: Term,
        inner: &Value,
        field: &str,
    ) -> Result<(Term, Value), Undecided> {
        if self.world.terms.known_bool(there) == Some(false) {
            return Ok((there, Value::Null));
        }
        if let Value::Choice(condition, yes, no) = inner {
            let (yes_there, yes) = self.optional_member(there, yes, field)?;
            let (no_there, no) = self.optional_member(there, no, field)?;
            let there = self.world.terms.ite(*condition, yes_there, no_there);
            return Ok((there, self.world.merged(*condition, yes, no)));
        }
        let (found, value) = self.member(inner, field)?;
        if value.may_be_unreadable() {
            return Err(undecided("a timestamp that may be absent"));
        }
        Ok((self.world.terms.and(&[there, found]), value))
    }

    /// Looks up a field: whether it is present, and its value.
    pub(super) fn member(&mut self, value: &Value, field: &str) -> Result<(Term, Value), Undecided> {
        let no = self.world.terms.bool(false);
        match value {
            Value::Object(id) => self.property(*id, field),
            Value::Map(map) => {
                let key = self.world.constant(field)?;
                Ok(self.entry(map, key))
            }
            Value::Unknown(what) => Err(what.undecided()),
            _ => Ok((no, Value::Null)),
        }
    }

    fn property(&mut self, id: NodeId, field: &str) -> Result<(Term, Value), Undecided> {
        let node = self.world.node(id)?.clone();
        let typed = self.world.view == View::Typed;
        let is_named = |name: &str| {
            if !typed {
                return name == field;
            }
            // A reserved word is accepted unescaped, too.
            escape_property(name).as_deref() == Some(field) || (name == field && !is_identifier(name))
        };
        // Embedded objects have these fields even if their schema does not declare them.
        if node.schema.embedded_resource && matches!(field, "apiVersion" | "kind" | "metadata") {
            return Err(undecided(format!("`{field}` of an embedded object")));
        }
        let name = node.schema.properties.keys().find(|name| is_named(name)).cloned();
        let child = match &name {
            Some(name) => self.world.property(id, name)?,
            None => None,
        };
        let Some(child) = child else {
            if node.is_metadata {
                return Err(undecided(format!("`{field}` of an object's metadata")));
            }
            if !typed && is_open(node.schema) {
                return Err(undecided(format!("`{field}`, which is not declared and may be there")));
            }
            return Ok((self.world.terms.bool(false), Value::Null));
        };
        let node = self.world.node(child)?.clone();
        // Through declared types, a null field is absent.
        let there = if typed {
            let not_null = self.world.terms.not(node.null);
            self.world.terms.and(&[node.present, not_null])
        } else {
            node.present
        };
        if self.world.terms.known_bool(there) == Some(false) {
            return Ok((there, Value::Null));
        }
        let value = self.world.value_of(child)?;
        Ok((there, if typed { without_null(value, node.null) } else { value }))
    }

    /// Looks up a map key: whether it is present, and its value.
    pub(super) fn entry(&mut self, map: &Map, key: Term) -> (Term, Value) {
        let (mut there, mut value) = (self.world.terms.bool(false), Value::Null);
        let mut is_first = true;
        for (is_there, known, entry) in map.entries.iter().rev() {
            let same = self.world.terms.eq(*known, key);
            let is_it = self.world.terms.and(&[*is_there, same]);
            there = self.world.terms.or(&[there, is_it]);
            value = if is_first { entry.clone() } else { self.world.merged(is_it, entry.clone(), value) };
            is_first = false;
        }
        (there, value)
    }

    fn fold(&mut self, fold: &Comprehension) -> Result<Outcome, Undecided> {
        let range = self.eval(fold.range)?;
        let start = self.eval(fold.accu_init)?;
        self.each(&range, &mut |this, value| {
            let rounds = match value {
                Value::List(list) => {
                    let at = this.world.positions(list);
                    let rounds = list.items.iter().zip(at);
                    rounds
                        .map(|((there, item), at)| (*there, Value::Int(at), item.clone()))
                        .collect::<Vec<_>>()
                }
                Value::Map(map) => {
                    if matches!(start.value, Value::List(_)) {
                        return Err(undecided("a list made from a map, whose order is undefined"));
                    }
                    let entries = map.entries.iter();
                    entries.map(|(there, key, value)| (*there, Value::Text(*key), value.clone())).collect()
                }
                Value::Unknown(what) => return Err(what.undecided()),
                Value::Object(_) => return Err(undecided("iteration over the fields of an object")),
                _ => return Ok(this.world.failed()),
            };
            this.rounds(fold, rounds, matches!(value, Value::List(_)), start.clone())
        })
    }

    fn rounds(
        &mut self,
        fold: &Comprehension,
        rounds: Vec<(Term, Value, Value)>,
        of_list: bool,
        start: Outcome,
    ) -> Result<Outcome, Undecided> {
        let goes_on = match self.ast.expr(fold.condition) {
            Expr::Literal(Literal::Bool(true)) => true,
            // Loop conditions of `all` and `exists`: once decided, the result stays, so skipped iterations do not matter.
            Expr::Call { function, .. } => &**function == "@not_strictly_false",
            _ => rounds.is_empty(),
        };
        if !goes_on {
            return Err(undecided("a comprehension with an unsupported loop condition"));
        }
        let mut result = start;
        let depth = self.locals.len();
        for (there, key, value) in rounds {
            if self.world.terms.known_bool(there) == Some(false) {
                continue;
            }
            // A server reads what a variable stands for, even where the expression does not.
            if (of_list || fold.iter_var2.is_some())
                && let Some(why) = value.doubt()
            {
                return Err(why.undecided());
            }
            let first = if fold.iter_var2.is_none() && of_list { value.clone() } else { key };
            let first = self.world.good(first);
            self.locals.push((fold.iter_var.clone(), first));
            if let Some(second) = &fold.iter_var2 {
                let value = self.world.good(value);
                self.locals.push((second.clone(), value));
            }
            self.locals.push((fold.accu_var.clone(), result.clone()));
            let next = self.eval(fold.step);
            self.locals.truncate(depth);
            result = self.world.choose(there, next?, result);
        }
        self.locals.push((fold.accu_var.clone(), result));
        let outcome = self.eval(fold.result);
        self.locals.truncate(depth);
        outcome
    }

    /// Counts the properties of an object.
    pub(super) fn object_size(&mut self, id: NodeId) -> Result<Term, Undecided> {
        match self.world.force(id)? {
            Form::Object(_) => self
                .world
                .count_properties(id)?
                .ok_or_else(|| undecided("the size of an object that may have undeclared fields")),
            _ => Err(undecided("the size of a value that has none")),
        }
    }
}
