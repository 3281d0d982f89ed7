//! Tracks what the estimator knows about an expression: its path in the declared document, the size of its value, and the size of a
//! container's entries.

use crate::cost::Bounds;
use crate::library::history::Walk;
use crate::syntax::{Comprehension, Expr, ExprId, Literal};
use crate::types::{DeclKind, DeclType, Type};

use super::Estimator;

/// The place in the declared document that an expression refers to.
#[derive(Clone, Copy, Debug)]
pub(super) enum Path<'d> {
    /// Nowhere: a literal or a computed value.
    Empty,
    /// A place of the declared type, if that has it.
    At(Option<&'d DeclType>),
}

/// One segment of a path.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step<'n> {
    Field(&'n str),
    Items,
    /// The index into a list, for which types say nothing.
    Indices,
    Keys,
    Values,
}

impl<'d> Path<'d> {
    /// A step from nowhere leads to the root, whatever the step: Kubernetes takes the first part of a path for the
    /// name of the root without looking at it.
    pub(super) fn step(self, root: Option<&'d DeclType>, step: Step<'_>) -> Self {
        let Self::At(place) = self else { return Self::At(root) };
        Self::At(place.and_then(|place| match (step, &place.kind) {
            // Attributes of devices, whatever their names, are of one size (k8s.io/dynamic-resource-allocation/cel).
            (Step::Field(_), DeclKind::Map { value, .. })
                if matches!(value.kind, DeclKind::Scalar(Type::Any)) =>
            {
                Some(&**value)
            }
            // A property that is selected by its unescaped name is not found here, though it is by the checker.
            (Step::Field(name), _) => {
                place.field(name).filter(|field| *field.cel_name == *name).map(|field| &*field.decl)
            }
            (Step::Items | Step::Values, DeclKind::List { items, .. }) => Some(&**items),
            (Step::Items | Step::Values, DeclKind::Map { value, .. }) => Some(&**value),
            (Step::Keys, DeclKind::Map { key, .. }) => Some(&**key),
            _ => None,
        }))
    }

    /// The size that the type declares: at least nothing, at most its limit. A number or an object has none, which
    /// Kubernetes takes for zero.
    pub(super) fn size(self) -> Option<Bounds> {
        let Self::At(place) = self else { return None };
        place.map(|place| Bounds::new(0, place.max_elements_or_unbounded()))
    }
}

/// The sizes of the keys (or positions) and values of a container.
#[derive(Clone, Copy, Debug)]
pub(super) struct EntrySize {
    pub(super) list: bool,
    pub(super) key: Bounds,
    pub(super) value: Bounds,
}

impl EntrySize {
    pub(super) fn union(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        let (a, b) = (a?, b?);
        Some(Self { list: a.list, key: a.key.union(b.key), value: a.value.union(b.value) })
    }
}

/// A variable of a comprehension.
#[derive(Clone, Copy, Debug)]
pub(super) struct Local<'c> {
    pub(super) name: &'c str,
    pub(super) path: Path<'c>,
    pub(super) size: Option<Bounds>,
    pub(super) entry: Option<EntrySize>,
}

impl<'c> Estimator<'c> {
    pub(super) fn local(&self, name: &str) -> Option<&Local<'c>> {
        self.locals.iter().rev().find(|local| local.name == name)
    }

    pub(super) fn push_accumulator(&mut self, fold: &'c Comprehension) {
        let (path, entry) = (self.path(fold.accu_init), self.entry_size(fold.accu_init));
        let size = self.size(fold.accu_init);
        self.locals.push(Local { name: &fold.accu_var, path, size, entry });
    }

    pub(super) fn push_variables(&mut self, fold: &'c Comprehension) {
        let entry = self.entry_size(fold.range);
        let list = match entry {
            Some(entry) => entry.list,
            None => matches!(self.checked.type_of(fold.range), Type::List(_)),
        };
        let (keys, values) = (entry.map(|entry| entry.key), entry.map(|entry| entry.value));
        let (key_step, value_step) =
            if list { (Step::Indices, Step::Items) } else { (Step::Keys, Step::Values) };
        let path = self.path(fold.range);
        let mut push = |name, step, size| {
            self.locals.push(Local { name, path: path.step(self.root, step), size, entry: None });
        };
        match &fold.iter_var2 {
            Some(second) => {
                push(&fold.iter_var, key_step, keys);
                push(second, value_step, values);
            }
            None if list => push(&fold.iter_var, value_step, values),
            None => push(&fold.iter_var, key_step, keys),
        }
    }

    /// A variable that leads nowhere and has no size.
    pub(super) fn push_nameless(&mut self, name: &'c str) {
        self.locals.push(Local { name, path: Path::Empty, size: None, entry: None });
    }

    /// The iteration variable as the early walk knows it.
    pub(super) fn push_iteration(&mut self, fold: &'c Comprehension) {
        let step = match self.checked.type_of(fold.range) {
            Type::List(_) => Step::Items,
            _ => Step::Keys,
        };
        let path = self.path(fold.range).step(self.root, step);
        self.locals.push(Local { name: &fold.iter_var, path, size: None, entry: None });
    }

    pub(super) fn path(&self, id: ExprId) -> Path<'c> {
        if let Expr::Ident(name) = self.checked.ast().expr(id)
            && let Some(local) = self.local(name)
        {
            return local.path;
        }
        self.paths.get(id.0 as usize).copied().unwrap_or(Path::Empty)
    }

    pub(super) fn set_path(&mut self, id: ExprId, path: Path<'c>) {
        if let Some(slot) = self.paths.get_mut(id.0 as usize) {
            *slot = path;
        }
    }

    /// The size of a value: as computed before, as written, as declared, as the type implies, as of the variable.
    pub(super) fn size(&mut self, id: ExprId) -> Option<Bounds> {
        if let Some(size) = self.sizes.get(id.0 as usize).copied().flatten() {
            return Some(size);
        }
        let checked = self.checked;
        let expr = checked.ast().expr(id);
        if let Some(size) = written_size(expr) {
            return Some(Bounds::exactly(size));
        }
        if let Some(size) = self.path(id).size() {
            self.set_size(id, Some(size));
            return Some(size);
        }
        let ty = checked.type_of(id);
        if is_scalar(ty) && (self.walk == Walk::Current || !matches!(ty, Type::Optional(_))) {
            return Some(Bounds::ONE);
        }
        match expr {
            Expr::Ident(name) => self.local(name).and_then(|local| local.size),
            _ => None,
        }
    }

    pub(super) fn size_or_unbounded(&mut self, id: ExprId) -> Bounds {
        self.size(id).unwrap_or(Bounds::UNBOUNDED)
    }

    pub(super) fn set_size(&mut self, id: ExprId, size: Option<Bounds>) {
        if let (Some(slot), Some(_)) = (self.sizes.get_mut(id.0 as usize), size) {
            *slot = size;
        }
    }

    pub(super) fn entry_size(&self, id: ExprId) -> Option<EntrySize> {
        let computed = self.entries.get(id.0 as usize).copied().flatten();
        computed.or_else(|| match self.checked.ast().expr(id) {
            Expr::Ident(name) => self.local(name).and_then(|local| local.entry),
            _ => None,
        })
    }

    pub(super) fn set_entry_size(&mut self, id: ExprId, entry: Option<EntrySize>) {
        if let (Some(slot), Some(_)) = (self.entries.get_mut(id.0 as usize), entry) {
            *slot = entry;
        }
    }

    pub(super) fn copy_sizes(&mut self, to: ExprId, from: ExprId) {
        let (size, entry) = (self.size(from), self.entry_size(from));
        self.set_size(to, size);
        self.set_entry_size(to, entry);
    }
}

fn written_size(expr: &Expr) -> Option<u64> {
    let count = match expr {
        Expr::Literal(Literal::String(text)) => text.chars().count(),
        Expr::Literal(Literal::Bytes(bytes)) => bytes.len(),
        Expr::Literal(_) => 1,
        Expr::List { elements, .. } => elements.len(),
        Expr::Map(entries) => entries.len(),
        _ => return None,
    };
    Some(u64::try_from(count).unwrap_or(u64::MAX))
}

/// Whether every value of a type is of one size.
fn is_scalar(ty: &Type) -> bool {
    match ty {
        Type::Bool | Type::Int | Type::Uint | Type::Double | Type::Duration | Type::Timestamp => true,
        Type::Optional(inner) | Type::Wrapper(inner) => is_scalar(inner),
        _ => false,
    }
}
