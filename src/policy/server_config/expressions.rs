//! The expressions of an API server's own configuration: their variables, and what they may come to.
//!
//! Read from pkg/authentication/cel and pkg/authorization/cel of k8s.io/apiserver 1.36.

use std::sync::{Arc, LazyLock};

use admit_apimachinery::field_error::FieldError;
use admit_cel::{Checked, DeclField, DeclKind, DeclType, Env, ListType, Mode, Type};

use crate::release;

/// What an expression is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// `claims`: the claims of a token, by name.
    Claims,
    /// `user`: who a token is of.
    User,
    /// `request`: what an authorizer is asked, the spec of a SubjectAccessReview.
    Request,
}

/// What an expression has to come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Yields {
    /// Claims may be of any type: what comes out is known when it is evaluated.
    Anything,
    Truth,
}

static USER: LazyLock<Type> = LazyLock::new(|| user().cel_type());
static REQUEST: LazyLock<Type> = LazyLock::new(|| request().cel_type());

impl About {
    /// What an expression may name.
    pub(super) fn env(self) -> Env {
        let claims = || Type::Map(Arc::new(Type::String), Arc::new(Type::Dyn));
        let (name, ty) = match self {
            Self::Claims => ("claims", claims()),
            Self::User => ("user", USER.clone()),
            Self::Request => ("request", REQUEST.clone()),
        };
        // A configuration is taken as if it had been stored before: a server that is updated starts with the one it has.
        Env::of_release(release::followed(), Mode::Stored).with_variable(name, ty)
    }

    /// The expression, checked, or what is wrong with it at `path`.
    pub(super) fn compile(self, yields: Yields, text: &str, path: &str) -> Result<Checked, Box<FieldError>> {
        let env = self.env();
        let invalid = |why: String| Box::new(FieldError::invalid(path, text, why));
        let checked = env.compile(text).map_err(|error| invalid(format!("compilation failed: {error}")))?;
        let found = checked.output_type();
        if yields == Yields::Truth && *found != Type::Bool {
            return Err(invalid(match self {
                Self::Request => format!("must evaluate to bool but got {}", found.with_full_names()),
                Self::Claims | Self::User => "must evaluate to bool".to_owned(),
            }));
        }
        let program = env.program(&checked);
        program
            .map_err(|error| FieldError::internal(path, format!("program instantiation failed: {error}")))?;
        Ok(checked)
    }
}

fn texts() -> DeclType {
    DeclType::unbounded(DeclKind::List { items: Arc::new(text()), list_type: ListType::Atomic })
}

fn text() -> DeclType {
    DeclType::unbounded(DeclKind::Scalar(Type::String))
}

/// An object of fields that may be absent, in the order of their names.
fn object<const N: usize>(name: &str, fields: [(&str, DeclType); N]) -> Arc<DeclType> {
    let mut fields = fields.map(|(name, decl)| DeclField {
        name: name.into(),
        cel_name: name.into(),
        decl: Arc::new(decl),
        required: false,
    });
    fields.sort_by(|one, other| one.name.cmp(&other.name));
    Arc::new(DeclType::unbounded(DeclKind::Object { name: name.into(), fields: fields.to_vec().into() }))
}

fn extra() -> DeclType {
    DeclType::unbounded(DeclKind::Map { key: Arc::new(text()), value: Arc::new(texts()) })
}

fn user() -> Arc<DeclType> {
    let fields = [("username", text()), ("uid", text()), ("groups", texts()), ("extra", extra())];
    object("kubernetes.UserInfo", fields)
}

fn request() -> Arc<DeclType> {
    let own = |object: Arc<DeclType>| Arc::unwrap_or_clone(object);
    let requirement = object(
        "kubernetes.SelectorRequirement",
        [("key", text()), ("operator", text()), ("values", texts())],
    );
    let selector = |name: &str| {
        let requirements = DeclType::unbounded(DeclKind::List {
            items: Arc::clone(&requirement),
            list_type: ListType::Atomic,
        });
        own(object(name, [("rawSelector", text()), ("requirements", requirements)]))
    };
    let resource = object(
        "kubernetes.ResourceAttributes",
        [
            ("namespace", text()),
            ("verb", text()),
            ("group", text()),
            ("version", text()),
            ("resource", text()),
            ("subresource", text()),
            ("name", text()),
            ("fieldSelector", selector("kubernetes.FieldSelectorAttributes")),
            ("labelSelector", selector("kubernetes.LabelSelectorAttributes")),
        ],
    );
    let path = object("kubernetes.NonResourceAttributes", [("path", text()), ("verb", text())]);
    object(
        "kubernetes.SubjectAccessReviewSpec",
        [
            ("resourceAttributes", own(resource)),
            ("nonResourceAttributes", own(path)),
            ("user", text()),
            ("groups", texts()),
            ("extra", extra()),
            ("uid", text()),
        ],
    )
}
