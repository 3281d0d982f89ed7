//! Represents authorization checks as values: the request, the user, and the decision. The host decides, through [`Authorizer`].

use std::fmt;

use super::{Opaque, Value};

/// The host's answer to a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether the subject may.
    pub allowed: bool,
    /// The reason, in the authorizer's words.
    pub reason: Box<str>,
    /// Why the check failed.
    pub error: Option<Box<str>>,
}

/// Decides authorization checks. It is called during evaluation, so it must not block for long.
///
/// ```
/// use admit_cel::authorization::{Authorizer, Check, Decision, ResourceTarget, Subject, Target};
/// use admit_cel::{Bindings, Env, Evaluation, Mode, Value, Version, parse_type};
///
/// /// The requester may get anything.
/// #[derive(Debug)]
/// struct Readers;
///
/// impl Authorizer for Readers {
///     fn authorize(&self, check: &Check<'_>) -> Decision {
///         let named = matches!(check.target, Target::Resource(ResourceTarget { group: "", resource: "pods", .. }));
///         Decision { allowed: check.subject == Subject::Requester && check.verb == "get" && named, ..Decision::default() }
///     }
/// }
///
/// let ty = parse_type("kubernetes.authorization.Authorizer").unwrap();
/// let check = parse_type("kubernetes.authorization.ResourceCheck").unwrap();
/// let env = Env::kubernetes(Version(1, 36), Mode::New).with_variables([("authorizer", ty), ("asked", check)]);
/// let text = "authorizer.group('').resource('pods').check('get').allowed() && !asked.check('create').allowed()";
/// let program = env.program(&env.compile(text)?)?;
/// let arena = bumpalo::Bump::new();
/// let pods = ResourceTarget { resource: "pods", ..ResourceTarget::default() };
/// let mut bindings = Bindings::new(&program);
/// bindings.set("authorizer", Value::authorizer(&arena, &Readers));
/// bindings.set("asked", Value::resource_check(&arena, &Readers, pods));
/// assert!(matches!(program.eval(&bindings, &mut Evaluation::new(&arena))?, Value::Bool(true)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Authorizer: fmt::Debug {
    /// Decides one check.
    fn authorize(&self, check: &Check<'_>) -> Decision;
}

/// The user whose rights are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject<'a> {
    /// The user of the request.
    Requester,
    /// A service account.
    ServiceAccount {
        /// Its namespace.
        namespace: &'a str,
        /// Its name.
        name: &'a str,
    },
}

/// What the subject would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check<'a> {
    /// The user who would act.
    pub subject: Subject<'a>,
    /// `get`, `create`, and so on.
    pub verb: &'a str,
    /// What it would be done to.
    pub target: Target<'a>,
}

/// What it would do it to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// A path outside the resources.
    Path(&'a str),
    /// A resource.
    Resource(ResourceTarget<'a>),
}

/// A resource, or several; what an expression does not name is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceTarget<'a> {
    /// The API group.
    pub group: &'a str,
    /// The resource's plural name.
    pub resource: &'a str,
    /// `status`, `scale`, and so on.
    pub subresource: &'a str,
    /// The namespace of the object.
    pub namespace: &'a str,
    /// The name of the object.
    pub name: &'a str,
    /// The selector as written, which may be invalid.
    pub field_selector: &'a str,
    /// The selector as written, which may be invalid.
    pub label_selector: &'a str,
}

/// A check being put together, or its outcome.
#[derive(Clone, Copy, Debug)]
pub enum Authorization<'a> {
    /// The variable `authorizer`, or that of a service account.
    Authorizer(Asker<'a>),
    /// `authorizer.path(…)`.
    Path(Asker<'a>, &'a str),
    /// `authorizer.group(…)`.
    Group(Asker<'a>, &'a str),
    /// `authorizer.group(…).resource(…)`, narrowed or not.
    Resource(Asker<'a>, ResourceTarget<'a>),
    /// The answer to `check(…)`.
    Decision {
        /// Whether the subject may.
        allowed: bool,
        /// The reason.
        reason: &'a str,
        /// Why the check failed.
        error: Option<&'a str>,
    },
}

/// The authorizer, and the user to check.
#[derive(Clone, Copy, Debug)]
pub struct Asker<'a> {
    /// The authorizer.
    pub host: &'a dyn Authorizer,
    /// The user to check.
    pub subject: Subject<'a>,
}

impl<'a> Value<'a> {
    /// The variable `authorizer`.
    #[must_use]
    pub fn authorizer(arena: &'a bumpalo::Bump, host: &'a dyn Authorizer) -> Self {
        let asker = Asker { host, subject: Subject::Requester };
        Self::Opaque(Opaque::Authorization(arena.alloc(Authorization::Authorizer(asker))))
    }

    /// The variable `authorizer.requestResource`: a check of the resource of the request.
    #[must_use]
    pub fn resource_check(
        arena: &'a bumpalo::Bump,
        host: &'a dyn Authorizer,
        resource: ResourceTarget<'a>,
    ) -> Self {
        let asker = Asker { host, subject: Subject::Requester };
        Self::Opaque(Opaque::Authorization(arena.alloc(Authorization::Resource(asker, resource))))
    }
}
