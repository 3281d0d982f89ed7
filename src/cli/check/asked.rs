//! Defines the flags of `check` and `explain` that describe the request: its user, namespace, operation and subresource.

use std::path::PathBuf;
use std::sync::Arc;

use admit_policy::apply::{FieldValidation, Options, Subresource};
use admit_policy::{AccessAnswers, Operation, UserInfo};
use clap::{Args, ValueEnum};

use crate::cli::load;
use crate::cli::process::Fault;
use crate::cli::value_parsers::pair;

/// The flags that describe the request with which objects are applied.
#[derive(Debug, Args)]
pub(in crate::cli) struct AskedArgs {
    /// Namespace of objects that name none
    #[arg(short, long, default_value = "default")]
    pub(super) namespace: String,

    /// Label, for namespaceSelectors, of every namespace that the files do not contain; may be given several times
    #[arg(long = "namespace-label", value_name = "KEY=VALUE", value_parser = pair)]
    namespace_labels: Vec<(String, String)>,

    /// Operation to request [default: UPDATE for objects with an old object, CREATE for all others]
    #[arg(long, value_enum, ignore_case = true)]
    operation: Option<Asked>,

    /// Request this subresource of the objects, as kubectl would
    #[arg(long, value_enum)]
    subresource: Option<Part>,

    /// Name of the user who sends the requests
    #[arg(long = "as", visible_alias = "user", value_name = "USER", default_value = "admin")]
    user: String,

    /// A group that the user is in; may be given several times
    #[arg(long = "as-group", visible_alias = "group", value_name = "GROUP")]
    groups: Vec<String>,

    /// File with the authorizer's answers to CEL expressions, a list as under `authorizer` in suites [default: answers follow the
    /// roles and bindings among the files]
    #[arg(long, value_name = "FILE")]
    pub(super) authorizer: Option<PathBuf>,

    /// How to treat fields that are not in the schema
    #[arg(long, value_enum, default_value_t)]
    validate: Validate,
}

/// The operations that a request can have.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Asked {
    #[value(name = "CREATE")]
    Create,
    #[value(name = "UPDATE")]
    Update,
    #[value(name = "DELETE")]
    Delete,
}

/// The part of an object that a request is about.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Part {
    /// Update the status, and leave everything else as in the old object
    Status,
    /// Update the number of replicas of the old object
    Scale,
    /// Evict pods
    Eviction,
    /// Execute a command in the first container of pods
    Exec,
    /// Attach to the streams of the first container of pods
    Attach,
    /// Forward ports of pods
    #[value(name = "portforward")]
    PortForward,
}

impl From<Part> for Subresource {
    fn from(part: Part) -> Self {
        match part {
            Part::Status => Self::Status,
            Part::Scale => Self::Scale,
            Part::Eviction => Self::Eviction,
            Part::Exec => Self::Exec,
            Part::Attach => Self::Attach,
            Part::PortForward => Self::PortForward,
        }
    }
}

/// The values of kubectl's `--validate`.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum Validate {
    #[default]
    Strict,
    Warn,
    Ignore,
}

impl AskedArgs {
    /// Creates the arguments for creations by a user.
    pub(in crate::cli) fn by(
        namespace: String,
        user: String,
        groups: Vec<String>,
        authorizer: Option<PathBuf>,
    ) -> Self {
        Self {
            namespace,
            namespace_labels: Vec::new(),
            operation: Some(Asked::Create),
            subresource: None,
            user,
            groups,
            authorizer,
            validate: Validate::Ignore,
        }
    }

    /// Returns the flag, if any, for which every object needs an old one, such as `--operation UPDATE`.
    pub(super) fn must_replace(&self) -> Result<Option<String>, Fault> {
        let subresource = self.subresource.map(Subresource::from);
        match (subresource, self.operation) {
            (Some(Subresource::Status), Some(Asked::Create | Asked::Delete)) => {
                Err(Fault::usage("--subresource status goes with UPDATE: a status is never created alone"))
            }
            (Some(Subresource::Status), _) => Ok(Some("--subresource status".to_owned())),
            (Some(subresource), Some(_)) => {
                let subresource = subresource.as_str();
                Err(Fault::usage(format!(
                    "--subresource {subresource} has an operation of its own: leave --operation out"
                )))
            }
            (Some(subresource), None) if subresource.updates() => {
                Ok(Some(format!("--subresource {}", subresource.as_str())))
            }
            (None, Some(Asked::Update)) => Ok(Some("--operation UPDATE".to_owned())),
            (_, _) => Ok(None),
        }
    }

    pub(super) fn options(&self) -> Result<Options, Fault> {
        Ok(Options {
            user: UserInfo {
                username: self.user.clone(),
                groups: self.groups.clone(),
                ..UserInfo::default()
            },
            field_validation: match self.validate {
                Validate::Strict => FieldValidation::Strict,
                Validate::Warn => FieldValidation::Warn,
                Validate::Ignore => FieldValidation::Ignore,
            },
            operation: self.operation.map(|asked| match asked {
                Asked::Create => Operation::Create,
                Asked::Update => Operation::Update,
                Asked::Delete => Operation::Delete,
            }),
            subresource: self.subresource.map(Subresource::from),
            access: self.access()?,
            namespace_labels: self.namespace_labels.clone(),
        })
    }

    fn access(&self) -> Result<Option<Arc<AccessAnswers>>, Fault> {
        let Some(file) = &self.authorizer else { return Ok(None) };
        let list = load::value(file)?;
        // A document with the key `authorizer`, or a file that is the list itself.
        let answers = AccessAnswers::read(list.get("authorizer").unwrap_or(&list));
        answers
            .map(|answers| Some(Arc::new(answers)))
            .map_err(|error| Fault::usage(format!("{}: {error}", file.display())))
    }
}
