//! Plans selections and indexes: every chain of them becomes one attribute.

use std::sync::Arc;

use crate::document::Key;
use crate::syntax::ExprId;
use crate::types::{DeclKind, Type, field_position};
use crate::value::Constant;

use super::planner::Planner;
use super::{Attribute, Field, Op, ProgramError, Qualifier, QualifierKey, Root, Step};

impl Planner<'_> {
    pub(super) fn select(
        &mut self,
        id: ExprId,
        operand: ExprId,
        field: &str,
        is_test: bool,
    ) -> Result<Step, ProgramError> {
        let mut chain = self.step(operand)?.into_attribute();
        let key = QualifierKey::Field(self.field(operand, field));
        chain.qualifiers.push(Qualifier { key, at: id, is_optional: false });
        chain.is_test = is_test;
        Ok(Step { op: Op::Attribute(Box::new(chain)), at: id })
    }

    /// `operand[index]`, `operand[?index]` and `operand.?field`.
    pub(super) fn index(
        &mut self,
        id: ExprId,
        operands: &[ExprId],
        is_optional: bool,
    ) -> Result<Step, ProgramError> {
        let [operand, index] = operands else {
            return Err(ProgramError::Invalid("no such overload: _[_]".into()));
        };
        let mut chain = self.step(*operand)?.into_attribute();
        let index = self.step(*index)?;
        let key = match index.op {
            Op::Constant(Constant::String(name)) => QualifierKey::Field(self.field(*operand, &name)),
            Op::Constant(constant) if is_key(&constant) => QualifierKey::Constant(constant),
            Op::Constant(constant) => {
                let text = format!("invalid qualifier type: {}", constant.value().go_type());
                return Err(ProgramError::Invalid(text.into()));
            }
            Op::Attribute(attribute) => QualifierKey::Attribute(*attribute),
            op => QualifierKey::Step(Step { op, at: index.at }),
        };
        chain.qualifiers.push(Qualifier { key, at: id, is_optional });
        Ok(Step { op: Op::Attribute(Box::new(chain)), at: id })
    }

    fn field(&mut self, operand: ExprId, name: &str) -> Arc<Field> {
        let mut ty = self.checked.type_of(operand);
        while let Type::Optional(inner) = ty {
            ty = inner;
        }
        let declared = match ty {
            Type::Object(decl) => match &decl.kind {
                DeclKind::Object { fields, .. } => {
                    field_position(fields, name).map(|at| (Arc::clone(decl), at))
                }
                DeclKind::Scalar(_) | DeclKind::Date | DeclKind::List { .. } | DeclKind::Map { .. } => None,
            },
            _ => None,
        };
        let hash = Key::new(name).hash();
        let known = self.fields.entry(hash).or_default();
        let is_same_type = |field: &Field| match (&field.declared, &declared) {
            (None, None) => true,
            (Some((a, _)), Some((b, _))) => Arc::ptr_eq(a, b),
            _ => false,
        };
        if let Some(field) = known.iter().find(|field| *field.name == *name && is_same_type(field)) {
            return Arc::clone(field);
        }
        let field = Arc::new(Field { name: name.into(), hash, declared });
        known.push(Arc::clone(&field));
        field
    }
}

impl Step {
    /// The step as the start of a chain, or the chain it already is.
    pub(super) fn into_attribute(self) -> Attribute {
        match self.op {
            Op::Attribute(attribute) if !attribute.is_test => *attribute,
            _ => {
                let at = self.at;
                Attribute { root: Root::Step(Box::new(self)), at, qualifiers: Vec::new(), is_test: false }
            }
        }
    }
}

const fn is_key(constant: &Constant) -> bool {
    matches!(constant, Constant::Bool(_) | Constant::Int(_) | Constant::Uint(_) | Constant::Double(_))
}
