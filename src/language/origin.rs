//! Finds the schema node that a part of an expression refers to: its description, its bounds, and where it is declared.

use admit_cel::syntax::{Ast, Comprehension, Expr, ExprId, Literal};
use admit_cel::{Inferred, escape_property};
use admit_policy::GroupVersionKind;
use admit_policy::manifest::Document;
use serde_json::Value;

use crate::file::{Good, is_kind};
use crate::site::{Kind, Names, Site, raw};

/// The maximum number of selections in a chain, and of variables that refer to each other.
const MAX_STEPS: usize = 300;
/// The maximum nesting of variables in variables.
const MAX_VARIABLES: usize = 16;

/// A node of a schema in a document.
#[derive(Clone)]
pub(crate) struct Node<'f> {
    /// The name of the file.
    pub(crate) file: &'f str,
    pub(crate) good: &'f Good,
    pub(crate) document: &'f Document,
    pub(crate) steps: Vec<String>,
}

impl<'f> Node<'f> {
    /// Returns the node as JSON.
    pub(crate) fn schema(&self) -> Option<&'f Value> {
        raw(&self.document.value, &self.steps)
    }

    fn below(&self, steps: &[&str]) -> Option<Self> {
        let mut node = self.clone();
        node.steps.extend(steps.iter().map(|step| (*step).to_owned()));
        node.schema().is_some().then_some(node)
    }

    fn field(&self, name: &str) -> Option<Self> {
        let properties = self.schema()?.get("properties").and_then(Value::as_object);
        let is_meant = |key: &&String| *key == name || escape_property(key).is_some_and(|key| key == name);
        match properties.and_then(|properties| properties.keys().find(is_meant)) {
            Some(key) => self.below(&["properties", key]),
            None => self.values(),
        }
    }

    fn values(&self) -> Option<Self> {
        self.below(&["additionalProperties"]).filter(|node| node.schema().is_some_and(Value::is_object))
    }

    fn element(&self) -> Option<Self> {
        self.below(&["items"]).or_else(|| self.values())
    }
}

/// The files to look up definitions in, with their names.
pub(crate) type Files<'f> = Vec<(&'f str, &'f Good)>;

/// Finds the schema nodes that parts of an expression refer to.
pub(crate) struct Origins<'o, 'f> {
    pub(crate) site: &'o Site<'f>,
    /// The name of its file.
    pub(crate) file: &'f str,
    pub(crate) names: &'o Names,
    pub(crate) files: &'o Files<'f>,
}

impl<'f> Origins<'_, 'f> {
    /// Returns the schema node of a part of the expression.
    pub(crate) fn of(&self, inferred: &Inferred, id: ExprId) -> Option<Node<'f>> {
        self.part(inferred, id, MAX_STEPS, MAX_VARIABLES)
    }

    fn part(&self, inferred: &Inferred, id: ExprId, steps: usize, variables: usize) -> Option<Node<'f>> {
        let ast = inferred.ast();
        let steps = steps.checked_sub(1)?;
        match ast.expr(id) {
            Expr::Ident(name) => match bound(ast, id, name) {
                Some((fold, is_second)) => {
                    let range = self.part(inferred, fold.range, steps, variables)?;
                    let is_list = range.schema()?.get("items").is_some();
                    let is_element = is_second || is_list && fold.iter_var2.is_none();
                    if is_element { range.element() } else { None }
                }
                None => self.root(name),
            },
            Expr::Select { operand, field, .. } => {
                if matches!(ast.expr(*operand), Expr::Ident(name) if &**name == "variables") {
                    return self.variable(field, variables.checked_sub(1)?);
                }
                self.part(inferred, *operand, steps, variables)?.field(field)
            }
            Expr::Call { function, target: None, args } => match (&**function, &**args) {
                ("_[_]" | "_[?_]", [operand, index]) => {
                    let node = self.part(inferred, *operand, steps, variables)?;
                    match ast.expr(*index) {
                        Expr::Literal(Literal::String(name)) => node.field(name),
                        _ => node.element(),
                    }
                }
                ("_?._", [operand, field]) => match ast.expr(*field) {
                    Expr::Literal(Literal::String(name)) => {
                        self.part(inferred, *operand, steps, variables)?.field(name)
                    }
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }

    fn root(&self, name: &str) -> Option<Node<'f>> {
        match (&self.site.kind, name) {
            (Kind::Rule { schema, .. }, "self" | "oldSelf") => Some(Node {
                file: self.file,
                good: self.site.good,
                document: self.site.document,
                steps: schema.clone(),
            }),
            (Kind::Policy { .. } | Kind::Webhook(_), "object" | "oldObject")
            | (Kind::State(_), "self" | "object") => self.definition(self.names.object.as_ref()?),
            (Kind::Policy { .. }, "params") => self.definition(self.names.params.as_ref()?),
            _ => None,
        }
    }

    /// Returns the schema of a kind.
    pub(crate) fn definition(&self, kind: &GroupVersionKind) -> Option<Node<'f>> {
        self.files.iter().find_map(|(file, good)| {
            let crds = good.documents.iter().filter(|document| is_kind(document, "CustomResourceDefinition"));
            crds.into_iter().find_map(|document| {
                let text = |pointer: &str| document.value.pointer(pointer).and_then(Value::as_str);
                let is_it =
                    text("/spec/group") == Some(&kind.group) && text("/spec/names/kind") == Some(&kind.kind);
                let versions = document.value.pointer("/spec/versions").filter(|_| is_it)?.as_array()?;
                let named =
                    |version: &Value| version.get("name").and_then(Value::as_str) == Some(&kind.version);
                let index = versions.iter().position(named)?;
                let steps = ["spec", "versions", &index.to_string(), "schema", "openAPIV3Schema"];
                let steps = steps.iter().map(|step| (*step).to_owned()).collect();
                Some(Node { file, good, document, steps })
            })
        })
    }

    /// Returns the schema node that a variable refers to.
    fn variable(&self, name: &str, variables: usize) -> Option<Node<'f>> {
        let declared = self.site.document.value.pointer("/spec/variables")?.as_array()?;
        let named = |variable: &&Value| variable.get("name").and_then(Value::as_str) == Some(name);
        let text = declared.iter().find(named)?.get("expression")?.as_str()?;
        let inferred = self.names.env.infer(text).ok()?;
        let root = inferred.ast().root();
        self.part(&inferred, root, MAX_STEPS, variables)
    }
}

/// Returns the innermost comprehension that declares a name, and whether it is its second variable.
pub(crate) fn bound<'a>(ast: &'a Ast, id: ExprId, name: &str) -> Option<(&'a Comprehension, bool)> {
    let at = ast.span(id);
    folds_around(ast, at.start)
        .filter_map(|(size, fold)| {
            let is_second = fold.iter_var2.as_deref() == Some(name);
            (is_second || &*fold.iter_var == name).then_some((size, fold, is_second))
        })
        .min_by_key(|(size, ..)| *size)
        .map(|(_, fold, is_second)| (fold, is_second))
}

/// Returns the comprehensions whose variables are in scope at a byte of the text, each with its size.
pub(crate) fn folds_around(ast: &Ast, at: u32) -> impl Iterator<Item = (u32, &Comprehension)> {
    ast.ids().filter_map(move |id| {
        let Expr::Comprehension(fold) = ast.expr(id) else { return None };
        let (all, range) = (ast.span(id), ast.span(fold.range));
        let is_within = all.start <= at && at <= all.end && at > range.end;
        is_within.then_some((all.end.saturating_sub(all.start), &**fold))
    })
}
