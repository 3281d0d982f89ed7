//! Plans calls: operators with steps of their own, calls of the library, and constant folding of both.

use std::collections::HashSet;
use std::sync::Arc;

use bumpalo::Bump;

use crate::check::Reference;
use crate::document::Key;
use crate::library::functions::has_single_body;
use crate::library::regex::GoRegex;
use crate::library::{Context, Overload};
use crate::syntax::ExprId;
use crate::types::Type;
use crate::value::{Constant, EvalError, Value};

use super::patterns::{PatternError, PatternSum};
use super::planner::Planner;
use super::{
    Attribute, Call, Condition, Equal, EqualConstant, KeyIn, Matches, Member, Meter, Op, OptionalOr,
    ProgramError, Root, Step, Target,
};

/// Functions that cel-go calls at plan time when their one argument is a constant.
const CONVERSIONS: [&str; 10] =
    ["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"];

/// Functions whose constant pattern is compiled, or rejected, at plan time.
const PATTERNS: [&str; 3] = ["matches", "find", "findAll"];

/// The function that `in` calls.
const IN: &str = "@in";

/// Functions whose cost cel-go cannot count when any argument is an error.
const SELF_COMPARING: [&str; 3] = ["sort", "distinct", "@sortByAssociatedKeys"];

impl Planner<'_> {
    pub(super) fn call(
        &mut self,
        id: ExprId,
        function: &str,
        target: Option<ExprId>,
        args: &[ExprId],
    ) -> Result<Step, ProgramError> {
        let function = function.strip_prefix('.').unwrap_or(function);
        let operands: Vec<ExprId> = target.into_iter().chain(args.iter().copied()).collect();
        match function {
            "_[_]" => return self.index(id, &operands, false),
            "_[?_]" | "_?._" => return self.index(id, &operands, true),
            _ => {}
        }
        let steps = self.steps(&operands)?;
        let op = match (function, <[Step; 3]>::try_from(steps)) {
            ("_?_:_", Ok([condition, truthy, falsy])) => {
                let parts = (condition, truthy.into_branch(), falsy.into_branch());
                super::planner::attribute(Root::Conditional(Box::new(parts)), id)
            }
            (_, Ok(steps)) => self.library_call(id, function, &operands, steps.into())?,
            (_, Err(steps)) => self.operator(id, function, &operands, steps)?,
        };
        Ok(Step { op, at: id })
    }

    fn operator(
        &mut self,
        id: ExprId,
        function: &str,
        operands: &[ExprId],
        steps: Vec<Step>,
    ) -> Result<Op, ProgramError> {
        match (function, <[Step; 2]>::try_from(steps)) {
            ("_&&_", Ok(terms)) => Ok(Condition::And(flatten(terms, |op| match op {
                Op::Condition(Condition::And(terms)) => Ok(terms),
                op => Err(op),
            }))
            .into()),
            ("_||_", Ok(terms)) => Ok(Condition::Or(flatten(terms, |op| match op {
                Op::Condition(Condition::Or(terms)) => Ok(terms),
                op => Err(op),
            }))
            .into()),
            ("_==_", Ok(operands)) => Ok(equality(operands, false)),
            ("_!=_", Ok(operands)) => Ok(equality(operands, true)),
            ("or", Ok(operands)) if self.may_be(id, "optional_or_optional") => {
                Ok(Op::OptionalOr(Box::new(OptionalOr { operands, unwraps: false })))
            }
            ("orValue", Ok(operands)) if self.may_be(id, "optional_orValue_value") => {
                Ok(Op::OptionalOr(Box::new(OptionalOr { operands, unwraps: true })))
            }
            (_, Ok(steps)) => self.library_call(id, function, operands, steps.into()),
            (_, Err(steps)) => self.library_call(id, function, operands, steps),
        }
    }

    fn library_call(
        &mut self,
        id: ExprId,
        name: &str,
        operands: &[ExprId],
        mut steps: Vec<Step>,
    ) -> Result<Op, ProgramError> {
        if let ("!_", [_]) = (name, steps.as_slice())
            && let Some(operand) = steps.pop()
        {
            return Ok(Condition::Not(Box::new(operand)).into());
        }
        let target = self.target(id, name, operands)?;
        if self.options.folds
            && let (Target::Known(row) | Target::Guarded(row, _), [_, list]) = (&target, steps.as_slice())
            && row.id == "in_list"
            && let Some(Constant::List(items)) = list.constant()
            && let Some(set) = ConstantSet::of(items)
        {
            return Ok(set.membership(steps));
        }
        if let (true, [step]) = (self.options.folds && CONVERSIONS.contains(&name), steps.as_slice())
            && let Some(argument) = step.constant()
            && let Some(constant) = fold(&target, argument)?
        {
            return Ok(Op::Constant(constant));
        }
        let mut stops_at_error = steps.len() > 2
            || (steps.len() == 2 && matches!(target, Target::Dynamic(_)) && !has_single_body(name));
        let mut has_constant_pattern = false;
        if let (true, Some(Constant::String(pattern))) =
            (self.options.folds && PATTERNS.contains(&name), steps.get(1).and_then(Step::constant))
        {
            // Kept for as long as the program is planned at least, so that it counts.
            let regex = self.pattern(pattern)?;
            if let (Target::Known(row) | Target::Guarded(row, _), "matches") = (&target, name) {
                return Ok(Op::Matches(Box::new(Matches { operands: steps.into(), regex, row })));
            }
            stops_at_error = true;
            has_constant_pattern = true;
        }
        let meter = match name {
            _ if matches!(target, Target::Dynamic(_)) => Meter::Any,
            "flatten" if steps.len() == 2 => Meter::Depth,
            _ if SELF_COMPARING.contains(&name) => Meter::List,
            _ => Meter::Any,
        };
        let call = Call { target, args: steps.into(), stops_at_error, meter, has_constant_pattern };
        if let (IN, Some(Constant::String(key))) = (name, call.args.first().and_then(Step::constant)) {
            let (name, hash) = (key.clone(), Key::new(key).hash());
            return Ok(Condition::KeyIn(Box::new(KeyIn { name, hash, call })).into());
        }
        Ok(Op::Call(Box::new(call)))
    }

    /// A pattern, which programs share.
    fn pattern(&mut self, text: &str) -> Result<GoRegex, ProgramError> {
        self.patterns.compile(text).map_err(|error| match error {
            PatternError::Invalid(error) => ProgramError::Constant(error),
            PatternError::TooMuch => ProgramError::Invalid(PatternSum::TOO_MUCH.into()),
        })
    }

    fn target(&self, id: ExprId, name: &str, operands: &[ExprId]) -> Result<Target, ProgramError> {
        let rows = match self.checked.reference(id) {
            Some(Reference::Overloads(rows)) => &**rows,
            Some(Reference::Variable | Reference::Type(_)) | None => &[],
        };
        if !self.checked.is_checked() && self.functions.get(name).is_none() {
            return Ok(Target::Unknown(name.into()));
        }
        let function = || {
            let function = self.functions.get(name).cloned().map(Arc::new);
            function.ok_or_else(|| ProgramError::Invalid(format!("no such overload: {name}").into()))
        };
        match rows {
            [row] if !operands.iter().any(|id| is_open(self.checked.type_of(*id))) => Ok(Target::Known(row)),
            [row] => Ok(Target::Guarded(row, function()?)),
            _ => Ok(Target::Dynamic(function()?)),
        }
    }

    /// Whether the call may select this overload.
    fn may_be(&self, id: ExprId, overload: &str) -> bool {
        match self.checked.reference(id) {
            Some(Reference::Overloads(rows)) => rows.len() != 1 || rows.iter().any(|row| row.id == overload),
            Some(Reference::Variable | Reference::Type(_)) | None => true,
        }
    }
}

impl Step {
    /// The step as a branch of a conditional: an attribute is resolved without the cost of its operand.
    fn into_branch(self) -> Attribute {
        match self.op {
            Op::Attribute(attribute) => *attribute,
            _ => self.into_attribute(),
        }
    }
}

/// Nested terms in one row: the value and the error that wins are the same, since the first error stays.
fn flatten(terms: [Step; 2], same: impl Fn(Op) -> Result<Box<[Step]>, Op>) -> Box<[Step]> {
    let mut flat = Vec::with_capacity(2);
    for term in terms {
        match same(term.op) {
            Ok(terms) => flat.extend(terms),
            Err(op) => flat.push(Step { op, at: term.at }),
        }
    }
    flat.into()
}

fn equality(operands: [Step; 2], is_negated: bool) -> Op {
    let [left, right] = operands;
    match (left.op, right.op) {
        (op, Op::Constant(constant)) if !matches!(op, Op::Constant(_)) && is_simple(&constant) => {
            let operand = Step { op, at: left.at };
            Condition::EqualConstant(Box::new(EqualConstant { operand, constant, is_negated })).into()
        }
        (left_op, right_op) => {
            let operands = [Step { op: left_op, at: left.at }, Step { op: right_op, at: right.at }];
            Condition::Equal(Box::new(Equal { operands, is_negated })).into()
        }
    }
}

/// Constants that compare without looking into the other value.
const fn is_simple(constant: &Constant) -> bool {
    matches!(
        constant,
        Constant::Null | Constant::Bool(_) | Constant::Int(_) | Constant::Uint(_) | Constant::String(_)
    )
}

/// Whether values of this type may turn out to be of another.
fn is_open(ty: &Type) -> bool {
    match ty {
        Type::Dyn | Type::Any | Type::Error | Type::Param(_) | Type::Wrapper(_) | Type::Abstract(_) => true,
        Type::List(item) | Type::Optional(item) => is_open(item),
        Type::Map(key, value) => is_open(key) || is_open(value),
        _ => false,
    }
}

/// Returns the value of a conversion of a constant; None if programs cannot hold it.
fn fold(target: &Target, argument: &Constant) -> Result<Option<Constant>, ProgramError> {
    let arena = Bump::new();
    let args = [argument.value()];
    let value = call(target, &Context { arena: &arena }, &args);
    value.map(|value| Constant::of(&value)).map_err(ProgramError::Constant)
}

fn call<'a>(target: &Target, context: &Context<'a>, args: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let row: &Overload = match target {
        Target::Known(row) => row,
        Target::Guarded(row, function) => {
            function.admit(row, args)?;
            row
        }
        Target::Dynamic(function) => function.choose(args)?,
        Target::Unknown(name) => return Err(unknown(name)),
    };
    (row.implementation)(context, args)
}

/// The error of calling an unknown function.
pub(crate) fn unknown(function: &str) -> EvalError {
    EvalError::other(format!("no such overload: {function}"))
}

/// The items of a constant list, where cel-go makes a set of them: none is a byte string, a container or a time.
struct ConstantSet {
    strings: HashSet<Box<str>>,
    others: Vec<Constant>,
}

impl ConstantSet {
    fn of(items: &[Constant]) -> Option<Self> {
        let mut set = Self { strings: HashSet::new(), others: Vec::new() };
        for item in items {
            match item {
                Constant::String(text) => {
                    set.strings.insert(text.clone());
                }
                Constant::Bool(_) | Constant::Int(_) | Constant::Uint(_) | Constant::Double(_) => {
                    set.others.push(item.clone());
                }
                _ => return None,
            }
        }
        Some(set)
    }

    /// Membership of the first step; an empty set has no members whatever that step is.
    fn membership(self, steps: Vec<Step>) -> Op {
        match steps.into_iter().next() {
            Some(operand) if !(self.strings.is_empty() && self.others.is_empty()) => {
                Condition::Member(Box::new(Member {
                    operand,
                    strings: self.strings,
                    others: self.others.into(),
                }))
                .into()
            }
            _ => Op::Constant(Constant::Bool(false)),
        }
    }
}
